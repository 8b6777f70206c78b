"""Puts a space between adjacent elements that contain separate words, but are only separated by the style of the
page.

`<span class="name">id</span><span class="type">string</span>` are two words, and so are two different links, or two
keys. Spans with the same class are parts of one word: editors split text into such spans. A single capital before a
lowercase letter is the decorated first letter of a word. Adjacent custom elements, such as `<my-card>`, are separate.
"""

from itertools import chain

from lxml.html import HtmlElement

_LABELS = ("span", "a", "button", "label", "time", "kbd")
_PRESERVED = frozenset(("pre", "code", "samp", "tt", "math", "svg", "textarea"))
"""Elements whose spaces are significant."""
_CUSTOM = ".//*[contains(name(), '-')]"


def separate_labels(root: HtmlElement) -> None:
    """Put a space between adjacent labels that would be read as one word."""
    for first in chain(root.iter(*_LABELS), root.xpath(_CUSTOM)):
        second = None if first.tail else first.getnext()
        if second is None or not (second.tag in _LABELS or "-" in second.tag) or not _differ(first, second):
            continue
        if _are_words(first, second) and not _preserves_spaces(first):
            first.tail = " "


def _differ(first: HtmlElement, second: HtmlElement) -> bool:
    """Return True if two elements contain separate words: they have different tags, are links to different targets,
    are spans with different classes, or have another tag of `_LABELS`."""
    if first.tag != second.tag:
        return True
    if first.tag == "a":
        return bool(first.get("href") != second.get("href"))
    if first.tag == "span":
        classes = first.get("class"), second.get("class")
        return all(classes) and classes[0] != classes[1]
    return True


def _are_words(first: HtmlElement, second: HtmlElement) -> bool:
    """Return True if neither element is a sign or a part of the other's word."""
    if "-" in first.tag and "-" in second.tag:
        return True
    end, start = _end(first), _beginning(second)
    is_initial = len(end) == 1 and end.isupper() and start[:1].islower()
    return end[-1:].isalnum() and start[:1].isalnum() and not is_initial


def _beginning(element: HtmlElement) -> str:
    """Return the text at the beginning of an element."""
    while not element.text and len(element):
        element = element[0]
    return element.text or ""


def _end(element: HtmlElement) -> str:
    """Return the text at the end of an element."""
    while len(element):
        element = element[-1]
        if element.tail:
            return str(element.tail)
    return element.text or ""


def _preserves_spaces(element: HtmlElement) -> bool:
    """Return True if an element is in code or in a formula."""
    return any(ancestor.tag in _PRESERVED for ancestor in element.iterancestors())
