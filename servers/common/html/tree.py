"""Parses a page into a tree, and provides small functions on trees.

libxml2 parses any text as HTML, up to 2,048 levels. Recursive functions in Python would exhaust the stack sooner, so
deep trees are flattened.
"""

import re
import sys
from collections.abc import Callable
from html import unescape
from itertools import islice

from lxml import etree
from lxml.etree import SubElement
from lxml.html import HtmlElement, HTMLParser, document_fromstring, fragment_fromstring

_MAX_DEPTH = 100
"""Maximum depth of elements. The tags of deeper ones are removed, so that their content is in the last level."""
_MAX_ELEMENTS = 200_000
"""Maximum number of elements. The rest is left out."""
_SPACE = re.compile(r"[\s\u00a0]+")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff\U000f0000-\U0010ffff]")
"""Characters that libxml2 rejects, and those of the two private-use planes, which mean nothing outside the page."""
_END_TAGS = re.compile(r"</(?:body|html)(?:[\s/][^<>]*)?>", re.IGNORECASE)
"""End tags after which libxml2 drops all content. They are removed, since browsers add the content to the body."""
# This also matches comments, to skip the headings in them. A comment without an end extends to the end of the text,
# so that matching takes linear time.
_HEADING = re.compile(r"<(?:(/?)(h[1-6])(?=[\s/>])|!--(?:-?>|.*?--!?>|.*))", re.IGNORECASE | re.DOTALL)
_REFERENCE = re.compile(r"&#(?:[xX]0*([0-9a-fA-F]{1,8})(?![0-9a-fA-F])|0*([0-9]{1,10})(?![0-9]));?")

_ONE_CLASS = etree.ElementDefaultClassLookup(element=HtmlElement)
_IN_HEAD = frozenset(("base", "link", "meta", "noscript", "script", "style", "template", "title"))


def names_in(text: str) -> frozenset[str]:
    """Return the names in a text, which are separated by white space. This is a readable notation for a large set."""
    return frozenset(text.split())


MAX_CAPTION_LENGTH = 500
"""Maximum length of the caption of a picture in a figure, in characters; a longer text is not a caption."""
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = names_in("""
    address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure
    footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol option
    optgroup p plaintext pre search section select summary table tbody td tfoot th thead tr ul video audio
""")
"""Elements that begin on a new line."""


def parse(text: str) -> tuple[HtmlElement, bool]:
    """Parse any text into a tree with an `html` root element and a `body`. Return the tree, and whether it is
    complete.

    Comments and processing instructions are left out. Everything after the maximum number of elements, or below the
    maximum number of levels of libxml2, is left out too; the tree is then not complete.
    """
    # Give the encoding, so that a declaration in the text has no effect.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False, huge_tree=True)
    # lxml.html has classes for forms, inputs and so on, which it looks up in Python each time an element is accessed.
    parser.set_element_class_lookup(_ONE_CLASS)
    # Remove the characters that libxml2 rejects, and references to them: it accepts these, but lxml can't return the
    # text.
    readable = _REFERENCE.sub(
        _resolve_reference, _NOT_XML.sub("", _END_TAGS.sub("", _end_headings(text.replace("\f", " "))))
    )
    try:
        root = document_fromstring(readable.encode(), parser=parser)
    except etree.ParserError:
        return document_fromstring("<html><body></body></html>"), True
    is_not_too_deep = not any("depth" in entry.message for entry in parser.error_log.filter_from_fatals())
    if root.find("body") is None:
        # The page has frames instead of a body: make a body with links to them.
        body = fragment_fromstring("", create_parent="body")
        for frame in root.iter("frame"):
            link = SubElement(SubElement(body, "p"), "a", href=frame.get("src") or "")
            link.text = frame.get("title") or frame.get("name") or frame.get("src")
        root.append(body)
    # Remove attributes whose names a template did not fill in, such as {name}: lxml treats braces as a namespace.
    for element in root.xpath("//*[@*[contains(name(), '{')]]"):
        others = {name: value for name, value in element.items() if "{" not in name}
        element.attrib.clear()
        element.attrib.update(others)
    # libxml2 does not know the elements of HTML 5, and leaves them in the head. Find the first element that can't be
    # in a head, and move it and everything after it to the body.
    head, body = root.find("head"), root.find("body")
    children = [] if head is None else list(head)
    first = next((index for index, child in enumerate(children) if child.tag not in _IN_HEAD), len(children))
    body[:0] = children[first:]
    is_within_limits = not _remove_excess(root)
    return root, is_within_limits and is_not_too_deep


