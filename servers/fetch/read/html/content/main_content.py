"""The main content of a page: the most likely lines, completed structures, and the amount of omitted text.

Each line has a probability (`probabilities`). The lines with the highest expected F1 of their words are kept, so if
there is little evidence, more of a page is kept, not less. Then structures are completed: a term and its meaning, a
table, a list, or a heading and its section is kept as a whole, and so are lines surrounded by content that are not
links to something else. One of several copies of a block is kept (`copies`). Omitted text is counted by its landmark.
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Hashable
from itertools import accumulate, compress, islice, pairwise
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import unquote

from lxml.etree import strip_elements
from lxml.html import HtmlElement

from servers.common.html.markup.footnotes import NOTE
from servers.common.html.tree import BLOCKS, MAX_CAPTION_LENGTH, drop, length
from servers.fetch.read.html.content.authors import complete_authors
from servers.fetch.read.html.content.copies import find_copies, find_surrounding_links
from servers.fetch.read.html.content.declarations import Declarations
from servers.fetch.read.html.content.evidence import is_heading
from servers.fetch.read.html.content.lines import IN_BRACKETS, KINDS, Block, Line, Lines
from servers.fetch.read.html.content.pairs import complete_names, complete_pairs
from servers.fetch.read.html.content.probabilities import probabilities
from servers.fetch.read.html.content.profiles import omit_profiles

_MAX_ELEMENTS = 40_000
"""Maximum number of elements of a page to judge. A line takes about 150 microseconds."""
_LANDMARK_TAGS = ("header", "nav", "footer", "aside", "form")
_INDIVISIBLE = ("pre", "math")
_PARTS = tuple(map(KINDS.index, ("table", "dl", "blockquote", "details")))
"""Elements that are always part of the text around them."""
_MEANINGFUL_EMPTY = frozenset(("br", "hr", "td", "th", "wbr", "input"))
_TOGETHER = frozenset(("table", "ul", "ol", "dl"))
"""Elements that are content as a whole if most of their text is."""
_TOGETHER_SHARE = 0.8
"""Minimum share of content in a table or list that is kept as a whole."""
_BLOCK_SHARE = 0.95
"""If at least this share of a block's text is content, the rest is too, unless it leads elsewhere."""
_MIN_HEADERS = 2
"""Minimum number of headers at the beginning of a data table."""
_MIN_ITEMS, _MIN_KEPT_SHARE = 5, 0.8
"""Minimum number of similar blocks. If at least this share of them is kept, all of them are content."""
_SECTIONS, _MIN_SECTIONS = ("section", "div"), 4
"""Elements that contain a section of a manual, and the minimum number of adjacent ones."""
_PARAGRAPHS = ("p", "div")
_LISTS = ("ul", "ol")
_COLONS = (":", "\uff1a")
_PARAGRAPH_SHARE = 0.4
"""If at least this share of adjacent paragraphs is content, all of them are."""
_MIN_PROBABILITY = 0.1
"""A line with a lower probability is not content, even if content surrounds it."""
_MIN_TABLE_PROBABILITY = 0.15
"""A table with a lower probability, before or after all content, is navigation, such as "Prev", "Up" and "Next"."""
_LINK_SHARE = 0.5
"""Minimum share of links in a line that leads elsewhere."""
_MANUAL_SHARE, _OUTLINED_SHARE = 0.75, 0.45
"""Minimum shares of content on a page that is a manual, and on one that may be."""
_MAX_PICTURE_CAPTION, _MIN_PARAGRAPH = 200, 80
"""Maximum length of a caption that is not marked as one, and minimum length of the paragraphs around it."""
_MAX_FORM = 300
"""Maximum length of an invitation to subscribe, in characters."""
_MIN_TERMS = 8
"""Minimum number of terms and examples in a manual."""
_MIN_NAVIGATION = 20
"""Minimum number of links before the headline that are navigation."""
_MIN_DEFINITIONS = 2
"""Minimum number of signatures in a manual."""
_SIGNATURE = re.compile(r"^\([^\W\d]|[^\W\d]\(|::|[-=]>|[\u2192\u21d2]")
"""A call, or what is between a name and its type."""
_CODE_SHARE = 0.5
"""Minimum share of content in the part of a page that describes code."""
_OUTLINE = ("dt", "pre")
_SMALL_SHARE = 0.25
"""If less than this share of a page's text is kept, the outline of the rest is listed."""
_MIN_PAGE_LENGTH = 200
"""A page with fewer characters is too short to be judged: all text outside landmarks is content."""
_FURNITURE_NAMES = ("nav", "footer", "toolbar", "dialog")
_FURNITURE_KINDS = tuple(map(KINDS.index, _FURNITURE_NAMES))
_BUTTON = KINDS.index("button")
_SECTION = KINDS.index("section")
_CELLS = ("td", "th")
_LABELED = ("pre", "blockquote")
"""Elements that may be in a block with a title and buttons."""
_PRE, _DL, _ASIDE = map(KINDS.index, ("pre", "dl", "aside"))
_MAX_LABEL = 40
"""Maximum length of a line that begins with a button and is not a sentence, in characters."""
_MAX_WIDGET_LINES = 100
"""Maximum number of lines in a block that consists of code and labels."""
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
    """Return the main content of a page, taking its own declarations into account; None if there is no text, or too
    much to judge.

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
        # All text is in fields.
        return _count(body, page, [], set())
    keep = choose(page, probabilities(page, declared))
    copies = find_copies(page, keep) | find_surrounding_links(page, keep)
    for number in copies:
        keep[number] = False
    content = _count(body, page, keep, copies)
    if not pictures:
        strip_elements(body, "img", with_tail=False)
    with_content = _remove_omitted(page, keep, captions=pictures)
    _prune(body, with_content)
    return content


def choose(page: Lines, probabilities_by_line: list[float]) -> list[bool]:
    """Return a boolean for each line, True if it is content, given all probabilities."""
    if sum(len(line.text) for line in page.lines) < _MIN_PAGE_LENGTH:
        keep = [not any(map(line.within.__getitem__, _FURNITURE_KINDS)) for line in page.lines]
    else:
        keep = _choose_content(page.lines, probabilities_by_line)
    if not any(keep):
        return [True] * len(keep)
    _complete(page, probabilities_by_line, keep)
    return keep


def _choose_content(lines: list[Line], probabilities_by_line: list[float]) -> list[bool]:
    """Choose the likely lines, without a long navigation before the headline if it would be most of them."""
    keep = _choose_likely(lines, probabilities_by_line)
    headline = next((number for number, line in enumerate(lines) if _may_be_headline(line)), 0)
    links = {number for number, line in enumerate(lines[:headline]) if line.linked >= _LINK_SHARE * len(line.text)}
    linked = sum(len(lines[number].text) for number in links if keep[number])
    kept_size = sum(len(line.text) for line in compress(lines, keep))
    text = sum(len(line.text) for line in lines[headline:] if line.linked < _LINK_SHARE * len(line.text))
    if len(links) < _MIN_NAVIGATION or 2 * linked < kept_size or text < _MIN_PAGE_LENGTH:
        return keep
    likely = (0.0 if number in links else value for number, value in enumerate(probabilities_by_line))
    return _choose_likely(lines, list(likely))


def _may_be_headline(line: Line) -> bool:
    is_furniture = any(map(line.within.__getitem__, _FURNITURE_KINDS))
    return line.block.element.tag == "h1" and not is_furniture and line.linked < _TOGETHER_SHARE * len(line.text)


def _choose_likely(lines: list[Line], probabilities_by_line: list[float]) -> list[bool]:
    """Choose the lines with the highest expected F1: twice the correct characters, divided by the sum of both
    totals."""
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
    """Complete structures, inner before outer ones."""
    lines = page.lines
    for block in reversed(page.blocks):
        numbers = range(block.first, block.end)
        size = sum(len(lines[number].text) for number in numbers)
        kept_size = sum(len(lines[number].text) for number in numbers if keep[number])
        if not kept_size or kept_size == size:
            continue
        tag = block.element.tag
        if tag == "dl" or (tag in _TOGETHER and kept_size >= _TOGETHER_SHARE * size and _is_innermost(block)):
            keep[block.first : block.end] = [True] * len(numbers)
        elif kept_size >= _BLOCK_SHARE * size:
            for number in numbers:
                # Code, formulas, headings, cells and quotes are never boilerplate, however short.
                line = lines[number]
                is_part = line.block.element.tag in _INDIVISIBLE or any(map(line.within.__getitem__, _PARTS))
                likely = is_part or is_heading(line) or probabilities_by_line[number] >= _MIN_PROBABILITY
                keep[number] = keep[number] or (likely and not _leads_away(line, block))
    _complete_paragraphs(page, keep)
    _complete_tables(page, probabilities_by_line, keep)
    complete_pairs(page, keep)
    _complete_manual(page, keep)
    _complete_rows(page, keep)
    for block in page.blocks:
        if block.element.tag == "dl" and any(keep[block.first : block.end]):
            keep[block.first : block.end] = [True] * (block.end - block.first)
    _complete_introduced(page, keep)
    _complete_items(page, keep)
    _complete_sections(page, keep)
    _complete_sections_of_code(page, keep)
    complete_names(page, keep)
    complete_authors(page, keep)
    _complete_captions(page, keep)
    _complete_picture_captions(lines, keep)
    _complete_notes(page, keep)
    _omit_actions(lines, keep)
    _omit_subscriptions(page, keep)
    # Keep the heading of kept text.
    for number in reversed(range(len(lines) - 1)):
        keep[number] = keep[number] or (keep[number + 1] and is_heading(lines[number]))
    omit_profiles(page, keep)
    _keep_headline(lines, keep)


def _complete_paragraphs(page: Lines, keep: list[bool]) -> None:
    """Keep all paragraphs of an element if two fifths of them are kept: the parts of a text belong together, however
    long the text is and however similar its paragraphs are.
    """
    beside: dict[int, list[int]] = {}
    for number, line in enumerate(page.lines):
        block = line.block
        # Text outside elements belongs with the paragraphs in the same block.
        holder = block if block.end - block.first > 1 else block.around
        if holder is not None and block.element.tag in _PARAGRAPHS and not _leads_away(line, block):
            beside.setdefault(id(holder), []).append(number)
    for numbers in beside.values():
        kept_size = sum(len(page.lines[number].text) for number in numbers if keep[number])
        if kept_size >= _PARAGRAPH_SHARE * sum(len(page.lines[number].text) for number in numbers):
            for number in numbers:
                keep[number] = True


def _complete_tables(page: Lines, probabilities_by_line: list[float], keep: list[bool]) -> None:
    """Keep data tables, lists of terms, code, and the only quote of a page, surrounded by content; elsewhere they are
    rarely content. Several quotes often repeat the posts of a thread.
    """
    size = [0, *accumulate(len(line.text) for line in page.lines)]
    kept_size = [
        0,
        *accumulate(len(line.text) if is_kept else 0 for line, is_kept in zip(page.lines, keep, strict=True)),
    ]
    # The number of lines before each line that are neither code nor labels.
    prose = [0, *accumulate(not line.within[_PRE] and len(line.text) > _MAX_LABEL for line in page.lines)]
    quotes = [block for block in page.blocks if block.element.tag == "blockquote"]
    quote = quotes[0] if len(quotes) == 1 else None
    for block in page.blocks:
        tag = block.element.tag
        is_whole = tag in ("dl", "pre") or (tag == "table" and _is_innermost(block)) or block is quote
        if not is_whole:
            continue
        lines = page.lines[block.first : block.end]
        outer, around = block, block.around
        while around is not None and (
            around.element.tag == "figure"
            or around.end - around.first == len(lines)
            # Code or a quote with labels: a title, the name of a language or an author, a button to copy.
            or (
                tag in _LABELED
                and around.end - around.first <= _MAX_WIDGET_LINES
                and prose[around.first] == prose[block.first]
                and prose[block.end] == prose[around.end]
            )
        ):
            outer, around = around, around.around
        if not lines or around is None or any(map(lines[0].within.__getitem__, _FURNITURE_KINDS)):
            continue
        chars = size[block.end] - size[block.first]
        beside = size[around.end] - size[around.first] - chars
        beside_kept = (
            kept_size[around.end] - kept_size[around.first] - (kept_size[block.end] - kept_size[block.first])
        )
        # Links are data in code and below a row of headers; elsewhere they lead away.
        is_headed = len(lines) > _MIN_HEADERS and all(line.block.element.tag == "th" for line in lines[:_MIN_HEADERS])
        is_data = tag == "pre" or is_headed or sum(line.linked for line in lines) < _LINK_SHARE * chars
        is_navigation = False
        if tag == "table" and (kept_size[block.first] == 0 or kept_size[block.end] == kept_size[-1]):
            expected = sum(
                probabilities_by_line[number] * len(page.lines[number].text)
                for number in range(block.first, block.end)
            )
            is_navigation = expected < _MIN_TABLE_PROBABILITY * chars
        if 2 * beside_kept >= beside and is_data and not is_navigation:
            # The labels of a quote name its author; those of code are actions.
            whole = outer if block is quote else block
            keep[whole.first : whole.end] = [True] * (whole.end - whole.first)


def _complete_rows(page: Lines, keep: list[bool]) -> None:
    """Keep the other cells of a row, such as the type beside the name of a function, if most of its text is kept."""
    for block in page.blocks:
        numbers = range(block.first, block.end)
        if block.element.tag == "tr" and any(map(keep.__getitem__, numbers)):
            kept_size, size = _sizes_of(page.lines, keep, block)
            if 2 * kept_size >= size and all(page.lines[number].block.element.tag in _CELLS for number in numbers):
                keep[block.first : block.end] = [True] * len(numbers)


def _sizes_of(lines: list[Line], keep: list[bool], block: Block) -> tuple[int, int]:
    """Return the number of kept characters in a block, and of all."""
    sizes = [len(line.text) for line in lines[block.first : block.end]]
    return sum(compress(sizes, keep[block.first : block.end])), sum(sizes)


def _share_of(lines: list[Line], keep: list[bool], block: Block) -> float:
    """Return the share of a block's characters that is kept. The block has at least one line."""
    kept_size, size = _sizes_of(lines, keep, block)
    return kept_size / size


