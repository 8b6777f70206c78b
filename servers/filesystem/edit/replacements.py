"""Replaces passages of a text, each given by its old text.

An edit must match exactly one place, or as many places as it specifies. Line endings are compared as LF, so an edit
written with LF matches in a CRLF file. Inserted text gets the line endings of the lines it replaces, and everything
outside the changed lines stays as it is, even in files with mixed line endings.

If there is no exact match, lines are compared without leading and trailing white space. Such a match is accepted if
its indentation can be translated (see `indentation`), and the result reports it. Only lines that change are replaced,
with the file's indentation.

Searching megabytes of text takes milliseconds during which no other thread can run Python. A thread that lists a
directory, for example, needs the interpreter again after each system call. So edits are made in steps with pauses, by
one thread at a time, and other threads run during the pauses.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import NamedTuple

from ..errors import FilesError
from .indentation import (
    Indents,
    describe_indent,
    indent_of,
    map_indentation,
    translate_replacements,
)
from .text import EditedText, Replacement, Text

MAX_PLACES = 100_000
"""Maximum number of places that one edit replaces."""

_MAX_SHOWN = 10
"""Maximum number of places whose line numbers an error lists."""
_CONTEXT_LINES = 200
"""Number of lines before and after a match that show how the file is indented."""
_MIN_STEP_SECONDS = 0.001
"""A step that takes at least this many seconds is followed by a pause."""
_PAUSE_FRACTION = 0.25
"""Length of the pause, as a fraction of the step's time."""

_step_lock = threading.Lock()


class Edit(NamedTuple):
    """Old text, new text, and the number of places with the old text, all of which are replaced; 0 means any number.

    If the number is 1, overlapping places count as well; otherwise they don't. If the edit is a hunk of a diff,
    `line` is its line number from 1, or 0 if unknown; otherwise it is None. The old text of a hunk consists of whole
    lines. If it matches several places, the one at `line` is replaced, or else the first one after the `headings`.
    """

    old: str
    new: str
    places: int = 1
    line: int | None = None
    headings: tuple[str, ...] = ()


def apply_edits(
    text: str, edits: Sequence[Edit], path: str = "", check: Callable[[], None] = lambda: None
) -> EditedText:
    """Return `text` after all `edits`, each applied to the result of the previous one. `path` is for error messages.
    `check` is called before each edit, which takes time proportional to the text.

    Raises FilesError with code `bad_edit`, `no_match`, `wrong_count`, or `ambiguous_match` for several matches of an
    edit that should match once.
    """
    if not edits:
        raise FilesError("bad_edit", path, "there are no edits")
    body = Text(text)
    tolerated: list[str] = []
    for number, edit in enumerate(edits, 1):
        check()
        edit_number = _EditNumber(path, number)
        if not edit.old:
            raise edit_number.error("bad_edit", "the old text is empty")
        with _step():
            with_lf = edit._replace(old=body.lf(edit.old), new=body.lf(edit.new))
            changes, note = _replacements(body.current, with_lf, edit_number)
            body.replace(changes)
        if note is not None:
            tolerated.append(note)
    return body.result()._replace(tolerated=tolerated)


class _EditNumber(NamedTuple):
    """The file and the number of an edit, for error messages."""

    path: str
    number: int

    def error(self, code: str, reason: str, suggestion: str = "") -> FilesError:
        return FilesError(code, self.path, f"edit {self.number}: {reason}", suggestion)


def _replacements(text: str, edit: Edit, edit_number: _EditNumber) -> tuple[list[Replacement], str | None]:
    """Return the replacements for the old text, and the tolerated differences if it does not match exactly."""
    places = (
        _find_offsets(text, edit.old, edit.places, step=len(edit.old))
        if edit.line is None
        else _find_hunk(text, edit)
    )
    if all(_is_half_indented(text, edit, position) for position in places):
        return _tolerant_replacements(text, edit, edit_number)
    if len(places) != edit.places:
        _require_count(edit.places, _line_numbers(text, places), edit_number)
    return [(position, position + len(edit.old), edit.new) for position in places], None


