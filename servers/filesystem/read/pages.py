"""Reads a text page by page, each within a budget.

The budget is the maximum size of the text as JSON, because that is what a host receives and truncates. A page that
would exceed it ends after a line if that uses at least half of the budget, otherwise between two characters, and has
a cursor to continue with. The next page begins at the cursor's byte, so that every page costs the same. No more is
read than the budget requires, except to count lines up to the requested one, a block at a time. Line endings stay as
they are; a byte order mark is left out.
"""

from collections.abc import Callable
from typing import AnyStr, NamedTuple

from pydantic_core import to_json

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Place, SmallFile, etag_of
from shared.text import format_count

from ..errors import FilesError
from .binary import OpenFile, Readable
from .charsets import (
    UTF8,
    Charset,
    charset_by_mark,
    charset_by_name,
    charset_of,
    decode_part,
    is_wide,
)
from .parts import WHOLE, Cursor, Part, cursor_of, require_valid

_SAMPLE_BYTES = 65_536
"""Number of bytes from which a charset is detected, and that are read at a time."""
_BLOCK_BYTES = 262_144
"""Number of bytes read at a time where lines are only counted."""
_MAX_UNREPORTED = 64 * 1024 * 1024
"""Maximum number of bytes that are read beyond the reported size of a file."""
_MAX_ESCAPE_BYTES = 6
"""Maximum number of bytes that one byte of a file takes in JSON."""


class TextRead(NamedTuple):
    """A text or a part of it, with the size of its file in bytes, the etag, and the charset.

    `truncated` is True if the text was cut because of the budget. `rest` is then the position at which the missing
    part begins; None if that part precedes the text, as in a tail. A document has `notes` for the reader, and its
    `size` is that of its text.
    """

    text: str
    size: int
    etag: str
    charset: Charset = UTF8
    truncated: bool = False
    rest: Cursor | None = None
    notes: tuple[str, ...] = ()
    cursor_suffix: str = ""
    """The selected pages of a document, appended to the rest in its cursor."""

    @property
    def cursor(self) -> str | None:
        """The cursor to continue with, if the rest follows the text."""
        return None if self.rest is None else f"{self.rest}{self.cursor_suffix}"


def _do_nothing() -> None:
    """Do nothing: the read can't be cancelled."""


def read_text(
    rooted: RootedFiles, place: Place, budget: int, part: Part = WHOLE, check: Callable[[], None] = _do_nothing
) -> TextRead:
    """Return part of the text at `place`, at most `budget` bytes of JSON. `check` is called often, and may raise.

    Raises FilesError: `not_text`, `bad_range`, `bad_encoding`, or `changed` if the file has changed since the cursor.
    """
    require_valid(part, place.path)
    with rooted.open_file(place) as handle:
        return _read_part(OpenFile(handle), etag_of(handle.stat), place.path, budget, part, check)


def read_small_text(
    small_file: SmallFile, place: Place, budget: int, part: Part = WHOLE, plain: str | None = None
) -> TextRead:
    """Return part of the text of a small file that is in memory, like `read_text`. `plain` is the whole text, if
    the file is UTF-8 without a byte order mark.
    """
    if plain is not None and part == WHOLE and len(small_file.data) * _MAX_ESCAPE_BYTES <= budget:
        return TextRead(plain, len(small_file.data), etag_of(small_file.stat))
    require_valid(part, place.path)
    return _read_part(small_file, etag_of(small_file.stat), place.path, budget, part)


def read_document_text(data: bytes, etag: str, path: str, budget: int, part: Part) -> TextRead:
    """Return part of the text, in UTF-8, of a document with this etag. Raises FilesError like `read_text`."""
    require_valid(part, path)
    return _read_part(_DocumentBytes(data), etag, path, budget, part)


class _DocumentBytes(NamedTuple):
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, position: int, count: int) -> bytes:
        return self.data[position : position + count]


