"""Writes, appends to and creates whole files, and creates directories.

Each operation needs a writable place, locks the name that it changes, and works in an open directory. Files are
replaced atomically (see `atomic`). Text is appended with `O_APPEND`, so that nothing is lost that other programs
append at the same time, and in the file's charset and line endings. If only part of it could be appended, that part
is removed again, unless another program has appended more since. An overwritten file also keeps its charset, byte
order mark and CRLF line endings. A link at the end of the path is followed if its target exists below the roots.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from servers.common.files.exchange import exchange, retry
from servers.common.files.locks import lock_entries
from servers.common.files.rooted_files import RootedFiles, missing_error
from shared.program.files.atomic import append, replace, sync, sync_directory
from shared.program.files.entries import (
    Entry,
    Handle,
    Place,
    etag_of,
    make_directory,
    open_to_append,
    read_bytes,
    stat_entry,
)
from shared.program.files.metadata import Attributes, attributes_of, lost_owner
from shared.text import quote_name

from ..errors import FilesError
from ..history.recording import NOT_RECORDED, FileVersion, Recorder, Survey
from ..history.states import DIRECTORY, file_state
from ..read.charsets import (
    UTF8,
    Charset,
    charset_by_mark,
    charset_by_name,
    charset_of,
    decode,
    decode_part,
    encode,
    require_sure,
)
from .preconditions import (
    require_file_name,
    require_new_name,
    require_replaceable,
    require_same,
)
from .text import eol_of, lf

MAX_EDITED = 16 * 1024 * 1024
"""Maximum size in bytes of a file that is edited or appended to, and of all files of one call combined."""
_HEAD_BYTES = 65_536
"""Number of bytes read from the start of an overwritten file to determine its charset and line endings."""

Mode = Literal["overwrite", "create", "append"]


class Contents(NamedTuple):
    """A text file when it was read: its status, extended attributes and bytes, and its text without a byte order
    mark."""

    stat: os.stat_result
    attributes: Attributes
    data: bytes
    text: str
    charset: Charset


class WriteResult(NamedTuple):
    """The result of a write: the size in bytes, the etag, True if the file is new, its charset, the lost metadata,
    and True if an appended text continues the last line of the file."""

    size: int
    etag: str
    created: bool
    charset: str
    lost: Sequence[str] = ()
    continues_line: bool = False


class WriteOptions(NamedTuple):
    """The options of a write. With `etag`, the file is written only if its etag still matches. With `protected`,
    write-protected files and files with several hard links are replaced too. The charset is `encoding`, or else the
    charset of the existing file, or else UTF-8. With `on_new_line`, an appended text never continues a line.
    """

    etag: str | None = None
    protected: bool = False
    encoding: str | None = None
    on_new_line: bool = False


_DEFAULTS = WriteOptions()


class _WriteRequest(NamedTuple):
    text: str
    mode: Mode
    options: WriteOptions
    recorder: Recorder


def write_file(
    rooted: RootedFiles,
    place: Place,
    text: str,
    mode: Mode = "overwrite",
    options: WriteOptions = _DEFAULTS,
    recorder: Recorder = NOT_RECORDED,
) -> WriteResult:
    """Write `text` to `place` in one step. `mode` is "overwrite", "create" for a new file only, or "append".

    Raises FilesError with code `changed`, `bad_encoding`, `unsure_charset` (see `require_sure`), or `already_exists`
    for "create".
    """
    require_file_name(place)
    # If the caller accepts any version of the file, the write is retried after a concurrent change.
    codes = () if options.etag is not None or mode == "create" else ("changed", "already_exists")
    return retry(lambda: _write_once(rooted, place, _WriteRequest(text, mode, options, recorder)), codes)


def create_directory(rooted: RootedFiles, place: Place, recorder: Recorder = NOT_RECORDED) -> bool:
    """Create the directory at `place` and its missing parents. Return True if any was created."""
    rooted.roots.require_writable(place)
    places = [Place(place.root_index, place.parts[:depth], place.path) for depth in range(1, len(place.parts) + 1)]
    created = False

    def describe(survey: Survey) -> None:
        path: str | None = None
        # Each place is inside the previous one, so all places after the first missing one are created too.
        for directory in places:
            if path is None:
                with rooted.locate(directory) as entry:
                    path = None if entry.stat is not None or entry.linked else rooted.roots.path(entry.place)
            else:
                path = os.path.join(path, directory.parts[-1])  # noqa: PTH118 (keeps surrogates)
            if path is not None:
                survey.record_creation(path, DIRECTORY)

    with recorder.record(rooted, "create_directory", describe):
        for directory in places:
            created |= _make_directory(rooted, directory)
    return created


def read_contents(
    rooted: RootedFiles, entry: Entry, handle: Handle | None, encoding: str | None, limit: int = MAX_EDITED
) -> Contents:
    """Return the contents of the file, which is locked. `handle` is the open file, if the lock has opened it. Raises
    FilesError with code `not_text`, `bad_encoding` or `too_large`.
    """
    path = entry.place.path
    # The status from the path lookup may be outdated: it was read before the file was locked.
    opened = handle or rooted.open_entry(entry._replace(stat=stat_entry(entry)), path)
    try:
        size = opened.stat.st_size
        data = read_bytes(opened.descriptor, limit + 1) if size <= limit else b""
        attributes = attributes_of(opened.descriptor)
    finally:
        if opened is not handle:
            os.close(opened.descriptor)
    if max(size, len(data)) > limit:
        raise FilesError(
            "too_large", path, f"has {size:,} bytes; the limit is {MAX_EDITED:,} bytes for all files in one call"
        )
    return Contents(opened.stat, attributes, data, *decode(data, path, encoding=encoding))


def _write_once(rooted: RootedFiles, place: Place, request: _WriteRequest) -> WriteResult:
    """Write like `write_file`, but don't retry after a concurrent change."""
    rooted.roots.require_writable(place)
    with rooted.locate(place) as entry, lock_entries(entry) as (handle,):
        rooted.roots.require_writable(entry.place)
        status = stat_entry(entry) if handle is None else handle.stat
        require_same(status, request.options.etag, place.path)
        if request.mode == "create" and (status is not None or entry.linked):
            raise FilesError("already_exists", place.path, "already exists", "Choose another name.")
        if status is None:
            require_new_name(rooted, entry.place)
        require_replaceable(entry, status, place.path, request.options.protected)
        if request.mode == "append" and status is not None:
            return _append_text(rooted, entry, handle, request)
        head, attributes = (b"", None) if status is None else _read_head(rooted, entry._replace(stat=status), handle)
        text, charset = _match_format(head, request, entry.place.path)
        data = encode(text, charset, place.path)
        # With an etag, or if the change is recorded for undo, only the version that was read may be replaced.
        is_exact = request.options.etag is not None or request.recorder.is_on
        put_file = partial(exchange, expected=status, data=None) if is_exact and status is not None else None

        def describe(survey: Survey) -> None:
            before = None
            if status is not None and attributes is not None:
                before = FileVersion(status, head if status.st_size == len(head) else None, attributes)
            survey.record_change(entry, file_state(data), before)

        with request.recorder.record(rooted, "write", describe):
            new_status = replace(entry, data, status, put_file=put_file, attributes=attributes)
    lost = [] if status is None else lost_owner(status, new_status)
    return WriteResult(len(data), etag_of(new_status), status is None, charset.name, lost)