def _complete_introduced(page: Lines, keep: list[bool]) -> None:
    """Keep a list that a kept sentence before it introduces with a colon."""
    for block in page.blocks:
        before = block.first - 1
        if block.element.tag not in _LISTS or before < 0 or block.first == block.end:
            continue
        line, outer = page.lines[before], block
        while outer.around is not None and outer.around.first == block.first:
            outer = outer.around
        if keep[before] and line.text.endswith(_COLONS) and line.block.around is outer.around:
            keep[block.first : block.end] = [True] * (block.end - block.first)


def _complete_items(page: Lines, keep: list[bool]) -> None:
    """If most of many similar adjacent blocks are kept, keep the others too, except for links that lead elsewhere."""
    groups: dict[Hashable, list[Block]] = {}
    for block in page.blocks:
        if block.first < block.end and block.around is not None:
            key = block.around, block.element.tag, block.element.get("class")
            groups.setdefault(key, []).append(block)
    for group in groups.values():
        omitted = [block for block in group if not any(keep[block.first : block.end])]
        if len(group) < _MIN_ITEMS or len(omitted) > (1 - _MIN_KEPT_SHARE) * len(group):
            continue
        for block in omitted:
            keep[block.first : block.end] = [
                not _leads_away(line, block) for line in page.lines[block.first : block.end]
            ]


