"""The main content of a page: the lines that are most likely content, whole structures, and a count of what is left.

Each line has a chance (`chances`). Those are kept that make the expected F1 of the words kept highest, so that of a
page that says little for itself more is kept, not less. Then structures are made whole: a term and what it means, a
table, a list, a heading and its section are content together, and so is what stands in the midst of content without
leading away. All other text is counted, by the landmark that it stands in.
"""

from collections import Counter
from itertools import accumulate, islice
from typing import NamedTuple

from lxml.etree import strip_elements
from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, LONGEST_CAPTION, drop, length
from servers.fetch.read.html.content.chances import chances
from servers.fetch.read.html.content.evidence import is_heading
from servers.fetch.read.html.content.lines import KINDS, Block, Line, Lines
from servers.fetch.read.html.content.said import Said

_MOST_ELEMENTS = 40_000
"""Of a page whose main content is looked for: judging a line takes about 150 microseconds."""
_AROUND_CONTENT = ("header", "nav", "footer", "aside", "form")
_WHOLE = ("pre", "math")
_KEPT_EMPTY = frozenset(("br", "hr", "td", "th", "wbr", "input"))
_TOGETHER = frozenset(("table", "ul", "ol", "dl"))
"""Elements of which all is content where most is."""
_MOSTLY = 0.8
_NEARLY = 0.95
"""The share of a block's text from which on the rest of it is content where it does not lead away."""
_PARAGRAPHS = ("p", "div")
_SOME = 0.4
"""The share of the paragraphs beside each other from which on all of them are content."""
_UNLIKELY = 0.03
"""The chance of a line that is no content, even in the midst of it."""
_LINKED = 0.5
"""The share of links in a line that leads away."""
_MANUAL, _OUTLINED = 0.75, 0.45
"""The shares of a page that are content where it is a manual, and where it may be."""
_FEWEST = 8
"""The terms and examples that it has."""
_OUTLINE = ("dt", "pre")
_SMALL = 0.25
"""The share of a page's text that is so little that its outline is told."""
_SHORT = 200
"""Characters of a page that is too short to be judged: all of it is content that is in no landmark around it."""
_FURNITURE = ("nav", "footer", "toolbar", "dialog")
_FURNITURE_KINDS = tuple(map(KINDS.index, _FURNITURE))
_NAMED = ("nav", "header", "footer", "aside", "form", "dialog", "toolbar", "button")
"""The landmarks by which what is left out is counted."""


class Content(NamedTuple):
    """A body that holds the main content alone, and what was left out of it."""

    body: HtmlElement
    kept: int
    """Characters of text that are in it."""
    left: dict[str, int]
    """Characters that are not, by where they stand."""
    outline: list[str]
    """The headings of what is left out, where the content is small."""

    @property
    def is_small(self) -> bool:
        """Whether most of the page is left out."""
        return self.kept < _SMALL * (self.kept + sum(self.left.values()))


def main_content(root: HtmlElement, said: Said, *, pictures: bool) -> Content | None:
    """The main content of a page, by what it says of itself; None where there is no text, or too much to judge.

    With `pictures`, those beside the content stay. The tree is changed where there is an answer.
    """
    body = root.find("body")
    too_many = next(islice(root.iter(), _MOST_ELEMENTS, None), None) is not None
    if body is None or too_many:
        return None
    page = Lines(body)
    if not page.lines:
        return None
    kept = choose(page, chances(page, said))
    content = _counted(body, page, kept)
    if not pictures:
        strip_elements(body, "img", with_tail=False)
    holders = _take_out(page, kept, captions=pictures)
    _prune(body, holders)
    return content


def choose(page: Lines, judged: list[float]) -> list[bool]:
    """For each line whether it is content, by the chances of all."""
    if sum(len(line.text) for line in page.lines) < _SHORT:
        kept = [not any(map(line.within.__getitem__, _FURNITURE_KINDS)) for line in page.lines]
    else:
        kept = _likely(page.lines, judged)
    if not any(kept):
        return [True] * len(kept)
    _complete(page, judged, kept)
    return kept


