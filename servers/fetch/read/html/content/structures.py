"""Completes structures, after single lines were chosen: tables, lists, similar blocks, paragraphs, captions and
footnotes. If enough of a structure is kept, or enough of the text around it, the rest of the structure is kept too.
"""

from bisect import bisect
from collections.abc import Hashable
from itertools import accumulate, pairwise
from operator import itemgetter

from servers.common.html.markup.footnotes import NOTE

from .declarations import letters_of
from .evidence import is_heading
from .lines import KINDS, Block, Line, Lines, sizes_of
from .roles import (
    LINK_SHARE,
    MAX_LABEL,
    PARAGRAPH_TAGS,
    is_caption,
    is_furniture,
    is_text_in,
    leads_away,
)

_PART_TAGS = ("pre", "math")
_PART_KINDS = tuple(map(KINDS.index, ("table", "dl", "blockquote", "details")))
"""A line in one of these elements or landmarks is part of the text around it, even if it is unlikely to be
content."""
_WHOLE_TAGS = frozenset(("table", "ul", "ol"))
"""Elements that are kept as a whole if at least `_WHOLE_SHARE` of their text is kept."""
_WHOLE_SHARE = 0.8
_BLOCK_SHARE = 0.95
"""If at least this share of a block's text is kept, the rest is kept too, unless it leads elsewhere."""
_MIN_HEADERS = 2
"""Minimum number of headers at the beginning of a data table."""
_MIN_ITEMS, _MIN_KEPT_SHARE = 5, 0.8
"""If there are at least five similar blocks, and at least this share of them is kept, all are kept."""
_LIST_TAGS = ("ul", "ol")
_COLONS = (":", "\uff1a")
_PARAGRAPH_SHARE = 0.4
"""If at least this share of the text of an element's paragraphs is kept, all of them are kept."""
_MIN_PROBABILITY = 0.1
"""A line with a lower probability is not content, even if content surrounds it."""
_MIN_TABLE_PROBABILITY = 0.15
"""A table with a lower probability, before or after all content, is navigation, such as "Prev", "Up" and "Next"."""
_MAX_PICTURE_CAPTION = 200
"""Maximum length of a caption that is not marked as one, in characters."""
_CELL_TAGS = ("td", "th")
_LABELED_TAGS = ("pre", "blockquote")
"""Elements that sites often put into a block with a title and buttons."""
_MAX_WIDGET_LINES = 100
"""Maximum number of lines in a block that consists of code and labels."""
_PRE = KINDS.index("pre")


def keep_declared(page: Lines, parts: frozenset[str], keep: list[bool]) -> None:
    """Keep the blocks whose text the page declares to be a part of its subject, such as the ingredients of a recipe:
    a short line such as "2 eggs" does not look like content."""
    longest = max(map(len, parts), default=0)
    letters = [letters_of(line.text) for line in page.lines] if parts else []
    size = [0, *accumulate(map(len, letters))]
    for block in page.blocks if parts else ():
        numbers = range(block.first, block.end)
        # A block with the same lines as its parent has the same text.
        is_alone = block.parent is not None and block.parent.end - block.parent.first == len(numbers)
        if is_alone or not 0 < size[block.end] - size[block.first] <= longest:
            continue
        if "".join(letters[block.first : block.end]) in parts and not is_furniture(page.lines[block.first]):
            keep[block.first : block.end] = [True] * len(numbers)


def complete_blocks(page: Lines, probabilities_by_line: list[float], keep: list[bool]) -> None:
    """Keep the rest of a list, a table or another block that is mostly kept. Inner blocks come first. A list of terms
    is kept as a whole if any of it is kept."""
    lines = page.lines
    for block in reversed(page.blocks):
        numbers = range(block.first, block.end)
        size = sum(len(lines[number].text) for number in numbers)
        kept_size = sum(len(lines[number].text) for number in numbers if keep[number])
        if not kept_size or kept_size == size:
            continue
        tag = block.element.tag
        if tag == "dl" or (tag in _WHOLE_TAGS and kept_size >= _WHOLE_SHARE * size and _is_innermost(block)):
            keep[block.first : block.end] = [True] * len(numbers)
        elif kept_size >= _BLOCK_SHARE * size:
            for number in numbers:
                # In a kept block, code, formulas, headings, cells and quotes are content even if they are unlikely.
                line = lines[number]
                is_part = line.block.element.tag in _PART_TAGS or any(map(line.enclosing.__getitem__, _PART_KINDS))
                likely = is_part or is_heading(line) or probabilities_by_line[number] >= _MIN_PROBABILITY
                keep[number] = keep[number] or (likely and not leads_away(line, block))