def _complete_sections(page: Lines, keep: list[bool]) -> None:
    """Keep a manual's only section without kept text, such as a list of links to related pages."""
    if not any(line.within[_PRE] or line.within[_DL] for line in compress(page.lines, keep)):
        return
    groups: dict[Hashable, list[Block]] = {}
    for block in page.blocks:
        if block.end - block.first > 1 and block.element.tag in _SECTIONS and is_heading(page.lines[block.first]):
            level = page.lines[block.first].block.element.tag
            groups.setdefault((block.around, block.element.get("class"), level), []).append(block)
    for group in groups.values():
        omitted = [block for block in group if not any(keep[block.first + 1 : block.end])]
        if len(group) >= _MIN_SECTIONS and len(omitted) == 1:
            for number in range(omitted[0].first, omitted[0].end):
                keep[number] = not _is_in_landmark(page.lines[number], omitted[0])


def _complete_sections_of_code(page: Lines, keep: list[bool]) -> None:
    """Keep all sections of a page about code, such as the return value of a function, except for links that lead
    elsewhere. At least half of the block with the headline and the code has to be kept.
    """
    lines = page.lines
    code = [number for number, line in enumerate(lines) if keep[number] and line.within[_PRE]]
    headline = next((number for number, line in enumerate(lines) if line.block.element.tag == "h1"), None)
    if not code or headline is None or headline > code[0]:
        return
    block = lines[code[0]].block
    while not (block.first <= headline and code[-1] < block.end) and block.around is not None:
        block = block.around
    kept_size, size = _sizes_of(lines, keep, block)
    if kept_size >= _CODE_SHARE * size:
        for number in range(block.first, block.end):
            line = lines[number]
            # The links in a sentence or in a type lead to what it is about.
            is_text = line.linked < _TOGETHER_SHARE * len(line.text) and not _leads_away(
                line._replace(linked=0), block
            )
            keep[number] = keep[number] or (is_text and line.within[_SECTION] > 0)