def _end_headings(text: str) -> str:
    """Replace the end tag of each heading by one of the heading's level, because in browsers, an end tag of any level
    ends a heading. Comments are skipped."""
    name = ""

    def replace_end(tag: re.Match[str]) -> str:
        nonlocal name
        if tag[2] is None:
            return tag[0]
        if not tag[1]:
            name = tag[2]
            return tag[0]
        opened, name = name, ""
        return f"</{opened or tag[2]}"

    return _HEADING.sub(replace_end, text)


def flatten(root: HtmlElement) -> None:
    """Remove the tags of all elements below the level `_MAX_DEPTH`, but not their content."""
    depth = 0
    deep = False
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if event == "start" and depth > _MAX_DEPTH:
            element.tag = "deep"
            deep = True
    if deep:
        etree.strip_tags(root, "deep")


def drop(element: HtmlElement) -> None:
    """Remove an element. The text after it stays, and is separated from the text before it by a space."""
    parent, tail = element.getparent(), element.tail
    if parent is None:
        return
    before = element.getprevious()
    parent.remove(element)
    if before is not None:
        before.tail = f"{before.tail or ''} {tail or ''}"
    else:
        parent.text = f"{parent.text or ''} {tail or ''}"


def outermost(root: HtmlElement, is_chosen: Callable[[HtmlElement], bool]) -> list[HtmlElement]:
    """Return the elements for which `is_chosen` returns True, except those inside another chosen element."""
    elements: list[HtmlElement] = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if is_chosen(element):
            elements.append(element)
            walk.skip_subtree()
    return elements


def squeeze(text: str | None) -> str:
    """Return text on one line, with each run of white space replaced by one space, and none at the ends."""
    return _SPACE.sub(" ", text or "").strip()


def length(element: HtmlElement) -> int:
    """Count the characters of text in an element, without white space."""
    return sum(len(part) for text in element.itertext() for part in text.split())


def has_text(element: HtmlElement) -> bool:
    """Return True if an element has text, without reading all of it."""
    return any(not text.isspace() for text in element.itertext() if text)


def is_paragraph(element: HtmlElement) -> bool:
    """Return True if all text of an element is in one paragraph."""
    blocks = list(element.iterdescendants(*BLOCKS))
    return not blocks or (
        all(block.tag in ("div", "p") for block in blocks) and length(blocks[-1]) == length(element)
    )


def is_alone(element: HtmlElement) -> bool:
    """Return True if an element is the only content of its parent."""
    parent = element.getparent()
    if parent is None or (parent.text and not parent.text.isspace()) or (element.tail and not element.tail.isspace()):
        return False
    return element.getprevious() is None and element.getnext() is None


def _resolve_reference(reference: re.Match[str]) -> str:
    """Return a numeric character reference unchanged; or if lxml can't return its character, the text that a browser
    displays for it."""
    number = int(reference[1], 16) if reference[1] else int(reference[2])
    if number <= sys.maxunicode and not _NOT_XML.match(chr(number)):
        return reference[0]
    return _NOT_XML.sub("", unescape(reference[0]))


def _remove_excess(root: HtmlElement) -> bool:
    """Remove everything after the last allowed element. Return True if there was something to remove."""
    last = next(islice(root.iter(), _MAX_ELEMENTS, None), None)
    if last is None:
        return False
    while (parent := last.getparent()) is not None:
        index = parent.index(last) + 1
        del parent[index:]
        last = parent
    return True