def _read_head(rooted: RootedFiles, entry: Entry, handle: Handle | None) -> tuple[bytes, Attributes | None]:
    """Return the first bytes and the attributes of the file; b"" and None if it can't be read."""
    head, attributes = b"", None
    # A user who may replace a file may not be allowed to read it.
    with suppress(FilesError, OSError):
        opened = handle or rooted.open_entry(entry, entry.place.path)
        try:
            head = read_bytes(opened.descriptor, _HEAD_BYTES)
            attributes = attributes_of(opened.descriptor)
        finally:
            if opened is not handle:
                os.close(opened.descriptor)
    return head, attributes


def _match_format(head: bytes, request: _WriteRequest, path: str) -> tuple[str, Charset]:
    """Return the text with the line endings of the existing file, whose first bytes are `head`, and the charset to
    write it in."""
    encoding, is_whole = request.options.encoding, len(head) < _HEAD_BYTES
    requested_charset = None if encoding is None else charset_by_name(encoding, path, is_new_file=True)
    try:
        charset = charset_by_mark(head) or charset_of(head, path, whole=is_whole)
        existing_text = decode_part(head[len(charset.mark) :], charset, path, whole=is_whole)[0]
    except FilesError:
        # The existing file is not text.
        return request.text, requested_charset or UTF8
    new_charset = requested_charset or charset
    # The text may begin with the byte order mark that the file already has.
    text = request.text.removeprefix("\ufeff") if new_charset.mark else request.text
    if requested_charset is None:
        require_sure(charset, text, head, existing_text, path)
    # The first bytes of a long file may end between CR and LF.
    eol = eol_of(existing_text if is_whole else existing_text.removesuffix("\r"))
    # If most lines of the file end in LF, the text keeps its own line endings.
    return (text if eol == "\n" else lf(text).replace("\n", eol)), new_charset