def _complete_manual(page: Lines, keep: list[bool]) -> None:
    """Keep all of a manual: if a page with terms and examples is mostly content, only landmarks are omitted. If less
    of it is content, links that lead elsewhere are omitted too. With definitions, only the part of the page around
    them has to be content.
    """
    lines = page.lines
    definitions = _find_definitions(page)
    terms = [number for number, line in enumerate(lines) if keep[number] and line.block.element.tag in _OUTLINE]
    outline = sorted(definitions.union(terms))
    has_terms, is_defined = len(terms) >= _MIN_TERMS, len(definitions) >= _MIN_DEFINITIONS
    if not has_terms and not is_defined:
        return
    block = lines[outline[0]].block
    while not (block.first <= outline[0] and outline[-1] < block.end) and block.around is not None:
        block = block.around
    body = page.blocks[0]
    if max(_share_of(lines, keep, part) for part in ((block, body) if is_defined else (body,))) < _OUTLINED_SHARE:
        return
    is_whole = has_terms and _share_of(lines, keep, body) >= _MANUAL_SHARE
    for number in range(block.first, block.end):
        line = lines[number]
        # The links in a sentence or in a type lead to what it is about.
        is_text = is_whole or number in definitions or (is_defined and line.linked < _TOGETHER_SHARE * len(line.text))
        is_note = line.within[_ASIDE] > 0 and number < outline[-1] and line.linked < _LINK_SHARE * len(line.text)
        leads = _is_in_landmark(line, block) if is_text else _leads_away(line, block)
        keep[number] = keep[number] or is_note or not leads
    if is_defined:
        _complete_introduction(page, keep, block)


