"""Writing whole files, adding to them, and making directories.

All of it needs a writable place, takes the lock of the name it changes, and works in a directory held open. Files
are replaced atomically (see `atomic`). Adding to a file is a write at its end (`O_APPEND`), so that what other
programs add at the same time is not lost; the text comes in its charset and its line ends, and what does not get to
the disk is taken away again, unless somebody has added more by then. What is overwritten keeps its charset, its byte
order mark and its CRLF line ends as well. A link at the end of a written path leads to its target as long as that
lies beneath the roots and exists.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from servers.common.files.exchange import exchange, persistently
from servers.common.files.locks import locked
from servers.common.files.rooted_files import RootedFiles, missing
from servers.filesystem.edit.preconditions import require_file_name, require_replaceable, require_same
from servers.filesystem.edit.text import eol_of, lf
from servers.filesystem.errors import FilesError
from servers.filesystem.history.recording import NOT_RECORDED, Recorder, Survey
from servers.filesystem.history.states import DIRECTORY, file_state
from servers.filesystem.read.charsets import (
    UTF8,
    Charset,
    charset_of,
    decode,
    decode_part,
    encode,
    marked,
    named,
    require_sure,
)
from shared.program.files.atomic import add, replace, sync, sync_directory
from shared.program.files.entries import Entry, Place, current, etag_of, make_directory, open_to_append
from shared.program.files.metadata import lost_owner
from shared.text import quoted

MAX_EDITED = 16 * 1024 * 1024
"""Largest file that is edited or appended to, and all files of one call together, in bytes."""
_START = 65_536
"""Bytes by which the charset and the line ends of a file are known that is to be overwritten."""

Mode = Literal["overwrite", "create", "append"]


class Contents(NamedTuple):
    """A text file as it was read: the text has no byte order mark."""

    found: os.stat_result
    data: bytes
    text: str
    charset: Charset


class Written(NamedTuple):
    """A file was written: its size and its etag, whether it is new, its charset, and what of its owner and group was
    lost."""

    size: int
    etag: str
    created: bool
    charset: str
    lost: Sequence[str] = ()


class How(NamedTuple):
    """With `etag`, a file is written only while it still has that; `protected` ones are, too (see
    `require_replaceable`); in the charset `encoding`, else in that of what is there, else in UTF-8."""

    etag: str | None = None
    protected: bool = False
    encoding: str | None = None


_ANYHOW = How()


class _Wanted(NamedTuple):
    text: str
    mode: Mode
    how: How
    recorder: Recorder


def write_file(
    beneath: RootedFiles,
    place: Place,
    text: str,
    mode: Mode = "overwrite",
    how: How = _ANYHOW,
    recorder: Recorder = NOT_RECORDED,
) -> Written:
    """Put `text` at `place`, as one step: over what is there, as a new file only, or behind what is there.

    Raises `changed`, `bad_encoding`, `unsure_charset` (see `require_sure`), and `already_exists` for "create".
    """
    require_file_name(place)
    # Where any version will do, what others do meanwhile is a reason to try again.
    codes = () if how.etag is not None or mode == "create" else ("changed", "already_exists")
    return persistently(lambda: _written(beneath, place, _Wanted(text, mode, how, recorder)), codes)


def create_directory(beneath: RootedFiles, place: Place, recorder: Recorder = NOT_RECORDED) -> bool:
    """Make the directory at `place` and those above it that are missing; whether any was made."""
    beneath.roots.require_writable(place)
    places = [Place(place.root_index, place.parts[:depth], place.written) for depth in range(1, len(place.parts) + 1)]
    created = False
    with recorder.recording(beneath, "create_directory", partial(_describe_directories, beneath, places)):
        for directory in places:
            created |= _make(beneath, directory)
    return created


def read_contents(
    beneath: RootedFiles, entry: Entry, written: str, limit: int = MAX_EDITED, encoding: str | None = None
) -> Contents:
    """The text of the file, which is locked. Raises `not_text`, `bad_encoding` and `too_large`."""
    # What was found on the way may be older than the lock.
    handle = beneath.open_entry(entry._replace(stat=current(entry)), written)
    with os.fdopen(handle.descriptor, "rb") as file:
        size = handle.stat.st_size
        data = file.read(limit + 1) if size <= limit else b""
    if max(size, len(data)) > limit:
        raise FilesError(
            "too_large", written, f"has {size:,} bytes; the limit is {MAX_EDITED:,} for all files of a call"
        )
    return Contents(handle.stat, data, *decode(data, written, encoding=encoding))


def _written(beneath: RootedFiles, place: Place, wanted: _Wanted) -> Written:
    beneath.roots.require_writable(place)
    with beneath.locate(place) as entry, locked(entry):
        beneath.roots.require_writable(entry.place)
        found = current(entry)
        require_same(found, wanted.how.etag, place.written)
        if wanted.mode == "create" and (found is not None or entry.linked):
            raise FilesError("already_exists", place.written, "already exists", "Choose another name.")
        require_replaceable(entry, found, place.written, wanted.how.protected)
        if wanted.mode == "append" and found is not None:
            return _longer(beneath, entry, wanted)
        text, charset = _as_before(beneath, entry, found, wanted)
        data = encode(text, charset, place.written)
        # What is overwritten anyway may be any version, but it is undone only to the one that was noted down.
        exact = wanted.how.etag is not None or wanted.recorder.is_on
        put = partial(exchange, found=found, data=None) if exact and found is not None else None
        with wanted.recorder.recording(beneath, "write", lambda survey: survey.changes(entry, file_state(data))):
            now = replace(entry, data, found, put=put)
    lost = [] if found is None else lost_owner(found, now)
    return Written(len(data), etag_of(now), found is None, charset.name, lost)


def _as_before(
    beneath: RootedFiles, entry: Entry, found: os.stat_result | None, wanted: _Wanted
) -> tuple[str, Charset]:
    """The text with the line ends of what it replaces, and the charset to write it in."""
    written = entry.place.written
    start = b""
    if found is not None:
        # Who may replace a file need not be allowed to read it.
        with suppress(FilesError, OSError):
            handle = beneath.open_entry(entry._replace(stat=found), written)
            with os.fdopen(handle.descriptor, "rb") as file:
                start = file.read(_START)
    named_charset = None if wanted.how.encoding is None else named(wanted.how.encoding, written, fresh=True)
    try:
        charset = marked(start) or charset_of(start, written, whole=len(start) < _START)
        seen = decode_part(start[len(charset.mark) :], charset, written, whole=len(start) < _START)[0]
    except FilesError:
        # What is there is no text.
        return wanted.text, named_charset or UTF8
    if named_charset is None:
        require_sure(charset, wanted.text, start, seen, written)
    return _with_eol_of(seen, wanted.text), named_charset or charset


def _with_eol_of(was: str, text: str) -> str:
    """`text` with CRLF line ends where most of those of `was` are; otherwise with its own."""
    return lf(text).replace("\n", "\r\n") if eol_of(was) == "\r\n" else text


def _longer(beneath: RootedFiles, entry: Entry, wanted: _Wanted) -> Written:
    written = entry.place.written
    was = read_contents(beneath, entry, written, encoding=wanted.how.encoding)
    require_same(was.found, wanted.how.etag, written)
    require_sure(was.charset, wanted.text, was.data, was.text, written)
    text = _with_eol_of(was.text, wanted.text)
    added = encode(text, was.charset._replace(mark=b""), written)

    def describe(survey: Survey) -> None:
        survey.appends(entry, was.data, file_state(was.data + added))

    with wanted.recorder.recording(beneath, "append", describe):
        if was.found.st_nlink > 1 or not was.found.st_mode & stat.S_IWUSR:
            # It may only be replaced.
            put = partial(exchange, found=was.found, data=None if wanted.how.etag else was.data)
            now = replace(entry, was.data + added, was.found, put=put)
        else:
            now = _added(entry, added, was.found)
    return Written(now.st_size, etag_of(now), False, was.charset.name, lost_owner(was.found, now))


def _added(entry: Entry, data: bytes, found: os.stat_result) -> os.stat_result:
    """Adds to the file that was found, and tells what it is then. Raises `changed` where it is another one by now, or
    has become one."""
    descriptor = open_to_append(entry)
    try:
        if os.path.samestat(os.fstat(descriptor), found):
            add(descriptor, data)
            sync(descriptor)
            now, there = os.fstat(descriptor), current(entry)
            if there is not None and os.path.samestat(there, now):
                return now
    finally:
        os.close(descriptor)
    raise FilesError("changed", entry.place.written, "was replaced by someone else meanwhile", "Read it again.")


def _describe_directories(beneath: RootedFiles, places: Sequence[Place], survey: Survey) -> None:
    """Notes down which of the places, each in the one before it, are going to be made."""
    made: str | None = None
    for place in places:
        if made is None:
            with beneath.locate(place) as entry:
                made = None if entry.stat is not None or entry.linked else beneath.roots.path(entry.place)
        else:
            made = os.path.join(made, place.parts[-1])  # noqa: PTH118 (keeps surrogates)
        if made is not None:
            survey.makes(made, DIRECTORY)


def _make(beneath: RootedFiles, place: Place) -> bool:
    with beneath.locate(place) as entry:
        if entry.stat is not None:
            if not stat.S_ISDIR(entry.stat.st_mode):
                reason = f"{quoted(place.parts[-1])} exists and is not a directory"
                raise FilesError("not_a_directory", place.written, reason)
            return False
        if entry.linked:
            raise missing(entry, place.written)
        beneath.roots.require_writable(entry.place)
        try:
            make_directory(entry)
        except FileExistsError:
            # Someone was faster; if it is no directory the next step says so.
            return False
        sync_directory(entry)
        return True
