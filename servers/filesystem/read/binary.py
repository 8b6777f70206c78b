"""Reads the bytes of a file, or of a part of it, up to a maximum size.

The source is an open file, or a small file that is already in memory.
"""

import os
from typing import NamedTuple, Protocol

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Handle, Place, etag_of

from ..errors import FilesError
from .charsets import decode_plain
from .media_types import BINARY, TEXT, media_type_of

_MAX_POSITION = 2**63 - 1
"""The largest position that the system supports."""


class Readable(Protocol):
    """Bytes that can be read from any position."""

    @property
    def size(self) -> int:
        """The number of bytes when reading began."""

    def read(self, position: int, count: int) -> bytes:
        """Return `count` bytes from `position` on; fewer only at the end."""


class Source(Readable, Protocol):
    """A `Readable` that is a file, and so has a status."""

    @property
    def stat(self) -> os.stat_result:
        """The status of the file when reading began."""


class OpenFile(NamedTuple):
    """An open file. Only one thread may use it, since its descriptor has a single read position."""

    handle: Handle

    @property
    def stat(self) -> os.stat_result:
        """The status of the file when it was opened."""
        return self.handle.stat

    @property
    def size(self) -> int:
        """The number of bytes in the file when it was opened."""
        return self.handle.stat.st_size

    def read(self, position: int, count: int) -> bytes:
        """Return `count` bytes from `position` on, fewer only at the end of the file."""
        descriptor = self.handle.descriptor
        if position > _MAX_POSITION - count:
            return b""  # some file systems accept the position but then refuse to read
        try:
            os.lseek(descriptor, position, os.SEEK_SET)
        except OSError:
            return b""  # no file on this file system is that long
        blocks: list[bytes] = []
        while count > 0 and (block := os.read(descriptor, count)):
            blocks.append(block)
            count -= len(block)
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)


class BytesRead(NamedTuple):
    """The bytes of a file or a part of it; the size and etag of the whole file, its modification time in seconds
    since 1970, and the media type that its name suggests.
    """

    data: bytes
    size: int
    etag: str
    modified: float
    mime: str


def read_bytes(
    rooted: RootedFiles, place: Place, max_bytes: int, offset: int | None = None, length: int | None = None
) -> BytesRead:
    """Return the bytes at `place`. Raises FilesError with code `too_large` if there are more than `max_bytes`.

    With `offset` or `length`, return that part, at most `max_bytes` of it.
    """
    with rooted.open_file(place) as handle:
        return bytes_of(OpenFile(handle), place, max_bytes, offset, length)


def bytes_of(
    source: Source, place: Place, max_bytes: int, offset: int | None = None, length: int | None = None
) -> BytesRead:
    """Return the bytes of a file that is open or in memory, like `read_bytes`."""
    size = source.size
    if offset is None and length is None:
        data = source.read(0, max_bytes + 1) if size <= max_bytes else b""
        size = max(size, len(data))
        if size > max_bytes:
            reason = f"has {size:,} bytes; the limit is {max_bytes:,}"
            raise FilesError("too_large", place.path, reason, "The operator can raise it with --max-result.")
    else:
        data = source.read(offset or 0, max_bytes if length is None else min(length, max_bytes))
    mime = media_type_of(place.parts[-1] if place.parts else "")
    if mime is None:
        mime = BINARY if decode_plain(data) is None else TEXT
    return BytesRead(data, size, etag_of(source.stat), source.stat.st_mtime, mime)
