"""What scripts of a page say without being run: data for programs (JSON-LD), what they begin with, and that the page
shows no text without them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from lxml.etree import iterwalk
from lxml.html import HtmlElement

__all__ = ["blocks_of", "linked_data", "wants_scripts"]

_KINDS = re.compile(r"\s*application/(?:json|(?:[\w.-]+\+)?json)\s*(?:;.*)?", re.IGNORECASE)
_AROUND = re.compile(r"^\s*(?:<!--|//\s*<!\[CDATA\[|<!\[CDATA\[)|(?:-->|//\s*\]\]>|\]\]>)\s*$")
_LONGEST = 1_000_000
"""Characters of one block of JSON-LD that is looked into for what a page says of itself."""
_MOST_NODES = 1_000
_LITTLE = 400
"""Characters of text that a page may show without its scripts and still need them."""
_MUCH = 2_000
"""Characters of scripts that do more than count visits."""
_ROOTS = frozenset(("root", "app", "__next", "__nuxt", "___gatsby", "svelte", "react-root", "q-app", "app-root"))
_UNSEEN = frozenset(("script", "style", "noscript", "template"))
_ASKS = re.compile(r"java\s?script", re.IGNORECASE)


def blocks_of(elements: Iterable[HtmlElement]) -> tuple[list[dict[str, Any]], int]:
    """The blocks of JSON within elements, each with its type and id, and how many more could not be read."""
    blocks: list[dict[str, Any]] = []
    failed = 0
    for script in (script for element in elements for script in element.iter("script")):
        kind = script.get("type") or ""
        if not _KINDS.fullmatch(kind):
            continue
        data, read = _parsed(script.text or "")
        failed += not read
        if read:
            named = {"id": script.get("id")} if script.get("id") else {}
            blocks.append({"type": kind.strip().lower(), **named, "data": data})
    return blocks, failed


def linked_data(root: HtmlElement) -> list[dict[str, Any]]:
    """The things that the JSON-LD of a page describes, outer before inner ones; at most a thousand."""
    things: list[dict[str, Any]] = []
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json" and len(script.text or "") < _LONGEST:
            data, _ = _parsed(script.text or "")
            things += _things(data, _MOST_NODES - len(things))
    return things


def _parsed(text: str) -> tuple[Any, bool]:
    try:
        return json.loads(_AROUND.sub("", text), strict=False, parse_constant=str), True
    except (ValueError, RecursionError):
        return None, False


def _things(data: Any, most: int) -> Iterator[dict[str, Any]]:
    """The objects of JSON-LD: those at the top, in a graph, and what a page is mainly about."""
    waiting = [data]
    for one in waiting:
        if most <= 0:
            return
        if isinstance(one, list):
            waiting += one[:_MOST_NODES]
        elif isinstance(one, dict):
            most -= 1
            yield one
            waiting += [one[name] for name in ("@graph", "mainEntity", "mainEntityOfPage") if name in one]


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
