"""Whether a page shows its text only once its scripts have run, which they do not here."""

import re

from lxml.etree import iterwalk
from lxml.html import HtmlElement

__all__ = ["wants_scripts"]

_LITTLE = 400
"""Characters of text that a page may show without its scripts and still need them."""
_MUCH = 2_000
"""Characters of scripts that do more than count visits."""
_ROOTS = frozenset(("root", "app", "__next", "__nuxt", "___gatsby", "svelte", "react-root", "q-app", "app-root"))
_UNSEEN = frozenset(("script", "style", "noscript", "template"))
_ASKS = re.compile(r"java\s?script", re.IGNORECASE)


def wants_scripts(root: HtmlElement) -> bool:
    """Whether a page has hardly any text, and scripts to make it. Its scripts must still be in it."""
    body = root.find("body")
    if body is None:
        return False
    scripts = list(root.iter("script"))
    seen = _seen(body) if scripts else _LITTLE
    if seen >= _LITTLE:
        return False
    asks = any(_ASKS.search(one.text_content()) for one in root.iter("noscript"))
    rooted = any((one.get("id") or one.tag) in _ROOTS for one in body.iter("div", "main", "app-root"))
    written = sum(len(one.text or "") for one in scripts if "json" not in (one.get("type") or ""))
    return asks or rooted or bool(not seen and (written > _MUCH or any(one.get("src") for one in scripts)))


def _seen(body: HtmlElement) -> int:
    """Characters of text that a page shows without its scripts; counting ends where they are no longer little."""
    seen = 0
    walk = iterwalk(body, events=("start",))
    for _, element in walk:
        seen += len((element.tail or "").strip())
        if element.tag in _UNSEEN:
            walk.skip_subtree()
        else:
            seen += len((element.text or "").strip())
        if seen >= _LITTLE:
            break
    return seen