def complete_paragraphs(page: Lines, keep: list[bool]) -> None:
    """Keep all paragraphs of an element if two fifths of their text are kept: the parts of a text belong together,
    even if it is long or its paragraphs differ.
    """
    siblings: dict[int, list[int]] = {}
    for number, line in enumerate(page.lines):
        block = line.block
        # A line directly in a block of several lines belongs to the paragraphs inside that block.
        holder = block if block.end - block.first > 1 else block.parent
        if holder is not None and block.element.tag in PARAGRAPH_TAGS and not leads_away(line, block):
            siblings.setdefault(id(holder), []).append(number)
    for numbers in siblings.values():
        kept_size = sum(len(page.lines[number].text) for number in numbers if keep[number])
        if kept_size >= _PARAGRAPH_SHARE * sum(len(page.lines[number].text) for number in numbers):
            for number in numbers:
                keep[number] = True


def complete_tables(page: Lines, probabilities_by_line: list[float], keep: list[bool]) -> None:
    """Keep data tables, lists of terms, code, and the only quote of a page, if at least half of the text around them
    is kept. If a page has several quotes, these often repeat the posts of a thread.
    """
    size = [0, *accumulate(len(line.text) for line in page.lines)]
    kept_size = [
        0,
        *accumulate(len(line.text) if is_kept else 0 for line, is_kept in zip(page.lines, keep, strict=True)),
    ]
    # For each line, the number of lines before it that are neither code nor labels.
    prose = [0, *accumulate(not line.enclosing[_PRE] and len(line.text) > MAX_LABEL for line in page.lines)]
    quotes = [block for block in page.blocks if block.element.tag == "blockquote"]
    quote = quotes[0] if len(quotes) == 1 else None
    for block in page.blocks:
        tag = block.element.tag
        is_whole = tag in ("dl", "pre") or (tag == "table" and _is_innermost(block)) or block is quote
        if not is_whole:
            continue
        lines = page.lines[block.first : block.end]
        outer, parent = block, block.parent
        while parent is not None and (
            parent.element.tag == "figure"
            or parent.end - parent.first == len(lines)
            # The parent adds only labels to code or a quote: a title, the name of a language or author, a button.
            or (
                tag in _LABELED_TAGS
                and parent.end - parent.first <= _MAX_WIDGET_LINES
                and prose[parent.first] == prose[block.first]
                and prose[block.end] == prose[parent.end]
            )
        ):
            outer, parent = parent, parent.parent
        if not lines or parent is None or is_furniture(lines[0]):
            continue
        chars = size[block.end] - size[block.first]
        around = size[parent.end] - size[parent.first] - chars
        around_kept = (
            kept_size[parent.end] - kept_size[parent.first] - (kept_size[block.end] - kept_size[block.first])
        )
        # Links in code and below a row of headers are data; other links lead elsewhere.
        is_headed = len(lines) > _MIN_HEADERS and all(line.block.element.tag == "th" for line in lines[:_MIN_HEADERS])
        is_data = tag == "pre" or is_headed or sum(line.linked for line in lines) < LINK_SHARE * chars
        is_navigation = False
        if tag == "table" and (kept_size[block.first] == 0 or kept_size[block.end] == kept_size[-1]):
            expected = sum(
                probabilities_by_line[number] * len(page.lines[number].text)
                for number in range(block.first, block.end)
            )
            is_navigation = expected < _MIN_TABLE_PROBABILITY * chars
        if 2 * around_kept >= around and is_data and not is_navigation:
            # The labels of a quote are kept, since they name its author; those of code are actions.
            completed_block = outer if block is quote else block
            keep[completed_block.first : completed_block.end] = [True] * (completed_block.end - completed_block.first)


