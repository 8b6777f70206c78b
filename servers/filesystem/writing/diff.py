"""Unified diffs the way git writes them.

Only LF ends a line here, so a CRLF file shows its CRs and odd Unicode line ends split nothing. What both
texts share at start and end is set aside first, and a middle too repetitive for difflib's quadratic
search is shown as one replaced block instead.
"""

import difflib
from collections import Counter
from collections.abc import Iterator

from servers.filesystem.names import displayed

_MAX_COST = 2_000_000
_POPULAR_FROM = 200

_Group = list[tuple[str, int, int, int, int]]


def unified_diff(old: str, new: str, path: str, context: int = 3) -> str:
    """The changes from `old` to `new` with `context` lines around; empty when there are none."""
    if old == new:
        return ""
    shown = displayed(path)
    return "".join([f"--- a/{shown}\n+++ b/{shown}\n", *_hunks(_lines(old), _lines(new), context)])


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()
    if last != "\n":
        lines.append(last + "\\ No newline at end of file\n")
    return lines


def _hunks(old: list[str], new: list[str], context: int) -> Iterator[str]:
    front = _shared(old, new, 0)
    back = _shared(old[::-1], new[::-1], front)
    skip = max(0, front - context)
    tail = max(0, back - context)
    old, new = old[skip : len(old) - tail], new[skip : len(new) - tail]
    for group in _groups(old, new, context, (front - skip, back - tail)):
        first, last = group[0], group[-1]
        spans = _span(first[1], last[2], skip), _span(first[3], last[4], skip)
        yield f"@@ -{spans[0]} +{spans[1]} @@\n"
        yield from _body(group, old, new)


def _shared(old: list[str], new: list[str], taken: int) -> int:
    """How many first lines are the same, leaving `taken` lines of the shorter text out."""
    limit = min(len(old), len(new)) - taken
    for count, (one, other) in enumerate(zip(old[:limit], new[:limit], strict=False)):
        if one != other:
            return count
    return max(0, limit)


def _groups(old: list[str], new: list[str], context: int, edge: tuple[int, int]) -> Iterator[_Group]:
    if _cost(old, new) <= _MAX_COST:
        yield from difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(context)
        return
    front, back = edge
    ends = len(old) - back, len(new) - back
    yield [
        ("equal", 0, front, 0, front),
        ("replace", front, ends[0], front, ends[1]),
        ("equal", ends[0], len(old), ends[1], len(new)),
    ]


def _cost(old: list[str], new: list[str]) -> int:
    """About how many pairs of equal lines difflib will look at; it ignores popular lines itself."""
    counts = Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= _POPULAR_FROM else len(new)
    return sum(counts[line] for line in old if counts[line] <= popular)


def _body(group: _Group, old: list[str], new: list[str]) -> Iterator[str]:
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            yield from (" " + line for line in old[old_start:old_end])
            continue
        yield from ("-" + line for line in old[old_start:old_end])
        yield from ("+" + line for line in new[new_start:new_end])


def _span(start: int, end: int, skip: int) -> str:
    length = end - start
    begin = start + skip + (1 if length else 0)
    return f"{begin}" if length == 1 else f"{begin},{length}"
