"""A page as it is before its scripts have run, made as a reader sees it who has none.

Some pages have all their text in `noscript`, for readers such as this; others have a script show it, or let it fade
in. A small `noscript` only asks for scripts or repeats a picture, and a small part that is not shown stays hidden.
"""

import re
from itertools import islice

from lxml.html import HtmlElement

from servers.common.html.tree import length, outermost

_FADES = re.compile(r"(?:^|;)\s*(?:opacity\s*:\s*0*\.?0*|visibility\s*:\s*hidden)\s*(?=;|$)", re.IGNORECASE)
_WAITS = re.compile(r"(?:^|;)\s*display\s*:\s*none\s*(?=;|$)", re.IGNORECASE)
_LITTLE = 1_000
"""Characters of text that a page shows without what waits to be displayed. More is a page, and what waits a menu."""
_LEAST = 400
"""Characters of text that a page consists of."""
_MOST = 20
"""Elements of each kind that are looked at."""
_UNREAD = ("script", "style", "noscript", "template")


def show_unscripted(root: HtmlElement) -> bool:
    """Put what a `noscript` holds in its place, and show what a script would, where that is most of the page's text.

    Returns whether anything was shown that styles hide.
    """
    body = root.find("body")
    if body is None:
        return False
    asides = [one for one in islice(body.iter("noscript"), _MOST) if length(one) >= _LEAST]
    waiting = ((one, length(one)) for one in outermost(body, _is_late))
    late = dict(islice(((one, size) for one, size in waiting if size >= _LEAST), _MOST))
    if not asides and not late:
        return False
    others = length(body) - sum(length(one) for one in body.iter(*_UNREAD))
    for one in asides:
        if length(one) > others:
            one.tag = "div"
    if others - sum(late.values()) > _LITTLE:
        late = {one: size for one, size in late.items() if not _WAITS.search(one.get("style"))}
    if 3 * sum(late.values()) <= 2 * others:
        return False
    for outer in late:
        for one in filter(_is_late, outer.iter()):
            if length(one) >= _LEAST:
                one.set("style", _WAITS.sub("", _FADES.sub("", one.get("style"))))
    return True


def _is_late(element: HtmlElement) -> bool:
    style = element.get("style") or ""
    return bool(_FADES.search(style) or _WAITS.search(style))
