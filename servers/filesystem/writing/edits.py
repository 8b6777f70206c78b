"""Replacing pieces of a text, each named by its old wording.

An edit must match exactly one place. Line ends are compared as LF, so an edit written with LF finds its
place in a CRLF file; what is inserted gets the line ends of the lines it replaces, and every byte outside
the changed lines stays as it is, in mixed files too. A byte order mark stays in front.

When there is no exact match, lines are compared without leading and trailing white space. The one place
that matches is replaced as whole lines, and the new text is indented relatively: the indentation of the
first old line is taken off each new line and that of the line it matched is put in its stead.
"""

import bisect
import difflib
from collections.abc import Sequence

from servers.filesystem.errors import FilesError
from servers.filesystem.names import displayed

Edit = tuple[str, str]
"""Old text and new text."""

_SHOWN = 10
_HINT_LINES = 2_000


def apply_edits(text: str, edits: Sequence[Edit], path: str = "") -> str:
    """`text` after all `edits`, one upon the other; `path` is for errors.

    Raises `FilesError` with `bad_edit`, `no_match` or `ambiguous_match`.
    """
    if not edits:
        raise FilesError("bad_edit", path, "there are no edits")
    mark = text[:1] if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    for number, (old, new) in enumerate(edits, 1):
        if not old:
            raise FilesError("bad_edit", path, f"edit {number}: the old text is empty")
        body = _apply(_Text(body), _lf(old), _lf(new), _Where(path, number))
    return mark + body


class _Where:
    """Which edit of which file, for errors."""

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.number = number

    def error(self, code: str, reason: str, suggestion: str) -> FilesError:
        return FilesError(code, self.path, f"edit {self.number}: {reason}", suggestion)


class _Text:
    """A text seen with LF line ends, and the way back to its own offsets."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.seen = _lf(original)
        self._crlf: list[int] = []
        if len(self.seen) != len(original):
            at = original.find("\r\n")
            while at >= 0:
                self._crlf.append(at - len(self._crlf))
                at = original.find("\r\n", at + 2)

    def offset(self, seen: int) -> int:
        """The offset in the original of an offset in the seen text."""
        return seen + bisect.bisect_left(self._crlf, seen)

    def line(self, seen: int) -> int:
        """The number, from 1, of the line an offset lies in."""
        return self.seen.count("\n", 0, seen) + 1

    def eol(self, start: int, end: int) -> str:
        """The line end in use between two seen offsets, or else in most of the text."""
        at = self.seen.find("\n", start, end)
        if at >= 0:
            return "\r\n" if self.offset(at + 1) - self.offset(at) == 2 else "\n"
        return "\r\n" if len(self._crlf) * 2 > self.seen.count("\n") else "\n"

    def replaced(self, start: int, end: int, new: str) -> str:
        """The original with the seen span replaced, lines that stay the same left alone."""
        old = self.seen[start:end]
        front = _common_lines(old, new)
        back = _common_lines(old[front:], new[front:], from_end=True)
        start, end, new = start + front, end - back, new[front : len(new) - back]
        eol = self.eol(start, end)
        inserted = new.replace("\n", eol) if eol != "\n" else new
        return self.original[: self.offset(start)] + inserted + self.original[self.offset(end) :]


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _common_lines(old: str, new: str, from_end: bool = False) -> int:
    """How many characters of whole lines both texts share at their start, or at their end."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    if from_end:
        old_lines.reverse()
        new_lines.reverse()
    size = 0
    # The last piece has no line end of its own, so it never counts.
    for one, other in zip(old_lines[:-1], new_lines[:-1], strict=False):
        if one != other:
            break
        size += len(one) + 1
    return size


def _apply(text: _Text, old: str, new: str, where: _Where) -> str:
    found = _occurrences(text.seen, old)
    if len(found) == 1:
        return text.replaced(found[0], found[0] + len(old), new)
    if found:
        raise _ambiguous([text.line(at) for at in found], where)
    return _apply_loosely(text, old, new, where)


def _occurrences(text: str, wanted: str) -> list[int]:
    """Where `wanted` begins in `text`, overlaps included, a few more than are shown at most."""
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) <= _SHOWN:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _ambiguous(lines: list[int], where: _Where) -> FilesError:
    many = f"more than {_SHOWN}" if len(lines) > _SHOWN else str(len(lines))
    shown = ", ".join(map(str, lines[:_SHOWN]))
    reason = f"the old text matches {many} places, at lines {shown}"
    return where.error("ambiguous_match", reason, "Add neighbouring lines until it is unique.")


def _apply_loosely(text: _Text, old: str, new: str, where: _Where) -> str:
    lines = text.seen.split("\n")
    wanted = old.removesuffix("\n").split("\n")
    stripped = [line.strip() for line in lines]
    needle = [line.strip() for line in wanted]
    if not any(needle):
        raise _no_match(lines, wanted, where)
    # Joined, so that the linear search of str does the work.
    hay = "\n" + "\n".join(stripped) + "\n"
    found = [hay.count("\n", 0, at) for at in _occurrences(hay, "\n" + "\n".join(needle) + "\n")]
    if not found:
        raise _no_match(lines, wanted, where)
    if len(found) > 1:
        raise _ambiguous([first + 1 for first in found], where)
    first = found[0]
    anchor = next(i for i, line in enumerate(needle) if line)
    fresh = _indented(new, _indent(wanted[anchor]), _indent(lines[first + anchor]))
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + sum(len(line) + 1 for line in lines[first : first + len(wanted)]) - 1
    if old.endswith("\n") and end < len(text.seen):
        end += 1
    return text.replaced(start, end, fresh)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _indented(text: str, old: str, new: str) -> str:
    """`text` with the indentation `old` of its lines exchanged for `new`."""
    return "\n".join(_reindent(line, old, new) for line in text.split("\n"))


def _reindent(line: str, old: str, new: str) -> str:
    if not line.strip():
        return line
    if line.startswith(old):
        return new + line[len(old) :]
    own = _indent(line)
    kept = max(0, len(new) - max(0, len(old) - len(own)))
    return new[:kept] + line[len(own) :]


def _no_match(lines: list[str], wanted: list[str], where: _Where) -> FilesError:
    first = next((line.strip() for line in wanted if line.strip()), "")
    near = {line.strip()[:200]: number for number, line in reversed(list(enumerate(lines[:_HINT_LINES], 1)))}
    close = difflib.get_close_matches(first[:200], near, n=1, cutoff=0.6) if first else []
    suggestion = "Read the file again and copy the old text exactly."
    if close:
        shown = displayed(close[0][:80])
        suggestion = f"The nearest is line {near[close[0]]}: {shown!r}. {suggestion}"
    return where.error("no_match", "the old text is not in the file", suggestion)
