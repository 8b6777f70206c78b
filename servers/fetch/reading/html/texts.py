"""The texts of a page, numbered in their order, so that what is content can be counted, added to and taken from.

All texts within an element have neighbouring numbers, a span. Texts that no block parts are a line: they are read as
one sentence.
"""

from collections.abc import Iterable
from itertools import accumulate

from lxml.html import HtmlElement

from servers.fetch.reading.html.tree import BLOCKS

__all__ = ["Span", "Texts"]

Span = tuple[int, int]
"""The number of the first text, and the one after the last."""
_UNREAD = frozenset(("script", "style", "template", "noscript"))


class Texts:
    """The texts within an element that are more than white space, and which of them are content."""

    def __init__(self, root: HtmlElement) -> None:
        self.root = root
        self.places: list[tuple[HtmlElement, bool, str]] = []
        """The element that each stands in or, where it is True, after; and the text."""
        self.lines: list[int] = []
        """The line of each: lines have numbers, too."""
        self.spans: dict[HtmlElement, Span] = {}
        self._line = 0
        self._linked: list[int] = []
        self._walk(root, False)
        self._sizes = [len(text.strip()) for _, _, text in self.places]
        self._all = [0, *accumulate(self._sizes)]
        self._links = [0, *accumulate(self._linked)]
        self.kept = bytearray(len(self.places))
        """1 for each text that is content."""
        self._content = [0]

    def _walk(self, element: HtmlElement, linked: bool) -> None:
        first = len(self.places)
        tag = element.tag
        linked = linked or tag == "a"
        block = tag in BLOCKS
        self._line += block
        text = element.text
        if text and tag not in _UNREAD and not text.isspace():
            self._add(element, False, text, linked)
        for child in element:
            self._walk(child, linked)
            tail = child.tail
            if tail and not tail.isspace():
                self._add(child, True, tail, linked)
        self.spans[element] = first, len(self.places)
        self._line += block

    def _add(self, element: HtmlElement, follows: bool, text: str, linked: bool) -> None:
        self.places.append((element, follows, text))
        self.lines.append(self._line)
        self._linked.append(len(text.strip()) if linked else 0)

    def size(self, span: Span) -> int:
        """Characters of some texts."""
        return self._all[span[1]] - self._all[span[0]]

    def linked(self, span: Span) -> int:
        """How many of them are in links."""
        return self._links[span[1]] - self._links[span[0]]

    def content(self, span: Span) -> int:
        """How many of them are content, as of the last `count`."""
        return self._content[span[1]] - self._content[span[0]]

    def count(self) -> None:
        """Counts the characters of content."""
        sizes = (size if kept else 0 for size, kept in zip(self._sizes, self.kept, strict=True))
        self._content = [0, *accumulate(sizes)]

    def put(self, span: Span, *, kept: bool) -> None:
        """Makes some texts content, or none."""
        self.kept[span[0] : span[1]] = bytes((kept,)) * (span[1] - span[0])

    def said(self, span: Span) -> str:
        """Some texts as one."""
        return "".join(text for _, _, text in self.places[span[0] : span[1]])

    def holder(self, number: int) -> HtmlElement:
        """The element that a text stands in."""
        element, follows, _ = self.places[number]
        return element.getparent() if follows else element

    def within(self, elements: Iterable[HtmlElement]) -> int:
        """Characters of all texts within some elements."""
        return sum(self.size(self.spans[one]) for one in elements)