def _read_part(
    source: Readable, etag: str, path: str, budget: int, part: Part, check: Callable[[], None] = _do_nothing
) -> TextRead:
    """Return the part of the text that `part` selects."""
    if part.cursor is not None:
        cursor = cursor_of(part.cursor, etag, path)
        return _read_page(source, path, budget, cursor, Charset(cursor.charset))
    start = source.read(0, _SAMPLE_BYTES)
    if part.encoding is not None:
        charset = charset_by_name(part.encoding, path, start)
    else:
        charset = charset_by_mark(start) or charset_of(start, path, whole=len(start) < _SAMPLE_BYTES)
    if part.tail is not None:
        return _read_tail(source, etag, path, budget, part.tail, charset)
    position = len(charset.mark)
    if part.offset is not None and part.offset > 1:
        position = _find_line(source, path, part.offset, charset, check)
    cursor = Cursor(etag, position, part.offset or 1, part.head or 0, charset.name)
    return _read_page(source, path, budget, cursor, charset)


def _read_page(source: Readable, path: str, budget: int, start: Cursor, charset: Charset) -> TextRead:
    """Return the page that begins at `start`, with at most `start.lines_left` lines, or any number if that is 0."""
    data, at_end = _read_forward(source, start, charset, _bytes_over_budget(budget, charset))
    text, charset = decode_part(data, charset, path, start.position, at_end)
    end = _find_line_end(text, "\n", start.lines_left) if start.lines_left else -1
    complete = at_end or end >= 0
    requested = text if end < 0 else text[:end]
    size = max(source.size, start.position + len(data))
    fitting = fitting_length(requested, budget)
    if complete and fitting == len(requested):
        return TextRead(requested, size, start.etag, charset)
    shown = requested[: requested.rfind("\n", fitting // 2, fitting) + 1 or fitting]
    ends = shown.count("\n")
    remaining = start.lines_left - ends if start.lines_left else 0
    position = start.position + len(shown.encode(charset.name))
    rest = Cursor(start.etag, position, start.line + ends, remaining, charset.name)
    return TextRead(shown, size, start.etag, charset, True, rest)


def json_size(text: str) -> int:
    """Return the number of bytes that the text takes in a JSON string."""
    return len(to_json(text)) - 2


def _bytes_over_budget(budget: int, charset: Charset) -> int:
    """Return a number of bytes whose text exceeds the budget; a multiple of 4, so that no character of UTF-32 is
    split."""
    return ((budget & ~3) + 4) * len("\n".encode(charset.name))


def _read_forward(source: Readable, start: Cursor, charset: Charset, limit: int) -> tuple[bytes, bool]:
    """Return up to `limit` bytes, fewer if these contain all requested lines; and True if they reach the end of the
    file."""
    data = source.read(
        start.position, limit if not start.lines_left or is_wide(charset) else min(_SAMPLE_BYTES, limit)
    )
    ends = data.count(b"\n") if start.lines_left else 0
    while start.lines_left > ends and len(data) < limit:
        block = source.read(start.position + len(data), min(_SAMPLE_BYTES, limit - len(data)))
        if not block:
            return data, True
        data += block
        ends += block.count(b"\n")
    return data, not source.read(start.position + len(data), 1)


def fitting_length(text: str, budget: int, from_end: bool = False) -> int:
    """Return the number of characters from the start of a text, or its end, that fit the budget; at least one."""
    if len(text) * _MAX_ESCAPE_BYTES <= budget:
        return len(text)
    count = len(text)
    if count > budget:
        # Too long: the size of a part gives an estimate, which saves measuring the whole text twice.
        part = text[-_SAMPLE_BYTES:] if from_end else text[:_SAMPLE_BYTES]
        count = min(count, budget * len(part) // (json_size(part) + 1))
    while (size := json_size(text[-count:] if from_end else text[:count])) > budget and count > 1:
        count = max(min(count - 1, count * budget // size), 1)
    return count


def _find_line_end(text: AnyStr, newline: AnyStr, number: int) -> int:
    """Return the position after line `number`; -1 if there are fewer line endings."""
    end = 0
    for _ in range(number):
        end = text.find(newline, end) + 1
        if end == 0:
            return -1
    return end


def _find_line(source: Readable, path: str, number: int, charset: Charset, check: Callable[[], None]) -> int:
    """Return the byte position at which line `number` begins. Raises FilesError with code `bad_range` if there are
    fewer lines."""
    position, line, block = 0, 1, b""
    while following := source.read(position, _BLOCK_BYTES):
        check()
        block = following
        ends = _count_line_ends(block, charset)
        if line + ends >= number:
            if is_wide(charset):
                text = block.decode(charset.name, "replace")
                position += len(text[: _find_line_end(text, "\n", number - line)].encode(charset.name))
            else:
                position += _find_line_end(block, b"\n", number - line)
            line = number
            break
        position += len(block)
        line += ends
    if line < number or not source.read(position, 1):
        lines = line - (not block or block.endswith("\n".encode(charset.name)))
        raise FilesError("bad_range", path, f"has {format_count(lines, 'line')}, so there is no line {number:,}")
    return position


def _count_line_ends(block: bytes, charset: Charset) -> int:
    """Return the number of line endings in a block of whole characters."""
    if is_wide(charset):
        return block.decode(charset.name, "replace").count("\n")
    return block.count(b"\n")


def _read_tail(source: Readable, etag: str, path: str, budget: int, count: int, charset: Charset) -> TextRead:
    """Return the last `count` lines, or only their end if they exceed the budget."""
    data, start = _read_backward(source, count, charset, _bytes_over_budget(budget, charset))
    whole = _whole_characters(data, charset) if start else data[len(charset.mark) :]
    text, charset = decode_part(whole, charset, path, start + len(data) - len(whole))
    begin = _find_last_lines(text, count)
    requested = text[max(begin, 0) :]
    fitting = fitting_length(requested, budget, from_end=True)
    size = source.size
    if fitting == len(requested) and (begin >= 0 or start == 0):
        return TextRead(requested, max(size, len(data)), etag, charset)
    begin = len(requested) - fitting
    shown = requested[requested.find("\n", max(begin - 1, 0), begin + fitting // 2) + 1 or begin :]
    return TextRead(shown, size, etag, charset, True)


def _read_backward(source: Readable, lines: int, charset: Charset, limit: int) -> tuple[bytes, int]:
    """Return the bytes at the end of the file, enough for the last `lines` lines or `limit` bytes, and the position
    where they begin."""
    size = source.size
    # Linux reports 0 for files in /proc, and 4,096 for those in /sys, so the end has to be searched.
    if size and not source.read(size - 1, 1):
        size = 0
    max_size = size + _MAX_UNREPORTED
    while size < max_size and (block := source.read(size, _BLOCK_BYTES)):
        size += len(block)
    blocks: list[bytes] = []
    start, ends = size, 0
    # Read `lines` + 1 line endings: the first ends the line before the requested ones. (If the last line of the file
    # has no line ending, one fewer would do; that is not checked.)
    while start > 0 and size - start < limit and ends <= lines:
        begin = max(start - _SAMPLE_BYTES, size - limit, 0) & ~3
        block = source.read(begin, start - begin)
        if len(block) < start - begin:
            break  # the file has become shorter
        blocks.append(block)
        start = begin
        ends += _count_line_ends(block, charset)
    return b"".join(reversed(blocks)), start


def _whole_characters(data: bytes, charset: Charset) -> bytes:
    """Return `data` without an incomplete character at its start. In a charset whose character boundaries can't be
    recognized, leave out the first line instead."""
    if charset.name == UTF8.name:
        begin = next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), 0)
    elif is_wide(charset) and data:
        # The high byte of the second half of a surrogate pair is DC to DF.
        begin = 2 if charset.name[:6] == "utf-16" and data[charset.name[-2:] == "le"] & 0xFC == 0xDC else 0
    else:
        begin = data.find(b"\n") + 1
    return data[begin:]


def _find_last_lines(text: str, count: int) -> int:
    """Return the start of the last `count` lines; -1 if there is no line ending before them."""
    end = len(text) - text.endswith("\n")
    for _ in range(count):
        end = text.rfind("\n", 0, end)
        if end < 0:
            return -1
    return end + 1
