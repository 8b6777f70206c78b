"""Text that is being edited, and the record of its changed parts.

Edits are made to the text with LF line endings. Each change is recorded as a span: its position in the original, and
its current position. Adjacent spans are merged. At the end, each span gets the line endings of the original part that
it replaces, and everything between spans is copied from the original. A diff only needs to compare the spans.
"""

import bisect
import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

Span = tuple[int, int, int, int]
"""Start and end in the original, start and end in the edited text, in characters."""
Replacement = tuple[int, int, str]
"""Start and end of the replaced text, and the new text."""


class EditedText(NamedTuple):
    """A text before and after editing, the spans where both differ, and the tolerated differences between the old
    texts of edits and the places that they matched."""

    before: str
    after: str
    spans: list[Span]
    tolerated: Sequence[str] = ()


class Text:
    """Text that is being edited. `current` is its current state, with LF line endings."""

    def __init__(self, original: str) -> None:
        self._original = original
        self._usual_eol = eol_of(original)
        self._original_with_lf = self.current = self.lf(original)
        self._crlf: list[int] = []
        if len(self.current) != len(original):
            self._crlf = [match.start() - i for i, match in enumerate(re.finditer("\r\n", original))]
        self._rounds: list[list[Span]] = []
        """The spans of successive rounds of changes. Each round has more spans than the next, which bounds the work
        of merging them."""

    def lf(self, text: str) -> str:
        """Return `text` with LF line endings, so that it can be compared with `current`."""
        return lf(text).replace("\r", "\n") if self._usual_eol == "\r" else lf(text)

    def replace(self, replacements: Sequence[Replacement]) -> None:
        """Make the replacements, which are in order and don't overlap. Lines that stay the same at the start and end
        of a replacement are not recorded as changed."""
        pieces: list[str] = []
        spans: list[Span] = []
        position = size = 0
        for first, last, text in replacements:
            old = self.current[first:last]
            front = _common_lines(old, text)
            back = _common_lines(old[front:], text[front:], from_end=True)
            start, end, new = first + front, last - back, text[front : len(text) - back]
            size += start - position + len(new)
            pieces += self.current[position:start], new
            spans.append((start, end, size - len(new), size))
            position = end
        pieces.append(self.current[position:])
        self.current = "".join(pieces)
        spans = _compose([], spans)
        while self._rounds and len(self._rounds[-1]) <= len(spans):
            spans = _compose(self._rounds.pop(), spans)
        self._rounds.append(spans)

    def result(self) -> EditedText:
        """Return the original and the edited text, with the original's line endings."""
        pieces: list[str] = []
        spans: list[Span] = []
        position = size = 0
        while len(self._rounds) > 1:
            later = self._rounds.pop()
            self._rounds.append(_compose(self._rounds.pop(), later))
        for old_start, old_end, start, end in chain(*self._rounds):
            first, last = self._offset(old_start), self._offset(old_end)
            eol, line_end = self._usual_eol, self._original_with_lf.find("\n", old_start, old_end)
            if line_end >= 0 and eol != "\r":
                # This part of the original has its own line ending.
                eol = "\r\n" if self._offset(line_end + 1) - self._offset(line_end) == 2 else "\n"
            new = self.current[start:end].replace("\n", eol)
            size += first - position + len(new)
            pieces += self._original[position:first], new
            spans.append((first, last, size - len(new), size))
            position = last
        pieces.append(self._original[position:])
        return EditedText(self._original, "".join(pieces), spans)

    def _offset(self, offset: int) -> int:
        """Return the offset in the original for an offset in its LF form."""
        return offset + bisect.bisect_left(self._crlf, offset)


def lf(text: str) -> str:
    """Return `text` with its CRLF line endings as LF."""
    return text.replace("\r\n", "\n")


def eol_of(text: str) -> str:
    """Return the most common line ending in `text`, CRLF or LF; CR, as on old Macs, if there is no other; else LF."""
    if has_cr_alone(text):
        return "\r"
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def has_cr_alone(text: str) -> bool:
    """Return True if CR is the only line end of `text`."""
    return "\n" not in text and "\r" in text


def _common_lines(old: str, new: str, from_end: bool = False) -> int:
    """Return the number of characters in the whole lines that both texts share at their start, or at their end."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    if from_end:
        old_lines.reverse()
        new_lines.reverse()
    size = 0
    # The last piece has no line ending after it, and the first one none before it, so it never counts.
    for line, new_line in zip(old_lines[:-1], new_lines[:-1], strict=False):
        if line != new_line:
            break
        size += len(line) + 1
    return size


def _compose(earlier: list[Span], later: list[Span]) -> list[Span]:
    """Return the spans of two rounds of changes, merged into one round. `later` changes the result of `earlier`."""
    # Each span, by its position in the text after the first round, with its growth in the first round and in the
    # second.
    marks = [(span[2], span[3], _growth(span), 0) for span in earlier]
    marks += [(span[0], span[1], 0, _growth(span)) for span in later]
    spans: list[Span] = []
    growth_before = growth_after = 0
    reached_end = -1
    for start, end, before, after in sorted(marks):
        if start > reached_end:
            spans.append((start - growth_before, start - growth_before, start + growth_after, start + growth_after))
        reached_end = max(reached_end, end)
        growth_before += before
        growth_after += after
        spans[-1] = (spans[-1][0], reached_end - growth_before, spans[-1][2], reached_end + growth_after)
    return spans


def _growth(span: Span) -> int:
    return span[3] - span[2] - (span[1] - span[0])