def _append_text(rooted: RootedFiles, entry: Entry, handle: Handle | None, request: _WriteRequest) -> WriteResult:
    """Append the text to the existing file."""
    path = entry.place.path
    old = read_contents(rooted, entry, handle, request.options.encoding)
    require_same(old.stat, request.options.etag, path)
    require_sure(old.charset, request.text, old.data, old.text, path)
    text = request.text
    continues_line = bool(old.text) and not old.text.endswith(("\n", "\r")) and not text.startswith(("\n", "\r"))
    if continues_line and request.options.on_new_line:
        text, continues_line = f"\n{text}", False
    if "\n" in old.text or "\r" in old.text:
        # Appended text takes the line endings of the file, also LF. A text that replaces a whole file keeps its own
        # if the file has LF (`_match_format`).
        text = lf(text).replace("\n", eol_of(old.text))
    added = encode(text, old.charset._replace(mark=b""), path)

    def describe(survey: Survey) -> None:
        survey.record_append(entry, old.data, file_state(old.data + added))

    with request.recorder.record(rooted, "append", describe):
        if old.stat.st_nlink > 1 or not old.stat.st_mode & stat.S_IWUSR:
            # Appending in place would change the file under its other names too, or be refused.
            put_file = partial(exchange, expected=old.stat, data=None if request.options.etag else old.data)
            new_status = replace(entry, old.data + added, old.stat, put_file=put_file)
        else:
            new_status = _append(entry, added, old.stat)
    lost = lost_owner(old.stat, new_status)
    return WriteResult(new_status.st_size, etag_of(new_status), False, old.charset.name, lost, continues_line)


def _append(entry: Entry, data: bytes, status: os.stat_result) -> os.stat_result:
    """Append to the file with this `status`, and return its new status. Raises FilesError with code `changed` if the
    file has been replaced by another one, before or while the data was appended.
    """
    descriptor = open_to_append(entry)
    try:
        if os.path.samestat(os.fstat(descriptor), status):
            append(descriptor, data)
            sync(descriptor)
            new_status, present = os.fstat(descriptor), stat_entry(entry)
            if present is not None and os.path.samestat(present, new_status):
                return new_status
    finally:
        os.close(descriptor)
    raise FilesError(
        "changed", entry.place.path, "has been replaced by another program in the meantime", "Read it again."
    )


def _make_directory(rooted: RootedFiles, place: Place) -> bool:
    """Create the directory at `place`. Return False if it exists."""
    with rooted.locate(place) as entry:
        if entry.stat is not None:
            if not stat.S_ISDIR(entry.stat.st_mode):
                reason = f"{quote_name(place.parts[-1])} exists and is not a directory"
                raise FilesError("not_a_directory", place.path, reason)
            return False
        if entry.linked:
            raise missing_error(entry, place.path)
        rooted.roots.require_writable(entry.place)
        require_new_name(rooted, entry.place)
        try:
            make_directory(entry)
        except FileExistsError:
            # Another program has created an entry there. If that is not a directory, the next step fails.
            return False
        sync_directory(entry)
        return True