def _complete_introduction(page: Lines, keep: list[bool], block: Block) -> None:
    """Keep the text between the title of a manual and the block with its definitions, except for links."""
    lines = page.lines
    around = block
    while around.around is not None and _share_of(lines, keep, around.around) >= _OUTLINED_SHARE:
        around = around.around
    before = range(around.first, block.first)
    headline = next((number for number in before if lines[number].block.element.tag == "h1"), around.first)
    for number in range(headline, block.first):
        row = lines[number].block.around
        # A number in the same row as a link belongs to a table of contents.
        others = lines[row.first : row.end] if row is not None and row.element.tag == "tr" else [lines[number]]
        keep[number] = keep[number] or not any(_leads_away(line, around) for line in others)


def _find_definitions(page: Lines) -> set[int]:
    """Return the numbers of the lines with a signature, such as a function's, to which the page itself links."""
    lines = page.lines
    fragments = {(link.get("href") or "").partition("#")[2] for line in lines for link in line.links}
    definitions: set[int] = set()
    for name in fragments:
        number = page.anchors.get(unquote(name), page.anchors.get(name, len(lines)))
        if number < len(lines) and not is_heading(lines[number]) and lines[number].linked == len(lines[number].text):
            # The definition follows a link to itself.
            number += 1
        # A heading may have only the name, and the next line the signature.
        pair = lines[number : number + 2]
        if any(_SIGNATURE.search(line.text) and pair[0].text.split()[-1] in line.text for line in pair):
            definitions.add(number)
    return definitions


def _complete_captions(page: Lines, keep: list[bool]) -> None:
    """Keep the captions of figures whose table, code or text is kept."""
    for block in page.blocks:
        if block.element.tag == "figure" and any(keep[block.first : block.end]):
            for number in range(block.first, block.end):
                keep[number] = keep[number] or _is_caption(page.lines[number])


def _complete_picture_captions(lines: list[Line], keep: list[bool]) -> None:
    """Keep a short text below a picture between kept paragraphs of the same block."""
    kept_lines: list[tuple[int, Line]] = [(number, line) for number, line in enumerate(lines) if keep[number]]
    for number, (before, line) in enumerate(pairwise(lines), 1):
        if keep[number] or line.pictures == before.pictures or len(line.text) > _MAX_PICTURE_CAPTION:
            continue
        block = line.block
        while block.around is not None and block.around.end - block.around.first == 1:
            block = block.around
        place = bisect(kept_lines, number, key=itemgetter(0))
        beside = (other for _, other in kept_lines[max(0, place - 1) : place + 1])
        is_text = line.linked < _LINK_SHARE * len(line.text)
        if is_text and 0 < place < len(kept_lines) and all(_is_text_in(other, block.around) for other in beside):
            keep[number] = True


