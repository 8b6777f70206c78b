"""Finds blocks that a page contains twice, such as for wide and for narrow screens, or repeated slides of a carousel.

A copy is a block of at least two lines with the same lines and links as an earlier block below the same headings.
Text that may repeat for a reason is kept: table rows, terms, code, steps in panels for different systems, text under
another heading, and everything in a manual, whose functions share parameters.

Links that a page has both before and after its text, such as those to the previous and the next message, are
navigation. Both copies are omitted, and so are all other links in their list.
"""

from collections.abc import Hashable
from itertools import accumulate

from servers.common.html.tree import HEADINGS

from .lines import KINDS, Block, Lines

_MIN_CHARACTERS = 40
"""Minimum length in characters of a block whose repetition is not accidental."""
_OUTLINE_TAGS = ("dt", "pre")
_MIN_TERMS = 8
"""Minimum number of terms and examples in a manual."""
_REPEATABLE = tuple(map(KINDS.index, ("table", "dl", "pre", "details")))
"""The numbers of landmarks whose parts may repeat for a reason."""
_MIN_LINKS, _MAX_PROSE_LINKS = 0.4, 0.2
"""Minimum share of links in a line that is navigation, and the maximum in a line of a text."""
_LIST_TAGS, _MIN_LISTED = ("ul", "ol"), 0.5
"""The tags of lists, and the minimum share of copies among a list's lines for all of its links to be navigation."""
_MIN_PROSE, _MIN_BETWEEN_SHARE = 200, 0.9
"""Minimum length of a page's text in characters, and the minimum share of it between two copies of navigation."""
_BASE, _MODULUS = 1_000_003, (1 << 61) - 1
"""The base and the modulus, a prime number, of the polynomial hash of a block's lines."""
_NO_LEVEL = 7
"""The level of a block without headings, below all of them."""


def find_copies(page: Lines, keep: list[bool]) -> set[int]:
    """Return the numbers of the kept lines that repeat other kept lines."""
    outline = sum(
        is_kept for is_kept, line in zip(keep, page.lines, strict=True) if line.block.element.tag in _OUTLINE_TAGS
    )
    if outline >= _MIN_TERMS:
        return set()
    blocks = _Blocks(page)
    firsts: dict[Hashable, Block] = {}
    copies: set[int] = set()
    end = 0
    for block in page.blocks:
        if block.first < end or not blocks.may_be_copied(block):
            continue
        first = firsts.setdefault(blocks.key(block), block)
        if first.end <= block.first and blocks.are_equal(first, block):
            end = block.end
            pairs = zip(range(first.first, first.end), range(block.first, end), strict=True)
            copies.update(number for original, number in pairs if keep[original] and keep[number])
    return copies


def find_surrounding_links(page: Lines, keep: list[bool]) -> set[int]:
    """Return the numbers of the kept lines that are links, and occur in the same order before and after the text."""
    prose = [
        0,
        *accumulate(
            len(line.text) if is_kept and line.linked < _MAX_PROSE_LINKS * len(line.text) else 0
            for line, is_kept in zip(page.lines, keep, strict=True)
        ),
    ]
    if prose[-1] < _MIN_PROSE:
        return set()
    firsts: dict[Hashable, int] = {}
    pairs: dict[int, int] = {}
    for number, line in enumerate(page.lines):
        if line.linked < _MIN_LINKS * len(line.text) or any(map(line.enclosing.__getitem__, _REPEATABLE)):
            continue
        first = firsts.setdefault((line.text, *(link.get("href") for link in line.links)), number)
        if prose[number] - prose[first] >= _MIN_BETWEEN_SHARE * prose[-1]:
            pairs[number] = first
    adjacent_pairs = (
        (number, first)
        for number, first in pairs.items()
        if pairs.get(number - 1) == first - 1 or pairs.get(number + 1) == first + 1
    )
    copies = {number for pair in adjacent_pairs for number in pair if keep[number]}
    for block in page.blocks if copies else ():
        numbers = range(block.first, block.end)
        if block.element.tag in _LIST_TAGS and len(copies.intersection(numbers)) >= _MIN_LISTED * len(numbers) > 0:
            links = (n for n in numbers if page.lines[n].linked >= _MAX_PROSE_LINKS * len(page.lines[n].text))
            copies.update(n for n in links if keep[n])
    return copies


class _Blocks:
    """The texts of blocks, with their links, and the headings above them, for comparison."""

    def __init__(self, page: Lines) -> None:
        self._texts = [(line.text, *(link.get("href") for link in line.links)) for line in page.lines]
        self._lines = page.lines
        self._chars = [0, *accumulate(len(line.text) for line in page.lines)]
        self._hashes = list(
            accumulate(map(hash, self._texts), lambda total, text: (total * _BASE + text) % _MODULUS, initial=0)
        )
        self._headings: list[tuple[tuple[int, str], ...]] = []
        """The headings above each line, highest level first."""
        self._levels: dict[Block, int] = {}
        """The highest level of the headings in each block."""
        above: tuple[tuple[int, str], ...] = ()
        for line in page.lines:
            self._headings.append(above)
            if line.block.element.tag in HEADINGS:
                level = int(line.block.element.tag[1])
                block: Block | None = line.block
                while block is not None and level < self._levels.get(block, _NO_LEVEL):
                    self._levels[block] = level
                    block = block.parent
                above = (*(heading for heading in above if heading[0] < level), (level, line.text))

    def may_be_copied(self, block: Block) -> bool:
        """Return True if a block has several lines, enough text, and no element whose texts may repeat."""
        if block.end - block.first < 2 or self._chars[block.end] - self._chars[block.first] < _MIN_CHARACTERS:
            return False
        return not any(map(self._lines[block.first].enclosing.__getitem__, _REPEATABLE))

    def key(self, block: Block) -> Hashable:
        """Return a key that is the same for equal texts below the same headings."""
        power = pow(_BASE, block.end - block.first, _MODULUS)
        level = self._levels.get(block, _NO_LEVEL)
        above = tuple(heading for heading in self._headings[block.first] if heading[0] < level)
        return (self._hashes[block.end] - self._hashes[block.first] * power) % _MODULUS, above

    def are_equal(self, first: Block, second: Block) -> bool:
        """Return True if two blocks with equal keys have equal texts."""
        return self._texts[first.first : first.end] == self._texts[second.first : second.end]
