"""Divides the text of a page into lines: paragraphs, headings, list items and cells.

A line is all text between two block edges of any kind, so that no sentence is split. Lines are numbered in page
order, and all lines within a block have consecutive numbers. `evidence` examines lines and the blocks around them;
`main_content` keeps or omits whole lines.
"""

import re
from collections.abc import Hashable, Iterable
from itertools import compress
from typing import NamedTuple

from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, HEADINGS, names_in, squeeze

_SKIPPED_TAGS = names_in("script style template noscript iframe object canvas")
_UNWRITTEN_TAGS = names_in("select datalist optgroup option video audio textarea")
"""Elements whose text the writer omits."""
_FIELD_TAGS = names_in("input button select textarea")
_ANCHOR = frozenset(("name", "id"))
"""An `a` with only these attributes is an anchor. A link has other attributes, for its address or for clicks."""
_LANDMARKS = {
    "nav": "navigation directory",
    "header": "banner",
    "footer": "contentinfo",
    "aside": "complementary note",
    "main": "",
    "article": "",
    "section": "region",
    "form": "search",
    "table": "",
    "list": "ul ol menu",
    "dl": "",
    "figure": "",
    "details": "tabpanel",
    "dialog": "alertdialog alert",
    "toolbar": "menubar tablist",
    "button": "",
    "blockquote": "",
    "pre": "",
    "label": "",
    "a": "",
}
"""The kinds of elements that declare what they contain. Each has the name of a tag or a role, and its synonyms."""
KINDS = tuple(_LANDMARKS)
_KIND_NUMBERS = {
    name: number for number, (kind, others) in enumerate(_LANDMARKS.items()) for name in (kind, *others.split())
}

# The part before the first letter matches no letters, so a search takes linear time.
IN_BRACKETS = re.compile(r"\[[\W\d]*[^\W\d].*\]")
"""The text of a section's actions, such as `[edit]`. A number in brackets is a reference instead."""
_MAX_ACTION_CHILDREN = 6
"""Maximum number of children of an element with a section's actions."""

EnclosingCounts = tuple[int, ...]
"""The number of enclosing landmarks of each kind."""


class Block:
    """An element that begins on a new line. Its lines are `first` up to, but not including, `end`; `parent` is the
    innermost block that contains it."""

    __slots__ = ("element", "end", "first", "level", "parent")

    def __init__(self, element: HtmlElement, parent: "Block | None", first: int) -> None:
        self.element = element
        self.parent = parent
        self.level: int = 0 if parent is None else parent.level + 1
        self.first = self.end = first


class Line(NamedTuple):
    """One line: its innermost block, its text with single spaces, and its links."""

    block: Block
    text: str
    linked: int
    """Number of characters of the text that are in links."""
    links: tuple[HtmlElement, ...]
    enclosing: EnclosingCounts
    pictures: int
    """Number of pictures before the line on the page."""
    fields: int
    """Number of fields and buttons before the line on the page."""


class Place(NamedTuple):
    """A text in the tree: the text of an element or, if it `follows`, its tail. A negative line number means no
    line."""

    element: HtmlElement
    follows: bool
    text: str
    line: int


def kind_of(element: HtmlElement) -> Hashable:
    """Return a key that is the same for similar elements: the tag and the first class. Further classes often mark one
    of several similar elements, such as the accepted answer."""
    return element.tag, (element.get("class") or "").partition(" ")[0]


def _is_action(element: HtmlElement) -> bool:
    """Return True if an element consists of links in brackets, like the `[edit]` after a wiki's headings."""
    if element.tag == "a" or len(element) > _MAX_ACTION_CHILDREN or element.find(".//a") is None:
        return False
    return IN_BRACKETS.fullmatch(squeeze(element.text_content())) is not None


