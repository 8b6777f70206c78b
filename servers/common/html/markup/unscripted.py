"""A page as it is before its scripts have run, made as a reader sees it who has none.

Some pages have all their text in `noscript`, for readers such as this; others let their text fade in by a script. A
small `noscript` only asks for scripts or repeats a picture, and a small part that is transparent stays hidden.
"""

import re
from itertools import islice

from lxml.html import HtmlElement

from servers.common.html.tree import length

_FADES = re.compile(r"(?:^|;)\s*(?:opacity\s*:\s*0*\.?0*|visibility\s*:\s*hidden)\s*(?=;|$)", re.IGNORECASE)
_LEAST = 400
"""Characters of text that a page consists of."""
_MOST = 20
"""Elements of each kind that are looked at."""
_UNREAD = ("script", "style", "noscript", "template")


def show_unscripted(root: HtmlElement) -> None:
    """Put what a `noscript` holds in its place, and show what fades in, where that is most of the page's text."""
    body = root.find("body")
    if body is None:
        return
    asides = [one for one in islice(body.iter("noscript"), _MOST) if length(one) >= _LEAST]
    fading = (one for one in body.iter() if _FADES.search(one.get("style") or ""))
    faded = list(islice(fading, _MOST))
    if not asides and not faded:
        return
    others = length(body) - sum(length(one) for one in body.iter(*_UNREAD))
    for one in asides:
        if length(one) > others:
            one.tag = "div"
    for one in faded:
        if (size := length(one)) >= _LEAST and 4 * size > 3 * others:
            one.set("style", _FADES.sub("", one.get("style")))