def _is_half_indented(text: str, edit: Edit, position: int) -> bool:
    """Return True if the old text consists of whole lines, and both texts omit the indentation of the first line.

    Inserted unchanged, such a new text would leave a line with the wrong indentation.
    """
    before, end = text[text.rfind("\n", 0, position) + 1 : position], position + len(edit.old)
    if not before.isspace() or not (edit.old.endswith("\n") or text[end : end + 1] in ("", "\n")):
        return False
    (first, *others), (start, *rest) = edit.old.split("\n"), edit.new.split("\n")
    if not first.strip():
        return False
    if not start.strip():
        return edit.old.endswith("\n")
    indent = indent_of(first)
    return (
        indent_of(start) != indent
        or start in others
        or any(line.strip() and line not in others and indent_of(line) == indent for line in rest)
    )


def _find_offsets(text: str, needle: str, count: int, step: int) -> list[int]:
    """Return the offsets of `needle` in `text`: at most one more than an edit may match and an error can list."""
    max_places = max(count or MAX_PLACES, _MAX_SHOWN) + 1
    places: list[int] = []
    position = text.find(needle)
    while position >= 0 and len(places) < max_places:
        places.append(position)
        # If one place is expected, a second one makes the edit ambiguous even if it overlaps the first.
        position = text.find(needle, position + (1 if count == 1 else step))
    return places


def _find_hunk(text: str, edit: Edit) -> list[int]:
    """Return the offsets of a hunk's lines in `text`: at its line number, or else anywhere."""
    # If the old or the new lines of a hunk lack the last line ending, the hunk is at the end of the file.
    if not edit.old.endswith("\n") or (edit.new and not edit.new.endswith("\n")):
        start = len(text) - len(edit.old)
        return [start] if f"\n{text}".endswith(f"\n{edit.old}") else []
    # With an LF added before the text, every line is preceded by one, including the first.
    places = _find_offsets(f"\n{text}", f"\n{edit.old}", edit.places, step=len(edit.old))
    if len(places) > 1 and edit.line:
        start = 0
        for _ in range(edit.line - 1):
            start = text.find("\n", start) + 1
            if not start:
                return places
        if text.startswith(edit.old, start):
            return [start]
    if len(places) > 1 and edit.headings:
        lines = text.split("\n")
        heading = _line_of_heading(lines, edit.headings)
        start = sum(len(line) + 1 for line in lines[: heading - 1])
        place = f"\n{text}".find(f"\n{edit.old}", start) if heading else -1
        return places if place < 0 else [place]
    return places


def _line_of_heading(lines: Sequence[str], headings: Sequence[str]) -> int:
    """Return the line number, from 1, of the last heading. Each heading is searched for below the previous one.
    Return 0 if a heading is missing, or if several lines equal the first heading."""
    stripped = [line.strip() for line in lines]
    if stripped.count(headings[0]) != 1:
        return 0
    number = 0
    for heading in headings:
        if heading not in stripped[number:]:
            return 0
        number = stripped.index(heading, number) + 1
    return number


def _line_numbers(text: str, places: Sequence[int]) -> list[int]:
    """Return the line number of each place, from 1."""
    breaks = (text.count("\n", start, end) for start, end in pairwise([0, *places]))
    return [1 + before for before in accumulate(breaks)]


def _require_count(count: int, lines: list[int], edit_number: _EditNumber) -> None:
    if len(lines) == count or (count == 0 and len(lines) <= MAX_PLACES):
        return
    limit = max(count or MAX_PLACES, _MAX_SHOWN)
    shown_count = f"more than {limit:,}" if len(lines) > limit else str(len(lines))
    more = ", ..." if len(lines) > _MAX_SHOWN else ""
    # In a minified file, all places may be in one line.
    shown_lines = ", ".join(map(str, dict.fromkeys(lines[:_MAX_SHOWN])))
    reason = f"the old text matches {shown_count} places, at lines {shown_lines}{more}"
    if count == 1:
        suggestion = "Add neighboring text until it is unique, or pass count to replace several."
        raise edit_number.error("ambiguous_match", reason, suggestion)
    raise edit_number.error("wrong_count", f"{reason}, not {count or MAX_PLACES:,}")


