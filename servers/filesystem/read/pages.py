"""Reading a text page by page, each within a budget.

The budget is what the text takes as JSON, since that is what a host gets and cuts. A page over it ends after a line
if that keeps half of it, else between two characters, and has a cursor to go on with; a page begins at the cursor's
byte, so that each costs the same. Nothing reads more than its budget needs, but for lines that have to be counted to
find the one asked for, a block at a time. Line ends stay as they are; a byte order mark is left out.
"""

from collections.abc import Callable
from typing import AnyStr, NamedTuple

from pydantic_core import to_json

from servers.common.files.rooted_files import RootedFiles
from servers.filesystem.errors import FilesError
from servers.filesystem.read.binary import Opened, Readable
from servers.filesystem.read.charsets import (
    UTF8,
    Charset,
    charset_of,
    decode_part,
    is_wide,
    marked,
    named,
    plain,
)
from servers.filesystem.read.parts import WHOLE, Cursor, Part, cursor_of, require_possible
from shared.program.files.entries import Held, Place, etag_of

_SAMPLE = 65_536
_BLOCK = 262_144
_LONGEST_ESCAPE = 6
"""Bytes that one byte of a file can take in JSON."""


class TextRead(NamedTuple):
    """A text or a part of it, with what is to be known of its file: the size in bytes, the etag, the charset.

    `truncated` tells that the budget cut something off that was asked for; `rest` is where it begins, None where it
    stands before the text. Of a document there are `notes` for its reader, and the size is that of its text.
    """

    text: str
    size: int
    etag: str
    charset: Charset = UTF8
    truncated: bool = False
    rest: Cursor | None = None
    notes: tuple[str, ...] = ()
    choice: str = ""
    """What the cursor ends with, of a document."""

    @property
    def cursor(self) -> str | None:
        """The cursor to go on with, where the rest is behind the text."""
        return None if self.rest is None else f"{self.rest}{self.choice}"


def _go_on() -> None:
    """Nobody cancels."""


def read_text(
    beneath: RootedFiles, place: Place, budget: int, part: Part = WHOLE, check: Callable[[], None] = _go_on
) -> TextRead:
    """A part of the text at `place`, `budget` bytes of JSON at most; `check` is called now and then, and may raise.

    Raises FilesError `not_text`, `bad_range`, `bad_encoding`, or `changed` for a cursor of a file changed since.
    """
    require_possible(part, place.written)
    with beneath.open_file(place) as handle:
        return _text_of(Opened(handle), etag_of(handle.stat), place.written, budget, part, check)


def text_in(held: Held, place: Place, budget: int, part: Part = WHOLE) -> TextRead:
    """What `read_text` gives of a file that is held."""
    if part == WHOLE and len(held.data) * _LONGEST_ESCAPE <= budget:
        text = plain(held.data)
        if text is not None:
            return TextRead(text, len(held.data), etag_of(held.stat))
    require_possible(part, place.written)
    return _text_of(held, etag_of(held.stat), place.written, budget, part)


def text_in_document(data: bytes, etag: str, written: str, budget: int, part: Part) -> TextRead:
    """A part of the text, in UTF-8, of a document that has this etag. Raises FilesError like `read_text`."""
    require_possible(part, written)
    return _text_of(_Extracted(data), etag, written, budget, part)


class _Extracted(NamedTuple):
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, position: int, count: int) -> bytes:
        return self.data[position : position + count]


def _text_of(
    source: Readable, etag: str, written: str, budget: int, part: Part, check: Callable[[], None] = _go_on
) -> TextRead:
    if part.cursor is not None:
        cursor = cursor_of(part.cursor, etag, written)
        return _page(source, written, budget, cursor, Charset(cursor.charset))
    start = source.read(0, _SAMPLE)
    if part.encoding is not None:
        charset = named(part.encoding, written, start)
    else:
        charset = marked(start) or charset_of(start, written, whole=len(start) < _SAMPLE)
    if part.tail is not None:
        return _last(source, etag, written, budget, part.tail, charset)
    position = len(charset.mark)
    if part.offset is not None and part.offset > 1:
        position = _line_start(source, written, part.offset, charset, check)
    cursor = Cursor(etag, position, part.offset or 1, part.head or 0, charset.name)
    return _page(source, written, budget, cursor, charset)


