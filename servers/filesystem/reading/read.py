"""Reading text and bytes within a budget.

Text is UTF-8, strictly: undecodable bytes and NUL are an error that names the offset, never replacement
characters. Nothing reads more than its budget (plus one byte, or one block) needs: a whole or `head` read
goes forward and stops, a `tail` read goes backward in blocks. A text over the budget is cut at the end of
a line if that keeps half of it, else between two characters, and the result says so. Line ends stay as
they are; a byte order mark is left out.
"""

import codecs
import mimetypes
import os
from functools import cache
from typing import NamedTuple

from servers.filesystem.access.beneath import Beneath, Handle
from servers.filesystem.access.roots import Place
from servers.filesystem.errors import FilesError

_BLOCK = 65_536
_SMALL = 4_096
_MORE_TYPES = {".webp": "image/webp", ".avif": "image/avif", ".md": "text/markdown"}


class TextRead(NamedTuple):
    """A text or a part of it.

    `size` is the file's size in bytes. `truncated` tells that the budget cut something off that was asked for.
    `total_lines` is known only when the whole file was read. `next_line` is the number (from 1) of the line at
    which the rest begins; None when nothing follows.
    """

    text: str
    size: int
    truncated: bool
    total_lines: int | None
    next_line: int | None


class BytesRead(NamedTuple):
    """A whole file and the media type its name suggests."""

    data: bytes
    mime: str


def read_text(
    beneath: Beneath, place: Place, max_bytes: int, head: int | None = None, tail: int | None = None
) -> TextRead:
    """The text at `place`: all of it, its first `head` or its last `tail` lines, `max_bytes` at most."""
    _check_lines(place.written, head, tail)
    with beneath.open_file(place) as handle:
        if tail is not None:
            return _tail(handle, place.written, tail, max_bytes)
        data = _forward(handle, max_bytes + 1, head)
        return _from_start(data, handle.stat.st_size, place.written, head, max_bytes)


def text_in(data: bytes, place: Place, max_bytes: int, head: int | None = None, tail: int | None = None) -> TextRead:
    """What `read_text` gives of a file that holds `data`."""
    _check_lines(place.written, head, tail)
    if tail is not None:
        return _to_end(data, 0, place.written, tail, max_bytes)
    return _from_start(data, len(data), place.written, head, max_bytes)


def read_bytes(beneath: Beneath, place: Place, max_bytes: int) -> BytesRead:
    """The bytes at `place`; raises `too_large` when there are more than `max_bytes`."""
    with beneath.open_file(place) as handle:
        size = handle.stat.st_size
        data = _forward(handle, max_bytes + 1, None) if size <= max_bytes else b""
    return _typed(data, max(size, len(data)), place, max_bytes)


def bytes_in(data: bytes, place: Place, max_bytes: int) -> BytesRead:
    """What `read_bytes` gives of a file that holds `data`."""
    return _typed(data, len(data), place, max_bytes)


def _typed(data: bytes, size: int, place: Place, max_bytes: int) -> BytesRead:
    if size > max_bytes:
        raise FilesError("too_large", place.written, f"has {size} bytes; the limit is {max_bytes}")
    return BytesRead(data, mime_of(place.parts[-1] if place.parts else ""))


def mime_of(name: str) -> str:
    """The media type a file name suggests."""
    return _types().guess_type(name, strict=False)[0] or "application/octet-stream"


@cache
def _types() -> mimetypes.MimeTypes:
    # Only the built-in table: the answer must not depend on the machine. Python reads the machine's nevertheless, so
    # this waits until somebody asks.
    types = mimetypes.MimeTypes(filenames=())
    for suffix, type_ in _MORE_TYPES.items():
        types.add_type(type_, suffix)
    return types


def decoded(data: bytes, written: str, offset: int = 0) -> str:
    """`data`, which starts at `offset` of the file, as text; raises `not_text` with the offending offset."""
    nul = data.find(0)
    try:
        text = data.decode() if nul < 0 else data[:nul].decode()
    except UnicodeDecodeError as error:
        raise _not_text(written, offset + error.start) from None
    if nul >= 0:
        raise _not_text(written, offset + nul)
    return text


def _not_text(written: str, offset: int) -> FilesError:
    reason = f"is not UTF-8 text (byte {offset})"
    return FilesError("not_text", written, reason, "Use read_media_file for binary files.")


