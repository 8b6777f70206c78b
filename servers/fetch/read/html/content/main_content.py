"""Reduces a page to its main content, and counts the omitted text.

Each line has a probability of being content (`forest`). The lines are chosen that give the characters the
highest expected F1; so if there is little evidence, more of a page is kept, not less. The parts of a recipe that the
page declares are kept too. Then structures are completed:
a term and its description, a table, a list, or a heading and its section is kept as a whole, and so are lines
surrounded by content, unless they are links to something else. Of several copies of a block, one is kept (`copies`).
Omitted text is counted by the landmark that it is in, such as `nav`.
"""

from collections import Counter
from itertools import accumulate, compress, islice
from typing import NamedTuple

from lxml.etree import strip_elements
from lxml.html import HtmlElement

from servers.common.html.tree import BLOCKS, MAX_CAPTION_LENGTH, drop, length

from .actions import omit_actions, omit_subscriptions
from .authors import complete_authors
from .copies import find_copies, find_surrounding_links
from .declarations import Declarations
from .evidence import is_heading, measure_lines
from .forest import load_forest
from .lines import KINDS, Line, Lines
from .manuals import complete_manual, complete_sections, complete_sections_of_code
from .pairs import complete_names, complete_pairs
from .profiles import omit_profiles
from .roles import LANDMARK_TAGS, LINK_SHARE, is_caption, is_furniture
from .structures import (
    complete_blocks,
    complete_captions,
    complete_introduced,
    complete_items,
    complete_notes,
    complete_paragraphs,
    complete_picture_captions,
    complete_rows,
    complete_tables,
    keep_declared,
    keep_headline,
)

_MAX_ELEMENTS = 40_000
"""Maximum number of elements of a page to judge. A line takes about 150 microseconds."""
_INDIVISIBLE = ("pre", "math")
"""Elements that are kept with all that they contain, if they contain content."""
_MEANINGFUL_EMPTY = frozenset(("br", "hr", "td", "th", "wbr", "input"))
_MIN_NAVIGATION = 20
"""Minimum number of links before the headline that count as navigation."""
_LINKED_SHARE = 0.8
"""An `h1` with at least this share of links is not the headline."""
_SMALL_SHARE = 0.25
"""If less than this share of a page's text is kept, the outline of the rest is listed."""
_MIN_PAGE_LENGTH = 200
"""A page with fewer characters is too short to be judged: all text outside landmarks is content."""
_COUNTED_LANDMARKS = ("nav", "header", "footer", "aside", "form", "dialog", "toolbar", "button")
"""The landmarks for which omitted text is counted separately."""


class Content(NamedTuple):
    """A body reduced to the main content, and the amount of omitted text."""

    body: HtmlElement
    kept: int
    """Number of characters of kept text."""
    left: dict[str, int]
    """Number of characters of omitted text by landmark; copies count as `repeated`."""
    outline: list[str]
    """The omitted headings, if the content is small."""

    @property
    def is_small(self) -> bool:
        """True if most of the page is omitted."""
        return self.kept < _SMALL_SHARE * (self.kept + sum(self.left.values()))


def main_content(root: HtmlElement, declared: Declarations, *, pictures: bool) -> Content | None:
    """Return the main content of a page, judged also by the page's declarations; None if there is no text, or too
    much.

    With `pictures`, pictures next to the content are kept. The tree is changed unless None is returned.
    """
    body = root.find("body")
    too_many = next(islice(root.iter(), _MAX_ELEMENTS, None), None) is not None
    if body is None or too_many:
        return None
    page = Lines(body)
    if not page.places:
        return None
    if not page.lines:
        # All text is in form fields, which have no lines.
        return _count(body, page, [], set())
    keep = choose(page, load_forest().judge(measure_lines(page, declared)), declared.parts)
    copies = find_copies(page, keep) | find_surrounding_links(page, keep)
    for number in copies:
        keep[number] = False
    content = _count(body, page, keep, copies)
    if not pictures:
        strip_elements(body, "img", with_tail=False)
    with_content = _remove_omitted(page, keep, captions=pictures)
    _prune(body, with_content)
    return content


def choose(
    page: Lines, probabilities_by_line: list[float], declared_parts: frozenset[str] = frozenset()
) -> list[bool]:
    """Return a boolean for each line: True if it is content."""
    if sum(len(line.text) for line in page.lines) < _MIN_PAGE_LENGTH:
        keep = [not is_furniture(line) for line in page.lines]
    else:
        keep = _choose_content(page.lines, probabilities_by_line)
    if not any(keep):
        return [True] * len(keep)
    keep_declared(page, declared_parts, keep)
    _complete(page, probabilities_by_line, keep)
    return keep


def _choose_content(lines: list[Line], probabilities_by_line: list[float]) -> list[bool]:
    """Choose the likely lines. If most of their text is a long navigation before the headline, choose again without
    those links."""
    keep = _choose_likely(lines, probabilities_by_line)
    headline = next((number for number, line in enumerate(lines) if _may_be_headline(line)), 0)
    links = {number for number, line in enumerate(lines[:headline]) if line.linked >= LINK_SHARE * len(line.text)}
    linked = sum(len(lines[number].text) for number in links if keep[number])
    kept_size = sum(len(line.text) for line in compress(lines, keep))
    text = sum(len(line.text) for line in lines[headline:] if line.linked < LINK_SHARE * len(line.text))
    if len(links) < _MIN_NAVIGATION or 2 * linked < kept_size or text < _MIN_PAGE_LENGTH:
        return keep
    likely = (0.0 if number in links else value for number, value in enumerate(probabilities_by_line))
    return _choose_likely(lines, list(likely))


