"""The main content of a page: what trafilatura finds, kept in the tree of the page itself.

trafilatura answers with a tree of its own, in which links, code, quotes and captions are worn down. So each text of
the page gets a mark, one character of a private plane, before it is asked; the marks that it gives back say which
texts are content, and all others leave the page. What is left is written by the same writer as any other part.
"""

import re
from itertools import islice

from lxml.etree import strip_elements
from lxml.html import HtmlElement
from trafilatura import bare_extraction
from trafilatura.settings import Document

from servers.fetch.reading.html.filling import fill
from servers.fetch.reading.html.texts import Texts
from servers.fetch.reading.html.tree import LONGEST_CAPTION, drop
from servers.fetch.reading.html.trimming import trim

__all__ = ["main_content"]

_FIRST, _LAST = 0xF0000, 0xFFFFD
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_MOST_ELEMENTS = 40_000
"""Of a page whose main content is looked for: the time it takes may grow with their square."""
_AROUND_CONTENT = ("header", "nav", "footer", "aside", "form")
_WHOLE = ("pre", "math")
_SPANS = ("colspan", "rowspan")
_KEPT_EMPTY = frozenset(("br", "hr", "td", "th"))


def main_content(root: HtmlElement, *, pictures: bool) -> HtmlElement | None:
    """The body of the page with nothing but its main content; None where none is found or there are too many texts.

    With `pictures`, those beside the content stay, and their captions. The tree is changed where there is an answer.
    """
    body = root.find("body")
    too_many = next(islice(root.iter(), _MOST_ELEMENTS, None), None) is not None
    if body is None or too_many:
        return None
    texts = Texts(body)
    if not 0 < len(texts.places) <= _LAST - _FIRST:
        return None
    _choose(root, texts)
    if not any(texts.kept):
        return None
    fill(texts)
    trim(texts)
    for (element, follows, _), kept in zip(texts.places, texts.kept, strict=True):
        holder = element.getparent() if follows else element
        # What holds no content goes as a whole, or is a picture that stays with its caption.
        if not kept and texts.kept.find(1, *texts.spans[holder]) >= 0:
            setattr(element, "tail" if follows else "text", " ")
    if not pictures:
        strip_elements(body, "img", with_tail=False)
    _prune(texts, body)
    return body


def _choose(root: HtmlElement, texts: Texts) -> None:
    """Have trafilatura say which texts are content."""
    # It lays tables out, which a page can make as large as it likes.
    cells = [
        (cell, name, cell.attrib.pop(name))
        for cell in texts.root.iter("td", "th")
        for name in _SPANS
        if name in cell.attrib
    ]
    for number, (element, follows, text) in enumerate(texts.places, _FIRST):
        words = text.lstrip()
        marked = text[: len(text) - len(words)] + chr(number) + words
        setattr(element, "tail" if follows else "text", marked)
    found = bare_extraction(root, include_comments=False, fast=True, favor_recall=True)
    text = "".join(found.body.itertext()) if isinstance(found, Document) and found.body is not None else ""
    for mark in _MARK.findall(text):
        texts.kept[ord(mark) - _FIRST] = 1
    for element, follows, text in texts.places:
        setattr(element, "tail" if follows else "text", text)
    for cell, name, span in cells:
        cell.set(name, span)


def _prune(texts: Texts, element: HtmlElement) -> None:
    """Leave what is content, and the pictures that stand beside it."""
    first, end = texts.spans[element]
    own = first < end and texts.places[first][:2] == (element, False)
    beside = texts.kept.find(1, first + own, end) >= 0
    for child in list(element):
        if texts.kept.find(1, *texts.spans[child]) >= 0:
            if child.tag not in _WHOLE:
                _prune(texts, child)
        elif child.tag in _KEPT_EMPTY:
            child.clear(keep_tail=True)
        elif not (beside and _is_picture(texts, child)):
            drop(child)


def _is_picture(texts: Texts, element: HtmlElement) -> bool:
    """Whether there is a picture in an element, and no text but its caption."""
    if element.tag in _AROUND_CONTENT or next(element.iter("img"), None) is None:
        return False
    captions = texts.within(element.iter("figcaption"))
    return texts.size(texts.spans[element]) <= captions <= LONGEST_CAPTION
