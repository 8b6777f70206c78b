"""Writing and editing files, and making directories.

All of it needs writable roots, takes the lock of the names it changes, and works in directories held
open. Files are replaced atomically (see `replacing`). An edit reads and writes under one lock, so
parallel edits here are all applied, and looks again right before the rename, so a change from outside is
an error instead of lost. A link at the end of a written path leads to its target as long as that lies
beneath the roots and exists.
"""

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from servers.filesystem.access.beneath import Beneath, missing
from servers.filesystem.access.roots import Place
from servers.filesystem.access.walk import Entry
from servers.filesystem.errors import FilesError
from servers.filesystem.names import displayed
from servers.filesystem.reading.read import decoded
from servers.filesystem.writing.checks import current, require_replaceable
from servers.filesystem.writing.diff import unified_diff
from servers.filesystem.writing.edits import Edit, apply_edits
from servers.filesystem.writing.locks import locked
from servers.filesystem.writing.replacing import replace

MAX_EDITED = 16 * 1024 * 1024
"""Largest file `edit_file` takes, in bytes."""


class Written(NamedTuple):
    """A file was written: its size, and whether it is new."""

    size: int
    created: bool


class EditResult(NamedTuple):
    """The changes as a unified diff, and how many edits made them; on a dry run nothing was written."""

    diff: str
    applied: int
    dry_run: bool


def write_file(beneath: Beneath, place: Place, data: bytes) -> Written:
    """Put `data` at `place`, replacing what is there as one step."""
    beneath.roots.require_writable(place)
    with beneath.locate(place) as entry, locked(entry):
        beneath.roots.require_writable(entry.place)
        found = current(entry)
        require_replaceable(entry, found, place.written)
        replace(entry, data, found)
    return Written(len(data), found is None)


def edit_file(beneath: Beneath, place: Place, edits: Sequence[Edit], dry_run: bool = False) -> EditResult:
    """Apply `edits` to the text at `place`; raises `changed` when someone else wrote it meanwhile."""
    beneath.roots.require_writable(place)
    with beneath.locate(place) as entry, locked(entry):
        beneath.roots.require_writable(entry.place)
        found, data = _read(beneath, entry, place.written)
        before = decoded(data, place.written)
        after = apply_edits(before, edits, place.written)
        if after != before and not dry_run:
            require_replaceable(entry, current(entry), place.written)
            replace(entry, _encoded(after, place.written), found, lambda: _require_same(entry, found, place.written))
    diff = unified_diff(before, after, "/".join(place.parts))
    return EditResult(diff, len(edits), dry_run)


def create_directory(beneath: Beneath, place: Place) -> bool:
    """Make the directory at `place` and those above it that are missing; whether any was made."""
    beneath.roots.require_writable(place)
    created = False
    for depth in range(1, len(place.parts) + 1):
        created |= _make(beneath, Place(place.root_index, place.parts[:depth], place.written))
    return created


def _read(beneath: Beneath, entry: Entry, written: str) -> tuple[os.stat_result, bytes]:
    # What was found on the way may be older than the lock.
    fresh = entry._replace(stat=current(entry))
    handle = beneath.open_entry(fresh, written)
    with os.fdopen(handle.descriptor, "rb") as file:
        size = handle.stat.st_size
        data = file.read(MAX_EDITED + 1) if size <= MAX_EDITED else b""
    if max(size, len(data)) > MAX_EDITED:
        raise FilesError("too_large", written, f"has {size} bytes; the limit is {MAX_EDITED}")
    return handle.stat, data


def _encoded(text: str, written: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # JSON can spell half a surrogate pair.
        raise FilesError("bad_edit", written, "the new text holds characters that are no Unicode") from None


def _require_same(entry: Entry, found: os.stat_result, written: str) -> None:
    now = current(entry)
    if now is None or _version(now) != _version(found):
        raise FilesError("changed", written, "was changed by someone else meanwhile", "Read it again.")


def _version(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _make(beneath: Beneath, place: Place) -> bool:
    with beneath.locate(place) as entry:
        if entry.stat is not None:
            if not stat.S_ISDIR(entry.stat.st_mode):
                reason = f"{displayed(place.parts[-1])} exists and is not a directory"
                raise FilesError("not_a_directory", place.written, reason)
            return False
        if entry.linked:
            raise missing(entry, place.written)
        beneath.roots.require_writable(entry.place)
        try:
            os.mkdir(entry.name, dir_fd=entry.directory)
        except FileExistsError:
            # Someone was faster; if it is no directory the next step says so.
            return False
        return True
