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

from servers.fetch.read.html.boilerplate import is_around, is_list_of_pages, is_list_of_tags, leads_away
from servers.fetch.read.html.filling import fill
from servers.fetch.read.html.tree import BLOCKS, HEADINGS, LONGEST_CAPTION, Texts, drop

_FIRST, _LAST = 0xF0000, 0xFFFFD
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_MOST_ELEMENTS = 40_000
"""Of a page whose main content is looked for: the time it takes may grow with their square."""
_AROUND_CONTENT = ("header", "nav", "footer", "aside", "form")
_WHOLE = ("pre", "math")
_SPANS = ("colspan", "rowspan")
_KEPT_EMPTY = frozenset(("br", "hr", "td", "th"))

_LITTLE = 0.2
"""The share of the content that an element may have, and be none by its name."""
_BEFORE = 0.05
"""The same of what stands before the headline."""
_LIST = 0.4
"""The same of a list of other pages."""
_LABELS = re.compile(
    r"advert(?:isement)?s?|sponsored(?: links?| content)?|story continues below(?: advertisement)?|comments?|anzeige"
    r"|werbung|publicidad(?:e)?|publicité|pubblicità|iklan|реклама|広告|광고|广告",
    re.IGNORECASE,
)
"""What stands above what a script would have put there."""
_LONGEST_LABEL = 40
"""Characters of a line that says what the list below it is."""
_LABEL_ENDS = (":", "\uff1a", "...", "\u2026")


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
    # Out of the content goes what is around it, lists of other pages, and paragraphs that only lead to one.
    texts.count()
    total = texts.content(texts.spans[texts.root])
    _trim_within(texts, texts.root, total)
    _trim_before(texts, total)
    _trim_after(texts)
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


def _trim_before(texts: Texts, total: int) -> None:
    """Take out what little stands before the headline: the way there, a category, who wrote it."""
    for headline in texts.root.iter("h1"):
        start, end = texts.spans[headline]
        if any(texts.kept[start:end]):
            if texts.content((0, start)) < _BEFORE * total:
                texts.put((0, start), kept=False)
            return


def _trim_after(texts: Texts) -> None:
    """Take out the heading at the end of what is no content."""
    last = texts.kept.rfind(1)
    if last < 0 or (block := _block(texts, last)).tag not in HEADINGS[1:]:
        return
    if texts.within(block.itersiblings()):
        texts.put(texts.spans[block], kept=False)


def _trim_label(texts: Texts, end: int) -> None:
    """Take out the line that says what the list is which was taken out after it."""
    last = texts.kept.rfind(1, 0, end)
    if last < 0 or (block := _block(texts, last)).tag not in ("p", "div"):
        return
    said = texts.said(span := texts.spans[block]).strip()
    bold = texts.within(block.iter("b", "strong")) == texts.size(span)
    if len(said) <= _LONGEST_LABEL and (bold or said.endswith(_LABEL_ENDS)):
        texts.put(span, kept=False)


def _block(texts: Texts, number: int) -> HtmlElement:
    """The innermost block that a text stands in."""
    holder = texts.holder(number)
    return next((one for one in (holder, *holder.iterancestors()) if one.tag in BLOCKS), texts.root)


def _trim_within(texts: Texts, element: HtmlElement, total: int) -> None:
    for child in element:
        span = texts.spans[child]
        content = texts.content(span)
        if not content or child.tag in ("pre", "code"):
            continue
        if content < _LITTLE * total and _stands_around(texts, child):
            texts.put(span, kept=False)
        elif content < _LIST * total and is_list_of_pages(texts, child):
            texts.put(span, kept=False)
            _trim_label(texts, span[0])
        else:
            _trim_within(texts, child, total)


def _stands_around(texts: Texts, element: HtmlElement) -> bool:
    if is_around(element) or leads_away(texts, element) or is_list_of_tags(texts, element):
        return True
    span = texts.spans[element]
    if element.tag not in ("p", "div", "center") or texts.size(span) > _LONGEST_LABEL:
        return False
    return _LABELS.fullmatch(texts.said(span).strip(" \n\t:")) is not None
