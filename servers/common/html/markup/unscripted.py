"""Shows the text of a page that is invisible because its scripts have not run.

Some pages have all their text in `noscript`, for readers without scripts, such as this program. Others show it with a
script, or let it fade in. Small elements stay as they are: a small `noscript` only asks the reader to enable scripts,
or contains a picture.
"""

import re
from itertools import islice

from lxml.html import HtmlElement

from ..tree import length, outermost

_FADED = re.compile(r"(?:^|;)\s*(?:opacity\s*:\s*0*(?:\.0*)?|visibility\s*:\s*hidden)\s*(?=;|$)", re.IGNORECASE)
_OFF_SCREEN = re.compile(r"(?:^|;)\s*(?:top|right|bottom|left)\s*:\s*-\d{4,}px\s*(?=;|$)", re.IGNORECASE)
_NOT_DISPLAYED = re.compile(r"(?:^|;)\s*display\s*:\s*none\s*(?=;|$)", re.IGNORECASE)
_POSITION = re.compile(r"(?:^|;)\s*(?:position|top|right|bottom|left)\s*:[^;]*(?=;|$)", re.IGNORECASE)
_MAX_SHOWN = 1_000
"""Maximum number of characters outside the elements that a script would show. If there are more, elements that are
not displayed are only menus and the like."""
_MIN_TEXT = 400
"""Minimum number of characters in an element that this module shows."""
_MAX_ELEMENTS = 20
"""Maximum number of elements of each kind that are examined."""
_WITHOUT_TEXT = ("script", "style", "noscript", "template")


def show_unscripted(root: HtmlElement) -> bool:
    """Replace `noscript` by its content, and show elements that a script would show, if they contain most of the text
    of the page.

    Return True if anything hidden by styles was shown.
    """
    body = root.find("body")
    if body is None:
        return False
    fallbacks = [
        candidate for candidate in islice(body.iter("noscript"), _MAX_ELEMENTS) if length(candidate) >= _MIN_TEXT
    ]
    candidates = ((candidate, length(candidate)) for candidate in outermost(body, _waits_for_script))
    hidden_lengths = dict(
        islice(((candidate, size) for candidate, size in candidates if size >= _MIN_TEXT), _MAX_ELEMENTS)
    )
    if not fallbacks and not hidden_lengths:
        return False
    body_length = length(body) - sum(length(candidate) for candidate in body.iter(*_WITHOUT_TEXT))
    for candidate in fallbacks:
        if length(candidate) > body_length:
            candidate.tag = "div"
    if body_length - sum(hidden_lengths.values()) > _MAX_SHOWN:
        hidden_lengths = {
            candidate: size for candidate, size in hidden_lengths.items() if _FADED.search(candidate.get("style"))
        }
    if 3 * sum(hidden_lengths.values()) <= 2 * body_length:
        return False
    for outer in hidden_lengths:
        for candidate in filter(_waits_for_script, outer.iter()):
            if length(candidate) >= _MIN_TEXT:
                candidate.set(
                    "style", _POSITION.sub("", _NOT_DISPLAYED.sub("", _FADED.sub("", candidate.get("style"))))
                )
    return True


def _waits_for_script(element: HtmlElement) -> bool:
    style = element.get("style") or ""
    return bool(_FADED.search(style) or _NOT_DISPLAYED.search(style) or _OFF_SCREEN.search(style))
