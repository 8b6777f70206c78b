"""What an eye would not see, taken out of a page before it is read.

A page may say to a program what it does not show to a person, and so instruct it. What was taken is counted; what no
page shows, such as scripts, is not.
"""

from collections.abc import Callable

from lxml.etree import iterwalk, strip_elements
from lxml.html import HtmlElement

from servers.fetch.reading.html.invisible import remove_invisible
from servers.fetch.reading.html.styles import hides, rules_of, size_of
from servers.fetch.reading.html.tree import drop, length, squeezed
from servers.fetch.reading.page import Removed

__all__ = ["remove_hidden", "strip_machinery"]

_MACHINERY = ("script", "style", "template", "noscript", "noframes", "noembed", "object", "embed", "applet", "canvas")


def strip_machinery(root: HtmlElement) -> None:
    """Take out what no page shows: scripts, sheets, templates, and what stands in for them."""
    strip_elements(root, *_MACHINERY, with_tail=False)


def remove_hidden(root: HtmlElement) -> Removed:
    """Take out what attributes and styles hide, and invisible characters."""
    rules = rules_of(root)
    strip_machinery(root)
    hidden = _outermost(root, lambda element: _is_hidden(element) or rules.hide(element))
    elements = sum(bool(length(element)) for element in hidden)
    for element in hidden:
        drop(element)
    if any(_size(element) is False for element in root.xpath("//*[@style]")):
        elements += sum(_silenced(element) for element in _outermost(root, lambda element: _size(element) is False))
    return Removed(elements, remove_invisible(root))


def _outermost(root: HtmlElement, chosen: Callable[[HtmlElement], bool]) -> list[HtmlElement]:
    """The elements that are chosen, but for those within another."""
    found: list[HtmlElement] = []
    walk = iterwalk(root, events=("start",))
    for _, element in walk:
        if chosen(element):
            found.append(element)
            walk.skip_subtree()
    return found


def _size(element: HtmlElement) -> bool | None:
    style = element.get("style")
    return size_of(style) if style else None


def _silenced(element: HtmlElement) -> bool:
    """Take out the text of an element whose letters have no size, but for elements within that give them one."""
    had = False
    walk = iterwalk(element, events=("start",))
    for _, inner in walk:
        if inner is not element:
            had |= bool(squeezed(inner.tail))
            inner.tail = None
        if _size(inner):
            walk.skip_subtree()
        else:
            had |= bool(squeezed(inner.text))
            inner.text = None
    return had


def _is_hidden(element: HtmlElement) -> bool:
    if element.tag in ("html", "body", "head"):
        return False
    if element.get("hidden") is not None:
        return True
    style = element.get("style")
    return bool(style) and hides(style)
