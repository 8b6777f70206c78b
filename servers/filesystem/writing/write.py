"""Writing whole files, adding to them, and making directories.

All of it needs a writable place, takes the lock of the name it changes, and works in a directory held open. Files
are replaced atomically (see `replacing`). Adding to a file is an edit at its end: it is written anew with the text
behind what it holds, in its charset and its line ends. So it is never torn, which an append in place can be, when the
disk is full or the process ends; the price is that the file may not be larger than what is edited. A link at the end
of a written path leads to its target as long as that lies beneath the roots and exists.
"""

import os
import stat
from typing import Literal, NamedTuple

from servers.filesystem.access.beneath import Beneath, missing
from servers.filesystem.access.etags import etag_of
from servers.filesystem.access.roots import Place
from servers.filesystem.access.walk import Entry
from servers.filesystem.errors import FilesError
from servers.filesystem.names import displayed
from servers.filesystem.reading.charsets import UTF8, encode
from servers.filesystem.writing.checks import current, require_file_name, require_replaceable, require_same
from servers.filesystem.writing.editing import read_contents
from servers.filesystem.writing.locks import locked
from servers.filesystem.writing.replacing import replace
from servers.filesystem.writing.spans import eol_of, lf

Mode = Literal["overwrite", "create", "append"]


class Written(NamedTuple):
    """A file was written: its size and its etag, and whether it is new."""

    size: int
    etag: str
    created: bool


def write_file(
    beneath: Beneath,
    place: Place,
    text: str,
    mode: Mode = "overwrite",
    etag: str | None = None,
    protected: bool = False,
) -> Written:
    """Put `text` at `place`, as one step: over what is there, as a new file only, or behind what is there.

    With `etag`, only while the file still has that. `protected` files are replaced, too (see `require_replaceable`).
    Raises `changed`, and `already_exists` for "create".
    """
    require_file_name(place)
    beneath.roots.require_writable(place)
    with beneath.locate(place) as entry, locked(entry):
        beneath.roots.require_writable(entry.place)
        found = current(entry)
        require_same(found, etag, place.written)
        if mode == "create" and (found is not None or entry.linked):
            raise FilesError("already_exists", place.written, "already exists", "Choose another name.")
        require_replaceable(entry, found, place.written, protected)
        if mode == "append" and found is not None:
            found, data = _longer(beneath, entry, text, place.written)
        else:
            data = encode(text, UTF8, place.written)
        # What is overwritten anyway may be any version; otherwise it must be the one that was asked for, or read.
        seen = etag_of(found) if found is not None and (etag or mode == "append") else None
        now = replace(entry, data, found, lambda: require_same(current(entry), seen, place.written))
    return Written(len(data), etag_of(now), found is None)


def create_directory(beneath: Beneath, place: Place) -> bool:
    """Make the directory at `place` and those above it that are missing; whether any was made."""
    beneath.roots.require_writable(place)
    created = False
    for depth in range(1, len(place.parts) + 1):
        created |= _make(beneath, Place(place.root_index, place.parts[:depth], place.written))
    return created


def _longer(beneath: Beneath, entry: Entry, text: str, written: str) -> tuple[os.stat_result, bytes]:
    was = read_contents(beneath, entry, written)
    added = lf(text).replace("\n", "\r\n") if eol_of(was.text) == "\r\n" else text
    return was.found, was.data + encode(added, was.charset._replace(mark=b""), written)


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
