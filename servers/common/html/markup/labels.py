"""Labels and values in adjacent elements with no space between them, which a page's style sets apart.

`<span class="name">id</span><span class="type">string</span>` reads as two words, and so do two links or two keys.
The parts of one word, such as the runs of an editor, have the same class. A capital before a lowercase letter is the
first letter of a word.
"""

from lxml.html import HtmlElement

_LABELS = ("span", "a", "button", "label", "time", "kbd")
_WHOLE = frozenset(("pre", "code", "samp", "tt", "math", "svg", "textarea"))
"""Elements whose spaces are significant."""


def separate_labels(root: HtmlElement) -> None:
    """Put a space between adjacent labels that would be read as one word."""
    for first in root.iter(*_LABELS):
        second = None if first.tail else first.getnext()
        if second is None or second.tag not in _LABELS or not _differ(first, second):
            continue
        end, start = _last(first), _first(second)
        is_initial = len(end) == 1 and end.isupper() and start[:1].islower()
        if end[-1:].isalnum() and start[:1].isalnum() and not is_initial and not _is_whole(first):
            first.tail = " "


def _differ(first: HtmlElement, second: HtmlElement) -> bool:
    """Return True if two elements have different meanings."""
    if first.tag != second.tag:
        return True
    if first.tag == "a":
        return bool(first.get("href") != second.get("href"))
    if first.tag == "span":
        kinds = first.get("class"), second.get("class")
        return all(kinds) and kinds[0] != kinds[1]
    return True


def _first(element: HtmlElement) -> str:
    """Return the text at the beginning of an element."""
    while not element.text and len(element):
        element = element[0]
    return element.text or ""


def _last(element: HtmlElement) -> str:
    """Return the text at the end of an element."""
    while len(element):
        element = element[-1]
        if element.tail:
            return str(element.tail)
    return element.text or ""


def _is_whole(element: HtmlElement) -> bool:
    """Return True if an element is in code or in a formula."""
    return any(around.tag in _WHOLE for around in element.iterancestors())
