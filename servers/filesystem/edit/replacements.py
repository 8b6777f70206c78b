"""Replacing pieces of a text, each named by its old wording.

An edit must match exactly one place, or as many as it says. Line ends are compared as LF, so an edit written with LF
finds its place in a CRLF file; what is inserted gets the line ends of the lines it replaces, and everything outside
the changed lines stays as it is, in mixed files too.

When there is no exact match, lines are compared without leading and trailing white space. What matches is replaced as
whole lines, and the new text is indented relatively: the indentation of the first old line is taken off each new line
and that of the line it matched is put in its stead.

To search a text of megabytes takes milliseconds in which no other thread runs Python, while one that lists a
directory needs the interpreter back after each call of the system. So the work is done in steps with pauses, by one
thread at a time: whoever does something short has his turn in between.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import NamedTuple

from servers.filesystem.edit.text import Edited, Replacement, Text, lf
from servers.filesystem.errors import FilesError
from shared.text import nearest

MAX_PLACES = 100_000
"""Places one edit replaces."""

_SHOWN = 10
_HINT_LINES = 2_000
_PAUSED_FROM = 0.001
"""Seconds from which on a step is followed by a pause."""
_PAUSE = 0.25
"""The pause, as a share of the time of the step."""

_working = threading.Lock()


class Edit(NamedTuple):
    """Old text, new text, and how many places must hold the old one, all of which are replaced; 0 means any number.

    A single place must be the only one even among overlapping ones; several are counted without overlaps.
    """

    old: str
    new: str
    places: int = 1


def apply_edits(text: str, edits: Sequence[Edit], path: str = "", check: Callable[[], None] = lambda: None) -> Edited:
    """`text` after all `edits`, one upon the other; `path` is for errors. `check` is called before each edit, which
    takes time in proportion to the text.

    Raises `FilesError` with `bad_edit`, `no_match`, `ambiguous_match` where an edit should match once, or
    `wrong_count`.
    """
    if not edits:
        raise FilesError("bad_edit", path, "there are no edits")
    body = Text(text)
    for number, edit in enumerate(edits, 1):
        check()
        where = _Where(path, number)
        if not edit.old:
            raise where.error("bad_edit", "the old text is empty")
        with _step():
            body.replace(_found(body.seen, Edit(lf(edit.old), lf(edit.new), edit.places), where))
    return body.edited()


class _Where(NamedTuple):
    """Which edit of which file, for errors."""

    path: str
    number: int

    def error(self, code: str, reason: str, suggestion: str = "") -> FilesError:
        return FilesError(code, self.path, f"edit {self.number}: {reason}", suggestion)


def _found(text: str, edit: Edit, where: _Where) -> list[Replacement]:
    places = _places(text, edit.old, edit.places, step=len(edit.old))
    if not places:
        return _found_loosely(text, edit, where)
    _require_count(edit.places, _lines_at(text, places), where)
    return [(at, at + len(edit.old), edit.new) for at in places]


def _places(text: str, wanted: str, count: int, step: int) -> list[int]:
    """Where `wanted` begins in `text`, a few more than are asked for at most."""
    # One more than may be, or is shown: by it the caller sees that there are more.
    most = max(count or MAX_PLACES, _SHOWN) + 1
    places: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(places) < most:
        places.append(at)
        # A single place must be the only one even among overlapping ones.
        at = text.find(wanted, at + (1 if count == 1 else step))
    return places


def _lines_at(text: str, places: Sequence[int]) -> list[int]:
    """The number, from 1, of the line that each of the places lies in."""
    breaks = (text.count("\n", start, end) for start, end in pairwise([0, *places]))
    return [1 + before for before in accumulate(breaks)]


def _require_count(count: int, lines: list[int], where: _Where) -> None:
    if len(lines) == count or (count == 0 and len(lines) <= MAX_PLACES):
        return
    limit = max(count or MAX_PLACES, _SHOWN)
    many = f"more than {limit:,}" if len(lines) > limit else str(len(lines))
    more = ", ..." if len(lines) > _SHOWN else ""
    reason = f"the old text matches {many} places, at lines {', '.join(map(str, lines[:_SHOWN]))}{more}"
    if count == 1:
        suggestion = "Add neighbouring lines until it is unique, or give count to replace several."
        raise where.error("ambiguous_match", reason, suggestion)
    raise where.error("wrong_count", f"{reason}, and not {count or MAX_PLACES:,}")


def _found_loosely(text: str, edit: Edit, where: _Where) -> list[Replacement]:
    lines = text.split("\n")
    wanted = edit.old.removesuffix("\n").split("\n")
    needle = "\n".join(line.strip() for line in wanted)
    if not needle.strip("\n"):
        raise _no_match(lines, wanted, where)
    # Joined, so that the linear search of str does the work. Neighbours share the line end between them.
    hay = "\n" + "\n".join(line.strip() for line in lines) + "\n"
    places = _places(hay, f"\n{needle}\n", edit.places, step=len(needle) + 1)
    if not places:
        raise _no_match(lines, wanted, where)
    numbers = _lines_at(hay, places)
    _require_count(edit.places, numbers, where)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    anchor = next(i for i, line in enumerate(wanted) if line.strip())
    found = []
    for first in (number - 1 for number in numbers):
        old, new = _indent(wanted[anchor]), _indent(lines[first + anchor])
        fresh = "\n".join(_reindent(line, old, new) for line in edit.new.split("\n"))
        end = starts[first + len(wanted)] - 1
        if edit.old.endswith("\n") and end < len(text):
            end += 1
        found.append((starts[first], end, fresh))
    return found


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindent(line: str, old: str, new: str) -> str:
    """`line` with the indentation `old` exchanged for `new`."""
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
    close = nearest(first[:200], near) if first else None
    suggestion = "Read the file again and copy the old text exactly."
    if close is not None:
        suggestion = f"The nearest is line {near[close]}: {close[:80]!r}. {suggestion}"
    return where.error("no_match", "the old text is not in the file", suggestion)


@contextmanager
def _step() -> Iterator[None]:
    """One step, which only one thread at a time makes; in the pause after it none does."""
    with _working:
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        if took > _PAUSED_FROM:
            time.sleep(took * _PAUSE)
