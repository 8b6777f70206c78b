"""Unified diffs in git's format, built from the spans where two texts differ.

Only the spans and the lines around them are examined, so the size of the texts hardly matters. Only LF ends a line,
or CR in a text without LF: a CRLF file shows its CRs, and no other Unicode line separator splits a line. Within a
span, difflib finds the unchanged lines; a span too repetitive for its quadratic search is shown as one replaced
block.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from shared.text import display_name

from .text import EditedText, Span, has_cr_alone

_MAX_COST = 2_000_000
"""Maximum number of pairs of equal lines that difflib compares."""
_LONG_TEXT_LINES = 200
"""Number of lines from which a text is long: of a long text, difflib ignores lines that make up more than 1 %."""


class _Change(NamedTuple):
    """Lines of the old text that are replaced by lines of the new one. Either list may be empty."""

    start: int
    """The position of the first replaced character in the old text; `end` is the position after the last one."""
    end: int
    line: int
    """The number of lines before the change in the old text; `new_line` is that number in the new text."""
    new_line: int
    old: list[str]
    new: list[str]


def unified_diff(edited: EditedText, path: str, context: int = 3) -> str:
    """Return the changes of `edited` as a diff with `context` lines around them; empty if nothing changed."""
    if has_cr_alone(edited.before):
        edited = edited._replace(before=edited.before.replace("\r", "\n"), after=edited.after.replace("\r", "\n"))
    pieces: list[str] = []
    group: list[_Change] = []
    for change in _changes(edited):
        if group and change.line - group[-1].line - len(group[-1].old) > 2 * context:
            pieces += _hunk(edited.before, group, context)
            group = []
        group.append(change)
    if group:
        pieces += _hunk(edited.before, group, context)
    shown_path = display_name(path)
    return f"--- a/{shown_path}\n+++ b/{shown_path}\n{''.join(pieces)}" if pieces else ""


def _changes(edited: EditedText) -> Iterator[_Change]:
    """Yield the changes in order, each of whole lines."""
    line = added = position = 0
    for start, end, new_start, new_end in _whole_lines(edited):
        line += edited.before.count("\n", position, start)
        old, new = _lines(edited.before[start:end]), _lines(edited.after[new_start:new_end])
        offsets = list(accumulate(map(len, old), initial=start))
        for first, last, new_first, new_last in _differences(old, new):
            yield _Change(
                start=offsets[first],
                end=offsets[last],
                line=line + first,
                new_line=line + added + new_first,
                old=old[first:last],
                new=new[new_first:new_last],
            )
        line += len(old)
        added += len(new) - len(old)
        position = end


def _whole_lines(edited: EditedText) -> list[Span]:
    """Return the spans extended to whole lines. Spans that meet are merged."""
    before, after, spans, _ = edited
    extended: list[Span] = []
    for start, end, new_start, new_end in spans:
        begin = before.rfind("\n", 0, start) + 1
        stop = end
        if not (_starts_line(before, end) and _starts_line(after, new_end)):
            stop = before.find("\n", end) + 1 or len(before)
        span = (begin, stop, new_start - (start - begin), new_end + stop - end)
        if extended and begin < extended[-1][1]:
            last = extended.pop()
            span = (last[0], span[1], last[2], span[3])
        extended.append(span)
    return extended


def _starts_line(text: str, position: int) -> bool:
    return position == 0 or text[position - 1] == "\n"


def _lines(text: str) -> list[str]:
    """Return the lines of `text` with their line endings."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _differences(old: list[str], new: list[str]) -> Iterator[Span]:
    """Yield the lines that differ, as spans of line numbers."""
    front = _common_start(old, new, 0)
    back = _common_start(old[::-1], new[::-1], front)
    old, new = old[front : len(old) - back], new[front : len(new) - back]
    if not old or not new or len(old) == len(new) == 1:
        if old or new:
            yield front, front + len(old), front, front + len(new)
        return
    # An estimate of the pairs of equal lines that difflib will compare; it ignores lines that occur too often.
    counts = Counter(new)
    max_occurrences = len(new) // 100 + 1 if len(new) >= _LONG_TEXT_LINES else len(new)
    if sum(counts[line] for line in old if counts[line] <= max_occurrences) > _MAX_COST:
        yield front, front + len(old), front, front + len(new)
        return
    from difflib import SequenceMatcher

    for tag, first, last, new_first, new_last in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            yield front + first, front + last, front + new_first, front + new_last


def _common_start(old: list[str], new: list[str], reserved: int) -> int:
    """Return the number of equal lines at the start, not counting the last `reserved` lines of the shorter text."""
    limit = min(len(old), len(new)) - reserved
    for count, (line, new_line) in enumerate(zip(old[:limit], new[:limit], strict=False)):
        if line != new_line:
            return count
    return max(0, limit)


def _hunk(text: str, group: list[_Change], context: int) -> Iterator[str]:
    """Yield the lines of the hunk for a group of changes that are close to each other."""
    first, last = group[0], group[-1]
    start = first.start
    for _ in range(context):
        if start == 0:
            break
        start = text.rfind("\n", 0, start - 1) + 1
    end = last.end
    for _ in range(context):
        end = text.find("\n", end) + 1 or len(text)
    above, below = _lines(text[start : first.start]), _lines(text[last.end : end])
    begin, new_begin = first.line - len(above), first.new_line - len(above)
    length = last.line + len(last.old) + len(below) - begin
    new_length = last.new_line + len(last.new) + len(below) - new_begin
    yield f"@@ -{_format_span(begin, length)} +{_format_span(new_begin, new_length)} @@\n"
    yield from _mark_lines(" ", above)
    position = first.start
    for change in group:
        yield from _mark_lines(" ", _lines(text[position : change.start]))
        yield from _mark_lines("-", change.old)
        yield from _mark_lines("+", change.new)
        position = change.end
    yield from _mark_lines(" ", below)


def _mark_lines(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _format_span(start: int, length: int) -> str:
    """Return a range of lines in the form of a hunk header. `start` is the number of lines before the range."""
    begin = start + (1 if length else 0)
    return f"{begin}" if length == 1 else f"{begin},{length}"