def complete_rows(page: Lines, keep: list[bool]) -> None:
    """Keep all cells of a row, such as the name and the type of a function, if half of its text is kept."""
    for block in page.blocks:
        numbers = range(block.first, block.end)
        if block.element.tag == "tr" and any(map(keep.__getitem__, numbers)):
            kept_size, size = sizes_of(page.lines, keep, block)
            if 2 * kept_size >= size and all(
                page.lines[number].block.element.tag in _CELL_TAGS for number in numbers
            ):
                keep[block.first : block.end] = [True] * len(numbers)


def complete_introduced(page: Lines, keep: list[bool]) -> None:
    """Keep a list that a kept sentence before it introduces with a colon."""
    for block in page.blocks:
        before = block.first - 1
        if block.element.tag not in _LIST_TAGS or before < 0 or block.first == block.end:
            continue
        line, outer = page.lines[before], block
        while outer.parent is not None and outer.parent.first == block.first:
            outer = outer.parent
        if keep[before] and line.text.endswith(_COLONS) and line.block.parent is outer.parent:
            keep[block.first : block.end] = [True] * (block.end - block.first)


def complete_items(page: Lines, keep: list[bool]) -> None:
    """If most blocks of a large group of similar blocks with the same parent have kept text, keep the others too,
    except for links that lead elsewhere."""
    groups: dict[Hashable, list[Block]] = {}
    for block in page.blocks:
        if block.first < block.end and block.parent is not None:
            key = block.parent, block.element.tag, block.element.get("class")
            groups.setdefault(key, []).append(block)
    for group in groups.values():
        omitted = [block for block in group if not any(keep[block.first : block.end])]
        if len(group) < _MIN_ITEMS or len(omitted) > (1 - _MIN_KEPT_SHARE) * len(group):
            continue
        for block in omitted:
            keep[block.first : block.end] = [
                not leads_away(line, block) for line in page.lines[block.first : block.end]
            ]


def complete_captions(page: Lines, keep: list[bool]) -> None:
    """Keep the captions of figures whose table, code or text is kept."""
    for block in page.blocks:
        if block.element.tag == "figure" and any(keep[block.first : block.end]):
            for number in range(block.first, block.end):
                keep[number] = keep[number] or is_caption(page.lines[number])


def complete_picture_captions(lines: list[Line], keep: list[bool]) -> None:
    """Keep a short text below a picture between kept paragraphs of the same block."""
    kept_lines: list[tuple[int, Line]] = [(number, line) for number, line in enumerate(lines) if keep[number]]
    for number, (before, line) in enumerate(pairwise(lines), 1):
        if keep[number] or line.pictures == before.pictures or len(line.text) > _MAX_PICTURE_CAPTION:
            continue
        block = line.block
        while block.parent is not None and block.parent.end - block.parent.first == 1:
            block = block.parent
        place = bisect(kept_lines, number, key=itemgetter(0))
        neighbors = (other for _, other in kept_lines[max(0, place - 1) : place + 1])
        is_text = line.linked < LINK_SHARE * len(line.text)
        if is_text and 0 < place < len(kept_lines) and all(is_text_in(other, block.parent) for other in neighbors):
            keep[number] = True


def complete_notes(page: Lines, keep: list[bool]) -> None:
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


def keep_headline(lines: list[Line], keep: list[bool]) -> None:
    """Keep the only `h1` of a page if content follows it, because it is then the title of the content."""
    headlines = [number for number, line in enumerate(lines) if line.block.element.tag == "h1"]
    if len(headlines) == 1 and any(keep[headlines[0] :]):
        line = lines[headlines[0]]
        keep[headlines[0]] |= not is_furniture(line) and line.linked < LINK_SHARE * len(line.text)


def _is_innermost(block: Block) -> bool:
    """Return True if a table or list contains no other table and no `h1` or `h2`, so that it is not used for
    layout."""
    return next(block.element.iterdescendants("table", "h1", "h2"), None) is None