def _may_be_headline(line: Line) -> bool:
    is_headline = line.block.element.tag == "h1" and not is_furniture(line)
    return is_headline and line.linked < _LINKED_SHARE * len(line.text)


def _choose_likely(lines: list[Line], probabilities_by_line: list[float]) -> list[bool]:
    """Choose the lines with the highest expected F1: twice the number of correct characters, divided by the sum of
    the numbers of chosen characters and of content characters."""
    order = sorted(range(len(lines)), key=probabilities_by_line.__getitem__, reverse=True)
    sizes = [len(lines[number].text) for number in order]
    right = list(accumulate(probabilities_by_line[number] * size for number, size in zip(order, sizes, strict=True)))
    total = right[-1]
    expected = [characters / (size + total) for characters, size in zip(right, accumulate(sizes), strict=True)]
    best = max(range(len(order)), key=expected.__getitem__)
    keep = [False] * len(lines)
    for number in order[: best + 1]:
        keep[number] = True
    return keep


def _complete(page: Lines, probabilities_by_line: list[float], keep: list[bool]) -> None:
    """Complete structures. Each step uses the lines that the steps before it have kept."""
    complete_blocks(page, probabilities_by_line, keep)
    complete_paragraphs(page, keep)
    complete_tables(page, probabilities_by_line, keep)
    complete_pairs(page, keep)
    complete_manual(page, keep)
    complete_rows(page, keep)
    for block in page.blocks:
        if block.element.tag == "dl" and any(keep[block.first : block.end]):
            keep[block.first : block.end] = [True] * (block.end - block.first)
    complete_introduced(page, keep)
    complete_items(page, keep)
    complete_sections(page, keep)
    complete_sections_of_code(page, keep)
    complete_names(page, keep)
    complete_authors(page, keep)
    complete_captions(page, keep)
    complete_picture_captions(page.lines, keep)
    complete_notes(page, keep)
    omit_actions(page.lines, keep)
    omit_subscriptions(page, keep)
    lines = page.lines
    # Keep the heading of kept text.
    for number in reversed(range(len(lines) - 1)):
        keep[number] = keep[number] or (keep[number + 1] and is_heading(lines[number]))
    omit_profiles(page, keep)
    keep_headline(lines, keep)


def _count(body: HtmlElement, page: Lines, keep: list[bool], copies: set[int]) -> Content:
    """Count the characters of kept and omitted texts, without surrounding white space."""
    omitted: Counter[str] = Counter()
    size = 0
    for place in page.places:
        if place.line >= 0 and keep[place.line]:
            size += len(place.text.strip())
            continue
        if place.line in copies:
            name = "repeated"
        elif place.line < 0:
            name = "fields"
        else:
            enclosing = page.lines[place.line].enclosing
            name = next((kind for kind in _COUNTED_LANDMARKS if enclosing[KINDS.index(kind)]), "elsewhere")
        omitted[name] += len(place.text.strip())
    content = Content(body, size, dict(omitted.most_common()), [])
    if content.is_small:
        others = (
            line.text
            for number, line in enumerate(page.lines)
            if is_heading(line) and not keep[number] and number not in copies
        )
        content.outline.extend(others)
    return content


def _remove_omitted(page: Lines, keep: list[bool], *, captions: bool) -> set[HtmlElement]:
    """Remove the omitted texts from the tree, except, with `captions`, those in captions. Return the elements that
    contain content."""
    with_content: set[HtmlElement] = set()
    for element, follows, _, number in page.places:
        if number >= 0 and keep[number]:
            holder = element.getparent() if follows else element
            while holder is not None and holder not in with_content:
                with_content.add(holder)
                holder = holder.getparent()
        elif number >= 0 and not (captions and is_caption(page.lines[number])):
            setattr(element, "tail" if follows else "text", " ")
    return with_content


def _prune(element: HtmlElement, with_content: set[HtmlElement]) -> None:
    """Remove all elements except those that contain content, and the pictures next to it."""
    for child in list(element):
        if child in with_content:
            if child.tag not in _INDIVISIBLE:
                _prune(child, with_content)
        # An empty element marks a position in a line: removing it would join the text on both sides.
        elif not (
            child.tag in _MEANINGFUL_EMPTY
            or _is_picture(child)
            or (child.tag not in BLOCKS and next(child.iter("img"), None) is None and not length(child))
        ):
            drop(child)


def _is_picture(element: HtmlElement) -> bool:
    """Return True if an element contains a picture, and no text except its caption."""
    if element.tag in LANDMARK_TAGS or next(element.iter("img"), None) is None:
        return False
    captions = sum(length(caption) for caption in element.iter("figcaption"))
    return length(element) <= captions <= MAX_CAPTION_LENGTH
