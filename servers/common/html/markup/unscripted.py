"""A page before its scripts have run, changed into the form that a reader without scripts sees.

Some pages have all their text in `noscript`, for readers like this one; others reveal it with a script, or let it
fade in. A small `noscript` only asks for scripts or repeats a picture, and a small part that is not shown stays
hidden.
"""

import re
from itertools import islice

from lxml.html import HtmlElement

from servers.common.html.tree import length, outermost

_FADES = re.compile(r"(?:^|;)\s*(?:opacity\s*:\s*0*(?:\.0*)?|visibility\s*:\s*hidden)\s*(?=;|$)", re.IGNORECASE)
_AWAY = re.compile(r"(?:^|;)\s*(?:top|right|bottom|left)\s*:\s*-\d{4,}px\s*(?=;|$)", re.IGNORECASE)
_WAITS = re.compile(r"(?:^|;)\s*display\s*:\s*none\s*(?=;|$)", re.IGNORECASE)
_PLACED = re.compile(r"(?:^|;)\s*(?:position|top|right|bottom|left)\s*:[^;]*(?=;|$)", re.IGNORECASE)
_MAX_SHOWN = 1_000
"""Maximum number of characters that a page shows without the parts revealed by scripts. A page with more only hides a
menu or the like."""
_MIN_TEXT = 400
"""Minimum number of characters in a page's text."""
_MAX_ELEMENTS = 20
"""Maximum number of elements of each kind that are examined."""
_UNREAD = ("script", "style", "noscript", "template")


def show_unscripted(root: HtmlElement) -> bool:
    """Replace `noscript` with its content and show parts that a script would show, if they are most of the page's
    text.

    Return True if anything hidden by styles was shown.
    """
    body = root.find("body")
    if body is None:
        return False
    asides = [
        candidate for candidate in islice(body.iter("noscript"), _MAX_ELEMENTS) if length(candidate) >= _MIN_TEXT
    ]
    waiting = ((candidate, length(candidate)) for candidate in outermost(body, _is_late))
    late = dict(islice(((candidate, size) for candidate, size in waiting if size >= _MIN_TEXT), _MAX_ELEMENTS))
    if not asides and not late:
        return False
    others = length(body) - sum(length(candidate) for candidate in body.iter(*_UNREAD))
    for candidate in asides:
        if length(candidate) > others:
            candidate.tag = "div"
    if others - sum(late.values()) > _MAX_SHOWN:
        late = {candidate: size for candidate, size in late.items() if _FADES.search(candidate.get("style"))}
    if 3 * sum(late.values()) <= 2 * others:
        return False
    for outer in late:
        for candidate in filter(_is_late, outer.iter()):
            if length(candidate) >= _MIN_TEXT:
                candidate.set("style", _PLACED.sub("", _WAITS.sub("", _FADES.sub("", candidate.get("style")))))
    return True


def _is_late(element: HtmlElement) -> bool:
    style = element.get("style") or ""
    return bool(_FADES.search(style) or _WAITS.search(style) or _AWAY.search(style))