def _check_lines(written: str, head: int | None, tail: int | None) -> None:
    if head is not None and tail is not None:
        raise FilesError("bad_range", written, "head and tail exclude each other", "Give one of them.")
    if head is not None and head < 1:
        raise FilesError("bad_range", written, "head must be at least 1")
    if tail is not None and tail < 1:
        raise FilesError("bad_range", written, "tail must be at least 1")


def _forward(handle: Handle, limit: int, lines: int | None) -> bytes:
    """Up to `limit` bytes from the start; stops after the block that completes `lines` lines."""
    blocks: list[bytes] = []
    size = newlines = 0
    while size < limit:
        step = _BLOCK if lines else max(handle.stat.st_size + 1 - size, _SMALL)
        block = os.read(handle.descriptor, min(step, limit - size))
        if not block:
            break
        blocks.append(block)
        size += len(block)
        if lines:
            newlines += block.count(b"\n")
            # The byte after the last wanted line tells whether anything follows it.
            if newlines > lines or (newlines == lines and not block.endswith(b"\n")):
                break
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _from_start(data: bytes, size: int, written: str, head: int | None, max_bytes: int) -> TextRead:
    wanted = _end_of_line(data, head) if head else len(data)
    end = min(wanted, max_bytes)
    truncated = end < wanted
    if truncated:
        end = _cut_end(data, end)
    more = end < len(data)
    begin = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    text = decoded(data[begin:end], written, begin)
    newlines = text.count("\n")
    total = None if more else newlines + (bool(text) and not text.endswith("\n"))
    return TextRead(text, max(size, len(data)), truncated, total, newlines + 1 if more else None)


def _end_of_line(data: bytes, count: int) -> int:
    end = 0
    for _ in range(count):
        found = data.find(b"\n", end)
        if found < 0:
            return len(data)
        end = found + 1
    return end


def _cut_end(data: bytes, end: int) -> int:
    """Where to cut `data` at or before `end`: after a line if that keeps half, else between characters."""
    line = data.rfind(b"\n", end // 2, end)
    if line >= 0:
        return line + 1
    for back in range(min(4, end)):
        if data[end - back] & 0xC0 != 0x80:
            return end - back
    return end


def _tail(handle: Handle, written: str, count: int, max_bytes: int) -> TextRead:
    data, start = _backward(handle.descriptor, handle.stat.st_size, count, max_bytes)
    return _to_end(data, start, written, count, max_bytes)


def _to_end(data: bytes, start: int, written: str, count: int, max_bytes: int) -> TextRead:
    """The last `count` lines, where `data` is the file from `start` on."""
    size = start + len(data)
    begin = _start_of_lines(data, count)
    found = begin is not None
    begin = begin or 0
    truncated = (not found and start > 0) or len(data) - begin > max_bytes
    if truncated:
        begin = _cut_start(data, max(begin, len(data) - max_bytes))
    body = data[begin:]
    whole = start + begin == 0
    offset = start + begin
    if whole and body.startswith(codecs.BOM_UTF8):
        body, offset = body[3:], 3
    text = decoded(body, written, offset)
    total = text.count("\n") + (bool(text) and not text.endswith("\n")) if whole else None
    return TextRead(text, size, truncated, total, None)


def _backward(descriptor: int, size: int, lines: int, limit: int) -> tuple[bytes, int]:
    """The end of the file and where it starts: enough for `lines` lines, or just over `limit` bytes."""
    blocks: list[bytes] = []
    start, newlines = size, 0
    # One newline more than lines: the one that ends the line before, or the file's last one.
    while start > 0 and size - start <= limit and newlines <= lines:
        length = min(_BLOCK, start, limit + 1 - (size - start))
        os.lseek(descriptor, start - length, os.SEEK_SET)
        block = os.read(descriptor, length)
        if len(block) < length:
            break
        blocks.append(block)
        start -= length
        newlines += block.count(b"\n")
    return b"".join(reversed(blocks)), start


def _start_of_lines(data: bytes, count: int) -> int | None:
    """Where the last `count` lines begin; None when `data` holds no line end before them."""
    end = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(count):
        end = data.rfind(b"\n", 0, end)
        if end < 0:
            return None
    return end + 1


def _cut_start(data: bytes, start: int) -> int:
    """Where to cut `data` at or after `start`: before a line if that keeps half, else between characters."""
    line = data.find(b"\n", max(start - 1, 0), (start + len(data)) // 2)
    if line >= 0:
        return line + 1
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start
