"""The main content of a page: what trafilatura finds, kept in the tree of the page itself.

trafilatura answers with a tree of its own, in which links, code, quotes and captions are worn down. So each text of
the page gets a mark, one character of a private plane, before it is asked; the marks that it gives back say which
texts are content, and all others leave the page. What is left is written by the same writer as any other part.
"""

import re
from collections.abc import Iterator
from itertools import islice

from lxml.etree import strip_elements
from lxml.html import HtmlElement
from trafilatura import bare_extraction
from trafilatura.settings import Document

from servers.fetch.reading.html.tree import LONGEST_CAPTION, drop, length

__all__ = ["main_content"]

_FIRST, _LAST = 0xF0000, 0xFFFFD
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_MOST_ELEMENTS = 40_000
"""Of a page whose main content is looked for: the time it takes may grow with their square."""
_AROUND_CONTENT = ("header", "nav", "footer", "aside", "form")
_SPANS = ("colspan", "rowspan")
_UNREAD = frozenset(("script", "style", "template", "noscript"))
_KEPT_EMPTY = frozenset(("br", "hr", "td", "th"))


def main_content(root: HtmlElement, *, pictures: bool) -> HtmlElement | None:
    """The body of the page with nothing but its main content; None where none is found or there are too many texts.

    With `pictures`, those beside the content stay, and their captions. The tree is changed where there is an answer.
    """
    body = root.find("body")
    too_many = next(islice(root.iter(), _MOST_ELEMENTS, None), None) is not None
    if body is None or too_many or not _marked(root):
        return None
    # trafilatura lays tables out, which a page can make as large as it likes.
    spans = [
        (cell, name, cell.attrib.pop(name))
        for cell in body.iter("td", "th")
        for name in _SPANS
        if name in cell.attrib
    ]
    found = bare_extraction(root, include_comments=False, fast=True, favor_recall=True)
    text = "".join(found.body.itertext()) if isinstance(found, Document) and found.body is not None else ""
    for cell, name, span in spans:
        cell.set(name, span)
    kept = set(_MARK.findall(text))
    if kept:
        if not pictures:
            strip_elements(body, "img", with_tail=False)
        _prune(body, kept, _holding(body, kept))
    _clean(root)
    return body if kept else None


def _texts(root: HtmlElement) -> Iterator[tuple[HtmlElement, str, str]]:
    for element in root.iter():
        if element.text and element.tag not in _UNREAD:
            yield element, "text", element.text
        if element.tail:
            yield element, "tail", element.tail


def _marked(root: HtmlElement) -> bool:
    """Mark each text; False, and no marks, where there are more texts than marks."""
    mark = _FIRST
    for element, place, text in _texts(root):
        words = text.lstrip()
        if not words:
            continue
        if mark > _LAST:
            _clean(root)
            return False
        setattr(element, place, text[: len(text) - len(words)] + chr(mark) + words)
        mark += 1
    return True


def _clean(root: HtmlElement) -> None:
    for element, place, text in _texts(root):
        setattr(element, place, _MARK.sub("", text))


def _has(text: str | None, kept: set[str]) -> bool:
    found = _MARK.search(text) if text else None
    return found is not None and found[0] in kept


def _left(text: str | None, kept: set[str]) -> str | None:
    """What is left of a text; white space stays."""
    found = _MARK.search(text) if text else None
    return text if found is None or found[0] in kept else " "


def _holding(body: HtmlElement, kept: set[str]) -> set[HtmlElement]:
    """The elements in which kept text stands."""
    holding: set[HtmlElement] = {body}
    for element, place, text in _texts(body):
        holder = (element if place == "text" else element.getparent()) if _has(text, kept) else None
        while holder is not None and holder not in holding:
            holding.add(holder)
            holder = holder.getparent()
    return holding


def _prune(element: HtmlElement, kept: set[str], holding: set[HtmlElement]) -> None:
    """Leave what is kept, and the pictures that stand beside it."""
    element.text = _left(element.text, kept)
    beside = any(child in holding or _has(child.tail, kept) for child in element)
    for child in list(element):
        child.tail = _left(child.tail, kept)
        if child in holding:
            if child.tag != "pre":
                _prune(child, kept, holding)
        elif child.tag in _KEPT_EMPTY:
            child.clear(keep_tail=True)
        elif not (beside and _is_picture(child)):
            drop(child)


def _is_picture(element: HtmlElement) -> bool:
    """Whether there is a picture in an element, and no text but its caption."""
    if element.tag in _AROUND_CONTENT or next(element.iter("img"), None) is None:
        return False
    captions = sum(length(caption) for caption in element.iter("figcaption"))
    return length(element) <= captions <= LONGEST_CAPTION