class Lines:
    """The lines of a body, and the places of their texts. Text that is never shown has a place but no line."""

    def __init__(self, body: HtmlElement) -> None:
        self.lines: list[Line] = []
        self.places: list[Place] = []
        self.blocks: list[Block] = []
        self.anchors: dict[str, int] = {}
        """The names that the fragment of a link may have, each with the number of the line at which it begins."""
        self._texts: list[tuple[str, HtmlElement | None, EnclosingCounts]] = []
        """The texts of the current line, each with its link and its landmarks."""
        self._pictures = self._fields = 0
        self._walk(body, None, (0,) * len(KINDS), None, False)

    def _walk(
        self,
        element: HtmlElement,
        block: Block | None,
        enclosing: EnclosingCounts,
        link: HtmlElement | None,
        is_unwritten: bool,
    ) -> None:
        tag = element.tag
        kind = _KIND_NUMBERS.get(element.get("role") or tag, _KIND_NUMBERS.get(tag))
        # An anchor is the target of links. If it has no end tag, it contains the text after it.
        is_link = tag == "a" and not _ANCHOR.issuperset(element.keys())
        if tag == "a" and not is_link:
            kind = None
        if kind is not None:
            enclosing = (*enclosing[:kind], enclosing[kind] + 1, *enclosing[kind + 1 :])
        begins_block = block is None or tag in BLOCKS or (block.element.tag in HEADINGS and _is_action(element))
        if begins_block:
            self._end_line(block)
            block = Block(element, block, len(self.lines))
            self.blocks.append(block)
        if name := element.get("id") or (element.get("name") if tag == "a" else None):
            self.anchors.setdefault(name, len(self.lines))
        self._pictures += tag == "img"
        self._fields += tag in _FIELD_TAGS
        if is_link:
            link = element
        is_unwritten = is_unwritten or tag in _UNWRITTEN_TAGS
        if tag not in _SKIPPED_TAGS:
            self._add(element, False, element.text, link, enclosing, is_unwritten)
            for child in element:
                self._walk(child, block, enclosing, link, is_unwritten)
                self._add(child, True, child.tail, link, enclosing, is_unwritten)
        if begins_block and block is not None:
            self._end_line(block)
            block.end = len(self.lines)

    def _add(
        self,
        element: HtmlElement,
        follows: bool,
        text: str | None,
        link: HtmlElement | None,
        enclosing: EnclosingCounts,
        is_unwritten: bool,
    ) -> None:
        if not text:
            return
        if text.isspace():
            if self._texts:
                self._texts.append((" ", None, enclosing))
        elif is_unwritten:
            self.places.append(Place(element, follows, text, -1))
        else:
            self.places.append(Place(element, follows, text, len(self.lines)))
            self._texts.append((text, link, enclosing))

    def _end_line(self, block: Block | None) -> None:
        if block is None or not self._texts:
            return
        text = " ".join("".join(text for text, _, _ in self._texts).split())
        linked = sum(len(text.strip()) for text, link, _ in self._texts if link is not None)
        links = tuple({link: None for _, link, _ in self._texts if link is not None})
        enclosing = self._texts[0][2]
        self.lines.append(Line(block, text, min(linked, len(text)), links, enclosing, self._pictures, self._fields))
        self._texts.clear()


def similar_blocks(page: Lines) -> Iterable[list[Block]]:
    """Return the groups of similar blocks: those with the same parent and similar elements. Blocks with a single line
    are left out."""
    groups: dict[Hashable, list[Block]] = {}
    for block in page.blocks:
        if block.parent is not None and block.end - block.first > 1:
            groups.setdefault((block.parent, kind_of(block.element)), []).append(block)
    return groups.values()


def sizes_of(lines: list[Line], keep: list[bool], block: Block) -> tuple[int, int]:
    """Return the number of kept characters in a block, and the number of all its characters."""
    sizes = [len(line.text) for line in lines[block.first : block.end]]
    return sum(compress(sizes, keep[block.first : block.end])), sum(sizes)


def share_of(lines: list[Line], keep: list[bool], block: Block) -> float:
    """Return the share of a block's characters that is kept. The block has at least one line."""
    kept_size, size = sizes_of(lines, keep, block)
    return kept_size / size