def _likely(lines: list[Line], judged: list[float]) -> list[bool]:
    """The lines that make the expected F1 highest: twice the characters right, of those kept and those wanted."""
    order = sorted(range(len(lines)), key=judged.__getitem__, reverse=True)
    sizes = [len(lines[number].text) for number in order]
    right = list(accumulate(judged[number] * size for number, size in zip(order, sizes, strict=True)))
    wanted = right[-1]
    expected = [one / (size + wanted) for one, size in zip(right, accumulate(sizes), strict=True)]
    best = max(range(len(order)), key=expected.__getitem__)
    kept = [False] * len(lines)
    for number in order[: best + 1]:
        kept[number] = True
    return kept


def _complete(page: Lines, judged: list[float], kept: list[bool]) -> None:
    """Make structures whole, inner before outer ones."""
    lines = page.lines
    for block in reversed(page.blocks):
        numbers = range(block.first, block.end)
        size = sum(len(lines[number].text) for number in numbers)
        own = sum(len(lines[number].text) for number in numbers if kept[number])
        if not own or own == size:
            continue
        tag = block.element.tag
        if tag == "dl" or (tag in _TOGETHER and own >= _MOSTLY * size and _is_innermost(block)):
            kept[block.first : block.end] = [True] * len(numbers)
        elif own >= _NEARLY * size:
            for number in numbers:
                # Code and formulas are furniture of no page, however short they are.
                likely = judged[number] >= _UNLIKELY or lines[number].block.element.tag in _WHOLE
                kept[number] = kept[number] or (likely and not _leads_away(lines[number], block))
    _complete_paragraphs(page, kept)
    _complete_tables(page, kept)
    _complete_manual(page, kept)
    _head(lines, kept)


def _complete_paragraphs(page: Lines, kept: list[bool]) -> None:
    """Keep all paragraphs of an element where two fifths of them are kept: no part of a text is worth less, however
    long it is, and however alike its paragraphs are."""
    beside: dict[int, list[int]] = {}
    for number, line in enumerate(page.lines):
        block = line.block
        # Bare text stands beside the paragraphs that are in the same block.
        holder = block if block.end - block.first > 1 else block.around
        if holder is not None and block.element.tag in _PARAGRAPHS and not _leads_away(line, block):
            beside.setdefault(id(holder), []).append(number)
    for numbers in beside.values():
        own = sum(len(page.lines[number].text) for number in numbers if kept[number])
        if own >= _SOME * sum(len(page.lines[number].text) for number in numbers):
            for number in numbers:
                kept[number] = True


def _complete_tables(page: Lines, kept: list[bool]) -> None:
    """Keep a table with data or a list of terms that stands in content: short lines are rarely content elsewhere."""
    size = [0, *accumulate(len(line.text) for line in page.lines)]
    own = [0, *accumulate(len(line.text) if one else 0 for line, one in zip(page.lines, kept, strict=True))]
    for block in page.blocks:
        tag = block.element.tag
        if tag != "dl" and (tag != "table" or not _is_innermost(block)):
            continue
        lines = page.lines[block.first : block.end]
        around = block.around
        while around is not None and around.end - around.first == len(lines):
            around = around.around
        if not lines or around is None or any(map(lines[0].within.__getitem__, _FURNITURE_KINDS)):
            continue
        chars = size[block.end] - size[block.first]
        beside = size[around.end] - size[around.first] - chars
        beside_kept = own[around.end] - own[around.first] - (own[block.end] - own[block.first])
        if 2 * beside_kept >= beside and sum(line.linked for line in lines) < _LINKED * chars:
            kept[block.first : block.end] = [True] * len(lines)