def _tolerant_replacements(text: str, edit: Edit, edit_number: _EditNumber) -> tuple[list[Replacement], str | None]:
    """Return the replacements for matches whose lines differ from the old text only in leading and trailing white
    space, and a note on the tolerated differences."""
    lines = text.split("\n")
    old_lines = edit.old.removesuffix("\n").split("\n")
    needle = "\n".join(line.strip() for line in old_lines)
    # The lines are joined, because one search of a text takes linear time. Adjacent lines share one line ending.
    haystack = "\n" + "\n".join(line.strip() for line in lines) + "\n"
    places = _find_offsets(haystack, f"\n{needle}\n", edit.places, step=len(needle) + 1) if needle.strip("\n") else []
    if not places:
        raise _no_match_error(lines, old_lines, edit_number)
    numbers = _line_numbers(haystack, places)
    if edit.line in numbers:
        numbers = [edit.line]
    elif len(numbers) > 1 and edit.headings:
        heading = _line_of_heading(lines, edit.headings)
        numbers = [number for number in numbers if number >= heading > 0][:1] or numbers
    _require_count(edit.places, numbers, edit_number)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    # Both texts lose their last line ending, so that the last replaced line keeps its own, if it has one.
    new = edit.new.removesuffix("\n").split("\n") if edit.new else []
    changes: list[Replacement] = []
    mappings: list[Indents] = []
    for first in (number - 1 for number in numbers):
        matched = lines[first : first + len(old_lines)]
        surrounding = lines[max(first - _CONTEXT_LINES, 0) : first + len(old_lines) + _CONTEXT_LINES]
        indents = map_indentation(old_lines, matched, new, surrounding)
        line_replacements = None if indents is None else translate_replacements(old_lines, new, indents)
        if indents is None or line_replacements is None:
            raise _no_match_error(lines, old_lines, edit_number, first)
        for start, end, new_text in line_replacements:
            position, stop = starts[first + start], starts[first + end]
            # The positions exceed the text if they include a last line without a line ending, or the empty string
            # after the last line ending, which is not a line: it is replaced only by an empty line.
            is_cut = stop > len(text) and (not text.endswith("\n") or f"\n{new_text}".endswith("\n\n"))
            changes.append((min(position, len(text)), min(stop, len(text)), new_text[:-1] if is_cut else new_text))
        mappings.append(indents)
    ignored = next(
        (
            f"indentation: {describe_indent(file_indent)} in the file for {describe_indent(old_indent)}"
            for old_indent, file_indent in mappings[0].mapping.items()
            if old_indent != file_indent
        ),
        "whitespace at the ends of lines",
    )
    return changes, f"edit {edit_number.number} matched, ignoring {ignored}"


def _no_match_error(
    lines: list[str], old_lines: list[str], edit_number: _EditNumber, position: int | None = None
) -> FilesError:
    """Return the error for an old text that does not match, or that matches only with other indentation at line
    `position`, from 0."""
    from .nearest_place import nearest_place

    first, last = (0, len(lines)) if position is None else (position, position + len(old_lines))
    close = nearest_place(lines[first:last], old_lines, first)
    suggestion = "Read the file again and copy the old text exactly."
    if close is not None:
        suggestion = f"The nearest is {close}. {suggestion}"
    return edit_number.error("no_match", "the old text is not in the file", suggestion)


@contextmanager
def _step() -> Iterator[None]:
    """Context of one step of the work: only one thread at a time is in it, and a long step ends with a pause."""
    with _step_lock:
        started_at = time.monotonic()
        yield
        seconds = time.monotonic() - started_at
        if seconds > _MIN_STEP_SECONDS:
            # The lock is still held, so no other step runs during the pause.
            time.sleep(seconds * _PAUSE_FRACTION)
