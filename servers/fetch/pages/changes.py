"""Finds the changes between two texts of a page: the lines that differ, below their headings."""

from bisect import bisect_right
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq

from .passages import Excerpts, Passage, blocks_of, label

_MAX_LINES = 1_500
"""Maximum number of lines of either text to compare. The time grows with the square of this number, or faster for
malicious text."""


def find_changes(old: str, new: str, room: int) -> Excerpts | None:
    """Return the changes, as many as fit into `room` characters: the removed lines, prefixed with "- ", and the added
    ones, prefixed with "+ ". Return None if there are too many different lines to compare.

    Trailing white space and empty lines do not count as changes.
    """
    before, after = _split_lines(old), _split_lines(new)
    lines_before, lines_after = [line for line, _ in before], [line for line, _ in after]
    equal_start = _count_same(lines_before, lines_after)
    equal_end = _count_same(lines_before[equal_start:][::-1], lines_after[equal_start:][::-1])
    middle_before = lines_before[equal_start : len(lines_before) - equal_end]
    middle_after = lines_after[equal_start : len(lines_after) - equal_end]
    if max(len(middle_before), len(middle_after)) > _MAX_LINES:
        return None
    blocks = list(blocks_of(new))
    starts = [block.start for block in blocks]
    parts: list[str] = []
    positions: list[int] = []
    remaining, total = room, 0
    matcher = SequenceMatcher(None, middle_before, middle_after)
    for kind, first, last, first_new, last_new in matcher.get_opcodes():
        if kind == "equal":
            continue
        total += 1
        line_number = equal_start + first_new
        position = after[line_number][1] if line_number < len(after) else len(new)
        lines = [f"- {line}" for line in middle_before[first:last]]
        lines += [f"+ {line}" for line in middle_after[first_new:last_new]]
        block = blocks[max(bisect_right(starts, position) - 1, 0)] if blocks else Passage(0, 0, ())
        part = "\n".join([label(block._replace(start=position)), *lines])
        if not parts:
            part = part[:room]
        if len(part) + 2 <= remaining or not parts:
            parts.append(part)
            positions.append(position)
            remaining -= len(part) + 2
    return Excerpts("\n\n".join(parts), tuple(positions), len(parts), total)


def _count_same(first: list[str], second: list[str]) -> int:
    """Count the equal lines at the beginnings of two lists."""
    return sum(takewhile(bool, map(eq, first, second)))


def _split_lines(text: str) -> list[tuple[str, int]]:
    """Return the lines that are not empty, without trailing white space, each with the offset of its start."""
    lines: list[tuple[str, int]] = []
    position = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            lines.append((line.rstrip(), position))
        position += len(line)
    return lines
