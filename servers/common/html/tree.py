"""The tree of a page, and small questions about it that all parts ask.

libxml2 reads any text as HTML, and stops at 2,048 levels. Python's own stack ends sooner, so deep pages
are flattened.
"""

import re
import sys
from collections.abc import Callable
from html import unescape
from itertools import islice

from lxml import etree
from lxml.etree import SubElement
from lxml.html import HtmlElement, HTMLParser, document_fromstring, fragment_fromstring

_DEEPEST = 100
"""Levels of elements that are kept; what is deeper stands flat in the last of them."""
_MOST_ELEMENTS = 200_000
_SPACE = re.compile(r"[\s\u00a0]+")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff\U000f0000-\U0010ffff]")
"""What libxml2 does not take, and the two private planes."""
_REFERENCE = re.compile(r"&#(?:[xX]0*([0-9a-fA-F]{1,8})(?![0-9a-fA-F])|0*([0-9]{1,10})(?![0-9]));?")

_ONE_CLASS = etree.ElementDefaultClassLookup(element=HtmlElement)
_IN_HEAD = frozenset(("base", "link", "meta", "noscript", "script", "style", "template", "title"))


def names_in(text: str) -> frozenset[str]:
    """The names that stand between blanks in a text: a set of many is read best so."""
    return frozenset(text.split())


LONGEST_CAPTION = 500
"""Characters of text in a figure that are its picture's caption; more is a text of its own."""
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = names_in("""
    address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure
    footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol option
    optgroup p plaintext pre search section select summary table tbody td tfoot th thead tr ul video audio
""")
"""Elements that begin on a line of their own."""


def parse(text: str) -> tuple[HtmlElement, bool]:
    """The tree of any text, its root an `html` element with a `body`, and whether it is whole.

    Comments and processing instructions are not in it, nor what comes after too many elements or levels.
    """
    # The encoding is named, so that what a declaration in the text says does not count.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False, huge_tree=True)
    # lxml.html has a class for forms, for inputs and so on, and asks Python for it each time an element is touched.
    parser.set_element_class_lookup(_ONE_CLASS)
    # What libxml2 does not take goes. By its number it would take it, and lxml would not give it back again.
    readable = _REFERENCE.sub(_referred, _NOT_XML.sub("", text.replace("\f", " ")))
    try:
        root = document_fromstring(readable.encode(), parser=parser)
    except etree.ParserError:
        return document_fromstring("<html><body></body></html>"), True
    whole = not any("depth" in entry.message for entry in parser.error_log.filter_from_fatals())
    if root.find("body") is None:
        # Of a page that has none: links to its frames.
        body = fragment_fromstring("", create_parent="body")
        for frame in root.iter("frame"):
            link = SubElement(SubElement(body, "p"), "a", href=frame.get("src") or "")
            link.text = frame.get("title") or frame.get("name") or frame.get("src")
        root.append(body)
    # The attributes that no template filled in, as {name}: lxml would take the braces for a namespace.
    for element in root.xpath("//*[@*[contains(name(), '{')]]"):
        others = {name: value for name, value in element.items() if "{" not in name}
        element.attrib.clear()
        element.attrib.update(others)
    _end_head(root)
    return root, _cut(root) and whole


def _end_head(root: HtmlElement) -> None:
    """Has the body begin with the first element that can't stand in a head. libxml2 does not know those of HTML 5."""
    head, body = root.find("head"), root.find("body")
    children = [] if head is None else list(head)
    first = next((at for at, child in enumerate(children) if child.tag not in _IN_HEAD), len(children))
    body[:0] = children[first:]


def flatten(root: HtmlElement) -> None:
    """Let the elements below the hundredth level stand flat in it."""
    depth = 0
    deep = False
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if event == "start" and depth > _DEEPEST:
            element.tag = "deep"
            deep = True
    if deep:
        etree.strip_tags(root, "deep")


def drop(element: HtmlElement) -> None:
    """Take an element out; the text after it stays, apart from what stands before."""
    parent, tail = element.getparent(), element.tail
    if parent is None:
        return
    before = element.getprevious()
    parent.remove(element)
    if before is not None:
        before.tail = f"{before.tail or ''} {tail or ''}"
    else:
        parent.text = f"{parent.text or ''} {tail or ''}"


def outermost(root: HtmlElement, chosen: Callable[[HtmlElement], bool]) -> list[HtmlElement]:
    """The elements that are chosen, but for those within another."""
    elements: list[HtmlElement] = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if chosen(element):
            elements.append(element)
            walk.skip_subtree()
    return elements


def squeeze(text: str | None) -> str:
    """A text on one line, with single spaces."""
    return _SPACE.sub(" ", text or "").strip()


def length(element: HtmlElement) -> int:
    """Characters of text in an element, not counting its white space."""
    return sum(len(part) for text in element.itertext() for part in text.split())


def has_text(element: HtmlElement) -> bool:
    """Whether there is text in an element, found without reading all of it."""
    return any(not text.isspace() for text in element.itertext() if text)


def is_alone(element: HtmlElement) -> bool:
    """Whether an element is all that its parent holds."""
    parent = element.getparent()
    if parent is None or (parent.text and not parent.text.isspace()) or (element.tail and not element.tail.isspace()):
        return False
    return element.getprevious() is None and element.getnext() is None


def _referred(found: re.Match[str]) -> str:
    """A reference by number, or what a browser makes of one to a character that can't be in a tree."""
    number = int(found[1], 16) if found[1] else int(found[2])
    if number <= sys.maxunicode and not _NOT_XML.match(chr(number)):
        return found[0]
    return _NOT_XML.sub("", unescape(found[0]))


def _cut(root: HtmlElement) -> bool:
    """Take out all that follows the last element that is read; whether there was nothing."""
    last = next(islice(root.iter(), _MOST_ELEMENTS, None), None)
    if last is None:
        return True
    while (parent := last.getparent()) is not None:
        index = parent.index(last) + 1
        del parent[index:]
        last = parent
    return False