def _complete_manual(page: Lines, kept: list[bool]) -> None:
    """Keep all of a manual: a page that is mostly content, with terms and examples, has nothing to leave out but
    what stands in landmarks. Where it is less, links may lead away."""
    lines = page.lines
    size = sum(len(line.text) for line in lines)
    own = sum(len(line.text) for line, one in zip(lines, kept, strict=True) if one)
    outline = [number for number, line in enumerate(lines) if kept[number] and line.block.element.tag in _OUTLINE]
    if own < _OUTLINED * size or len(outline) < _FEWEST:
        return
    block = lines[outline[0]].block
    while not (block.first <= outline[0] and outline[-1] < block.end) and block.around is not None:
        block = block.around
    for number in range(block.first, block.end):
        line = lines[number]
        leads = _leads_away(line, block) if own < _MANUAL * size else _stands_around(line, block)
        kept[number] = kept[number] or not leads


def _stands_around(line: Line, block: Block) -> bool:
    """Whether a line in a block is in a landmark within it that is around content."""
    around = line.block
    while around is not block and around.around is not None:
        if around.element.tag in _AROUND_CONTENT or around.element.get("role") == "navigation":
            return True
        around = around.around
    return False


def _leads_away(line: Line, block: Block) -> bool:
    """Whether a line in a block is about something else: it is a link, or in a landmark that is around content."""
    return line.linked >= _LINKED * len(line.text) or _stands_around(line, block)


def _is_innermost(block: Block) -> bool:
    """Whether a table or list is no layout of the page: it has no other, and no headline."""
    return next(block.element.iterdescendants("table", "h1", "h2"), None) is None


def _head(lines: list[Line], kept: list[bool]) -> None:
    """Keep the heading of what is kept."""
    for number in reversed(range(len(lines) - 1)):
        if kept[number + 1] and is_heading(lines[number]):
            kept[number] = True


def _counted(body: HtmlElement, page: Lines, kept: list[bool]) -> Content:
    """What is kept and what is left out of all texts, in characters without white space at their ends."""
    left: Counter[str] = Counter()
    size = 0
    for place in page.places:
        if place.line >= 0 and kept[place.line]:
            size += len(place.text.strip())
        else:
            left[_landmark(page, place.line)] += len(place.text.strip())
    content = Content(body, size, dict(left.most_common()), [])
    if content.is_small:
        others = (line.text for line, one in zip(page.lines, kept, strict=True) if not one and is_heading(line))
        content.outline.extend(others)
    return content


def _landmark(page: Lines, number: int) -> str:
    if number < 0:
        return "fields"
    within = page.lines[number].within
    return next((kind for kind in _NAMED if within[KINDS.index(kind)]), "elsewhere")


def _take_out(page: Lines, kept: list[bool], *, captions: bool) -> set[HtmlElement]:
    """Take the texts that are left out from the tree, `captions` aside; the elements that hold content."""
    holders: set[HtmlElement] = set()
    for element, follows, _, number in page.places:
        if number >= 0 and kept[number]:
            holder = element.getparent() if follows else element
            while holder is not None and holder not in holders:
                holders.add(holder)
                holder = holder.getparent()
        elif number >= 0 and not (captions and page.lines[number].block.element.tag == "figcaption"):
            setattr(element, "tail" if follows else "text", " ")
    return holders


def _prune(element: HtmlElement, holders: set[HtmlElement]) -> None:
    """Leave what holds content, and the pictures beside it."""
    for child in list(element):
        if child in holders:
            if child.tag not in _WHOLE:
                _prune(child, holders)
        elif not (child.tag in _KEPT_EMPTY or _is_picture(child) or _is_empty(child)):
            drop(child)


def _is_empty(element: HtmlElement) -> bool:
    """Whether an element is no more than a place in a line: to drop it would part the word that it stands in."""
    return element.tag not in BLOCKS and next(element.iter("img"), None) is None and not length(element)


def _is_picture(element: HtmlElement) -> bool:
    """Whether there is a picture in an element, and no text but its caption."""
    if element.tag in _AROUND_CONTENT or next(element.iter("img"), None) is None:
        return False
    captions = sum(length(caption) for caption in element.iter("figcaption"))
    return length(element) <= captions <= LONGEST_CAPTION