def _is_text_in(line: Line, around: Block | None) -> bool:
    """Return True if a line is a paragraph or a heading in a block."""
    block: Block | None = line.block
    while block is not None and block is not around:
        block = block.around
    is_text = is_heading(line) or len(line.text) >= _MIN_PARAGRAPH
    return block is not None and is_text and line.linked < _LINK_SHARE * len(line.text)


def _is_caption(line: Line) -> bool:
    block: Block | None = line.block
    while block is not None and block.element.tag in _PARAGRAPHS:
        block = block.around
    return block is not None and block.element.tag == "figcaption"


def _complete_notes(page: Lines, keep: list[bool]) -> None:
    """Keep the footnotes that kept text refers to."""
    labels = {
        place.element.get(NOTE)
        for place in page.places
        if place.line >= 0 and keep[place.line] and place.element.tag == "sup" and not place.follows
    }
    for block in page.blocks:
        label = block.element.get(NOTE)
        if label is not None and label in labels:
            keep[block.first : block.end] = [True] * (block.end - block.first)


def _omit_actions(lines: list[Line], keep: list[bool]) -> None:
    """Omit the actions beside a section's heading: links in brackets, such as `[edit]`."""
    for number, (before, line) in enumerate(pairwise(lines), 1):
        is_beside = before.block.around is line.block or line.block.around is before.block
        if is_heading(before) and is_beside and line.linked >= _LINK_SHARE * len(line.text):
            keep[number] = keep[number] and IN_BRACKETS.fullmatch(line.text) is None


def _omit_subscriptions(page: Lines, keep: list[bool]) -> None:
    """Omit an invitation to subscribe: a short block between paragraphs, with a form for an email address."""
    lines = page.lines
    for form in page.blocks:
        if form.element.tag != "form" or next(form.element.iterfind(".//input[@type='email']"), None) is None:
            continue
        block: Block | None = None
        around: Block | None = form
        while around is not None and sum(len(line.text) for line in lines[around.first : around.end]) <= _MAX_FORM:
            block, around = around, around.around
        if block is not None and block.first > 0 and block.end < len(lines):
            beside = (block.first - 1, block.end)
            if all(keep[number] and _is_text_in(lines[number], around) for number in beside):
                keep[block.first : block.end] = [False] * (block.end - block.first)


def _is_in_landmark(line: Line, block: Block) -> bool:
    """Return True if a line is in a landmark inside the block that is around content."""
    around = line.block
    while around is not block and around.around is not None:
        if around.element.tag in _LANDMARK_TAGS or around.element.get("role") == "navigation":
            return True
        around = around.around
    return False


def _leads_away(line: Line, block: Block) -> bool:
    """Return True if a line in a block leads elsewhere: it is a link or a button, or is in a landmark around
    content."""
    is_button = line.within[_BUTTON] > 0 and len(line.text) <= _MAX_LABEL
    return is_button or line.linked >= _LINK_SHARE * len(line.text) or _is_in_landmark(line, block)


def _is_innermost(block: Block) -> bool:
    """Return True if a table or list is not used for layout, because it contains no other table and no headline."""
    return next(block.element.iterdescendants("table", "h1", "h2"), None) is None


def _keep_headline(lines: list[Line], keep: list[bool]) -> None:
    """Keep the only `h1` of a page if content follows it, since it is its title, such as the name of a function."""
    headlines = [number for number, line in enumerate(lines) if line.block.element.tag == "h1"]
    if len(headlines) == 1 and any(keep[headlines[0] :]):
        line = lines[headlines[0]]
        in_furniture = any(map(line.within.__getitem__, _FURNITURE_KINDS))
        keep[headlines[0]] |= not in_furniture and line.linked < _LINK_SHARE * len(line.text)


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
            within = page.lines[place.line].within
            name = next((kind for kind in _COUNTED_LANDMARKS if within[KINDS.index(kind)]), "elsewhere")
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
    """Remove the omitted texts except `captions` from the tree, and return the elements that contain content."""
    with_content: set[HtmlElement] = set()
    for element, follows, _, number in page.places:
        if number >= 0 and keep[number]:
            holder = element.getparent() if follows else element
            while holder is not None and holder not in with_content:
                with_content.add(holder)
                holder = holder.getparent()
        elif number >= 0 and not (captions and _is_caption(page.lines[number])):
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
    if element.tag in _LANDMARK_TAGS or next(element.iter("img"), None) is None:
        return False
    captions = sum(length(caption) for caption in element.iter("figcaption"))
    return length(element) <= captions <= MAX_CAPTION_LENGTH