def _page(source: Readable, written: str, budget: int, start: Cursor, charset: Charset) -> TextRead:
    data, ended = _forward(source, start, charset, _enough(budget, charset))
    text, charset = decode_part(data, charset, written, start.position, ended)
    end = _line_end(text, "\n", start.left) if start.left else -1
    complete = ended or end >= 0
    wanted = text if end < 0 else text[:end]
    size = max(source.size, start.position + len(data))
    fitting = fit(wanted, budget)
    if complete and fitting == len(wanted):
        return TextRead(wanted, size, start.etag, charset)
    shown = wanted[: wanted.rfind("\n", fitting // 2, fitting) + 1 or fitting]
    ends = shown.count("\n")
    left = start.left - ends if start.left else 0
    position = start.position + len(shown.encode(charset.name))
    rest = Cursor(start.etag, position, start.line + ends, left, charset.name)
    return TextRead(shown, size, start.etag, charset, True, rest)


def json_size(text: str) -> int:
    """How many bytes the text takes within a JSON string."""
    return len(to_json(text)) - 2


def _enough(budget: int, charset: Charset) -> int:
    """Bytes of a file that hold more than the budget, in whole characters of UTF-32."""
    return ((budget & ~3) + 4) * len("\n".encode(charset.name))


def _forward(source: Readable, start: Cursor, charset: Charset, limit: int) -> tuple[bytes, bool]:
    """Up to `limit` bytes, fewer where the lines wanted are complete; and whether the file ends with them."""
    data = source.read(start.position, limit if not start.left or is_wide(charset) else min(_SAMPLE, limit))
    ends = data.count(b"\n") if start.left else 0
    while start.left > ends and len(data) < limit:
        block = source.read(start.position + len(data), min(_SAMPLE, limit - len(data)))
        if not block:
            return data, True
        data += block
        ends += block.count(b"\n")
    return data, not source.read(start.position + len(data), 1)


def fit(text: str, budget: int, from_end: bool = False) -> int:
    """How many characters at the start of a text, or at its end, are within the budget as JSON; one at least."""
    if len(text) * _LONGEST_ESCAPE <= budget:
        return len(text)
    count = len(text)
    if count > budget:
        # More than fits: what a part of it takes tells about how much does, which saves measuring all of it twice.
        part = text[-_SAMPLE:] if from_end else text[:_SAMPLE]
        count = min(count, budget * len(part) // (json_size(part) + 1))
    while (size := json_size(text[-count:] if from_end else text[:count])) > budget and count > 1:
        count = max(min(count - 1, count * budget // size), 1)
    return count


def _line_end(text: AnyStr, newline: AnyStr, number: int) -> int:
    """Where line `number` ends; -1 where there are fewer line ends."""
    end = 0
    for _ in range(number):
        end = text.find(newline, end) + 1
        if end == 0:
            return -1
    return end


def _line_start(source: Readable, written: str, number: int, charset: Charset, check: Callable[[], None]) -> int:
    """The byte at which line `number` begins. Raises FilesError `bad_range` where there are fewer."""
    position, line, block = 0, 1, b""
    while following := source.read(position, _BLOCK):
        check()
        block = following
        ends = _ends(block, charset)
        if line + ends >= number:
            position += _after(block, charset, number - line)
            line = number
            break
        position += len(block)
        line += ends
    if line < number or not source.read(position, 1):
        lines = line - (not block or block.endswith("\n".encode(charset.name)))
        raise FilesError("bad_range", written, f"has {lines:,} lines, so there is no line {number:,}")
    return position


def _ends(block: bytes, charset: Charset) -> int:
    """How many lines end in a block of whole characters."""
    if is_wide(charset):
        return block.decode(charset.name, "replace").count("\n")
    return block.count(b"\n")


def _after(block: bytes, charset: Charset, lines: int) -> int:
    """The byte of a block after which that many lines have ended."""
    if not is_wide(charset):
        return _line_end(block, b"\n", lines)
    text = block.decode(charset.name, "replace")
    return len(text[: _line_end(text, "\n", lines)].encode(charset.name))


def _last(source: Readable, etag: str, written: str, budget: int, count: int, charset: Charset) -> TextRead:
    """The last lines, and of those too long for the budget the end."""
    data, start = _backward(source, count, charset, _enough(budget, charset))
    kept = _whole_characters(data, charset) if start else data[len(charset.mark) :]
    text, charset = decode_part(kept, charset, written, start + len(data) - len(kept))
    begin = _last_lines(text, count)
    wanted = text[max(begin, 0) :]
    fitting = fit(wanted, budget, from_end=True)
    size = source.size
    if fitting == len(wanted) and (begin >= 0 or start == 0):
        return TextRead(wanted, max(size, len(data)), etag, charset)
    begin = len(wanted) - fitting
    shown = wanted[wanted.find("\n", max(begin - 1, 0), begin + fitting // 2) + 1 or begin :]
    return TextRead(shown, size, etag, charset, True)


def _backward(source: Readable, lines: int, charset: Charset, limit: int) -> tuple[bytes, int]:
    """The end of the file and where it starts: enough for the last `lines` lines, or `limit` bytes."""
    blocks: list[bytes] = []
    size = source.size
    start, ends = size, 0
    # One line end more than lines: the one that ends the line before, or the file's last one.
    while start > 0 and size - start < limit and ends <= lines:
        begin = max(start - _SAMPLE, size - limit, 0) & ~3
        block = source.read(begin, start - begin)
        if len(block) < start - begin:
            break  # it is shorter by now
        blocks.append(block)
        start = begin
        ends += _ends(block, charset)
    return b"".join(reversed(blocks)), start


def _whole_characters(data: bytes, charset: Charset) -> bytes:
    """`data`, which may start within a character, from the next one on."""
    if charset.name == UTF8.name:
        begin = next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), 0)
    elif is_wide(charset) and data:
        # The second half of a pair: its high byte is DC to DF.
        begin = 2 if charset.name[:6] == "utf-16" and data[charset.name[-2:] == "le"] & 0xFC == 0xDC else 0
    else:
        begin = data.find(b"\n") + 1
    return data[begin:]


def _last_lines(text: str, count: int) -> int:
    """Where the last `count` lines begin; -1 where no line end stands before them."""
    end = len(text) - text.endswith("\n")
    for _ in range(count):
        end = text.rfind("\n", 0, end)
        if end < 0:
            return -1
    return end + 1
