"""The lines of an open file that match a pattern.

A file is read and searched in blocks: the engine searches a whole block, and lines are determined only around its
matches. A block ends with a line ending, and includes the lines that may be needed as context. A line longer than a
block is searched in parts. With `multiline` the whole file is one block. Small files of a directory are first
searched together as one text, if the pattern matches the same lines in it, since most files have no match.

A file in a charset other than UTF-8, detected as for a read, is converted to UTF-8. As in edits, CR LF ends a line
like LF: `$` matches before it, and no pattern matches the CR.
"""

import codecs
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, repeat
from typing import NamedTuple

from servers.common.documents.texts import DocumentText, may_be_document
from shared.program.files.entries import Handle

from ..errors import FilesError
from ..read.charsets import UTF8, Charset, charset_by_mark, charset_of
from .files import SearchProgress
from .matcher import (
    Matcher,
    Query,
    compile_query,
    counted_lines,
    matcher_for_large_file,
    matches_by_line,
)

BLOCK_BYTES = 1 << 20
"""Number of bytes read at a time. The first block shows a file's charset, or that it is binary."""
SMALL_FILE_BYTES = 1 << 16
"""Size in bytes from which a file is searched separately, not together with others."""
MAX_WHOLE = 16 << 20
"""Maximum size in bytes of a file that is searched as a whole."""
MAX_SHOWN = 500
"""Maximum number of characters shown of a line; if the line is longer, those around the match are shown."""
_BREAKING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that could make one line look like two, or move the cursor of a terminal. A tab is harmless."""


class Hit(NamedTuple):
    """A match in a text: its line number from 1, its lines `data[start:end]`, and the position `match` at which it
    begins."""

    number: int
    data: bytes
    start: int
    end: int
    match: int

    def text(self) -> str:
        """Return the lines of the match; if they are long, the text around its beginning."""
        line = _decode(self.data[self.start : self.end])
        if len(line) <= MAX_SHOWN:
            return _shorten(line)
        column = len(self.data[self.start : self.match].decode("utf-8", "replace")) + 1
        begin = min(max(column - MAX_SHOWN // 4, 0), len(line) - MAX_SHOWN)
        return ("…" if begin else "") + _shorten(line[begin:])

    def lines_before(self, count: int) -> list[str]:
        """Return the `count` lines before the match, or as many as there are."""
        start = start_of_lines(self.data, self.start, count)
        return [_shorten(_decode(line)) for line in self.data[start : self.start].split(b"\n")[:-1]]

    def lines_after(self, count: int) -> list[str]:
        """Return the `count` lines after the match, or as many as there are."""
        end = self.end
        for _ in range(count):
            if end + 1 >= len(self.data):
                break
            next_end = self.data.find(b"\n", end + 1)
            end = next_end if next_end >= 0 else len(self.data)
        return [_shorten(_decode(line)) for line in self.data[self.end : end].split(b"\n")[1:]]


_COUNTED_HIT = Hit(0, b"", 0, 0, 0)
"""Represents every hit if hits are only counted."""


class _Block(NamedTuple):
    """The text to search, `data[start:end]`, with the lines around it, `data[:size]`."""

    data: bytes | bytearray
    start: int
    end: int
    read: int
    """The position in the file up to which `data` was read."""
    size: int


class SearchedFile(NamedTuple):
    """The matches in a file, one for each line; its charset; and True if parts of a document are left out."""

    hits: Iterator[Hit]
    charset: str = UTF8.name
    is_partial: bool = False


NO_HITS = SearchedFile(iter(()))
"""The result for most files."""


ReadDocument = Callable[[Handle, float], DocumentText | None]
"""Takes a file and a number of seconds, and returns the text of the document; None if the file is not a document.
Raises FilesError."""


class Reader:
    """Searches files with one query. Reports `context` lines around each match. `read_document` reads documents; if
    it is None, they are not searched.

    Raises FilesError for a bad pattern.
    """

    def __init__(
        self,
        query: Query,
        context: int,
        progress: SearchProgress,
        read_document: ReadDocument | None = None,
        *,
        needs_lines: bool = True,
    ) -> None:
        """Without `needs_lines`, the hits are only counted, and may have neither numbers nor data."""
        self._query = query
        self._matcher = compile_query(query)
        self._counted_lines = None if needs_lines else counted_lines(query)
        self._search = self._matcher.search
        self._whole = query.multiline
        self._limit = MAX_WHOLE if query.multiline else BLOCK_BYTES
        self._by_line = matches_by_line(query)
        self.small_limit = min(SMALL_FILE_BYTES, self._limit)
        """Only files of fewer bytes than this are passed to `candidates` and `hits_in`."""
        self._context = context
        self._progress = progress
        self._read_document = read_document

    def hits(self, handle: Handle) -> SearchedFile | None:
        """Return the matches in a file; None if it is binary, or too large to be searched as a whole, or a document
        for which no time is left.

        Raises FilesError for a document, and OSError, including from the iterator.
        """
        descriptor, status = handle
        size = status.st_size
        if self._whole and size > MAX_WHOLE:
            return None
        requested = size + 1 if size < self._limit else self._limit
        data = os.read(descriptor, requested)
        if self._read_document is not None and may_be_document(data):
            share = self._progress.share_of_time()
            document = None if share is None else self._read_document(handle, share)
            if document is None:
                return None
            return self._search_text(document.text.encode())._replace(is_partial=bool(document.notes))
        if self._whole or len(data) < requested:
            return self.hits_in(data)
        read: Callable[[], bytes] = partial(os.read, descriptor, BLOCK_BYTES)
        charset = _charset_of(data, whole=False)
        if charset is None:
            return None
        data = data[len(charset.mark) :]
        numbers = _LineNumbers(descriptor, self._progress)
        if charset.name != UTF8.name:
            data, read = _convert_to_utf_8(data, charset, read)
            numbers = _LineNumbers(None, self._progress)
        data, read = _convert_line_endings(data, read)
        position = partial(os.lseek, descriptor, 0, os.SEEK_CUR)
        return SearchedFile(self._search_blocks(_blocks(read, position, data, self._context), numbers), charset.name)

    def candidates(self, texts: list[bytes]) -> Iterator[int]:
        """Yield the indexes of the files that may have matches or may be binary, given their contents."""
        joined = b"\n".join(texts)
        if not (self._by_line and joined.isascii()) or b"\0" in joined or b"\r" in joined:
            yield from range(len(texts))
            return
        match = self._search(joined) if texts else None
        ends = list(accumulate(len(text) + 1 for text in texts)) if match else []
        while match is not None:
            index = bisect_right(ends, match.span()[0])
            yield index
            if index == len(texts) - 1:
                return
            match = self._search(joined, ends[index])

    def hits_in(self, data: bytes) -> SearchedFile | None:
        """Return the matches in the whole contents of a file that is not a document; None if it is binary."""
        if data.isascii() and b"\0" not in data:
            return self._search_text(data)
        charset = _charset_of(data, whole=True)
        if charset is None:
            return None
        data = data[len(charset.mark) :]
        if charset.name != UTF8.name:
            data, _ = _convert_to_utf_8(data, charset, bytes)
        return self._search_text(data, charset.name)

    def _search_text(self, data: bytes, charset: str = UTF8.name) -> SearchedFile:
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        # Most files have no match.
        if not self._search(data):
            return NO_HITS
        return SearchedFile(_hits(data, 0, len(data), 1, self._matcher), charset)

    def _search_blocks(self, blocks: Iterator[_Block], numbers: "_LineNumbers") -> Iterator[Hit]:
        matcher, last, ends_line = matcher_for_large_file(self._query, self._matcher), 0, True
        for block in self._until_stopped(blocks, numbers):
            begins_line, ends_line = ends_line, block.data[block.end - 1 : block.end] == b"\n"
            if matcher.search(block.data, block.start, block.end) is None:
                continue
            if self._counted_lines is not None and begins_line and ends_line:
                yield _COUNTED_HIT  # before the lines are counted, since many callers need only one hit
                lines = self._counted_lines.findall(block.data, block.start, block.end)
                yield from repeat(_COUNTED_HIT, len(lines) - 1)
                continue
            first = numbers.first_line_of(block)
            if first is None:
                return
            # Copy the block: the caller may keep a hit, but the next block overwrites the memory.
            data = bytes(memoryview(block.data)[: block.size])
            for hit in _hits(data, block.start, block.end, first, matcher):
                # Each part of a line longer than a block may match.
                if hit.number > last:
                    yield hit
                last = hit.number

    def _until_stopped(self, blocks: Iterator[_Block], numbers: "_LineNumbers") -> Iterator[_Block]:
        for block in blocks:
            yield block
            if self._progress.stop_reason():
                return
            numbers.advance(block)


class _LineNumbers:
    """Computes the line numbers at which blocks begin. Only blocks with matches need them. So line endings are
    counted only then, by reading the file again, unless the file was converted: then they are counted in each
    block."""

    def __init__(self, descriptor: int | None, progress: SearchProgress) -> None:
        self._descriptor = descriptor
        self._progress = progress
        self._lines = self._counted = 0
        """`_lines` is the number of line endings in the first `_counted` bytes of the file."""

    def first_line_of(self, block: _Block) -> int | None:
        """Return the number of the first line of `block`; None if the search has ended."""
        if self._descriptor is None:
            return self._lines + 1
        reached = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        os.lseek(self._descriptor, self._counted, os.SEEK_SET)
        while self._counted < block.read and (
            piece := os.read(self._descriptor, min(BLOCK_BYTES, block.read - self._counted))
        ):
            self._lines += piece.count(b"\n")
            self._counted += len(piece)
            if self._progress.stop_reason():
                return None
        os.lseek(self._descriptor, reached, os.SEEK_SET)
        return self._lines + 1 - block.data.count(b"\n", block.start, block.size)

    def advance(self, block: _Block) -> None:
        """Note that `block` has been searched."""
        if self._descriptor is None:
            self._lines += block.data.count(b"\n", block.start, block.end)


def _charset_of(data: bytes, whole: bool) -> Charset | None:
    """Return the charset of a file, judged by its start; None if it is binary."""
    try:
        return charset_by_mark(data) or charset_of(data, "", whole=whole)
    except FilesError:
        # Bytes without NULs are searched as they are, although they are not text.
        return None if b"\0" in data else UTF8


def _convert_to_utf_8(data: bytes, charset: Charset, read: Callable[[], bytes]) -> tuple[bytes, Callable[[], bytes]]:
    """Return the start of a text, and the function that reads the rest, both converted to UTF-8."""
    decoder = codecs.getincrementaldecoder(charset.name)("replace")

    def read_on() -> bytes:
        while more := read():
            if text := decoder.decode(more):
                return text.encode()
        return decoder.decode(b"", True).encode()

    return decoder.decode(data).encode(), read_on


def _convert_line_endings(data: bytes, read: Callable[[], bytes]) -> tuple[bytes, Callable[[], bytes]]:
    """Return the start of a text, and the function that reads the rest, with LF for CR LF."""
    last = b""

    def convert(piece: bytes) -> bytes:
        nonlocal last
        piece, last = last + piece, b""
        if piece.endswith(b"\r"):  # its LF may come with the next block
            piece, last = piece[:-1], b"\r"
        return piece.replace(b"\r\n", b"\n") if b"\r" in piece else piece

    def read_on() -> bytes:
        nonlocal last
        while more := read():
            if text := convert(more):
                return text
        rest, last = last, b""
        return rest

    return convert(data), read_on


def _blocks(read: Callable[[], bytes], position: Callable[[], int], data: bytes, context: int) -> Iterator[_Block]:
    """Yield the blocks of a file that begins with `data`. `read` returns the next bytes, b"" at the end; `position`
    is the position in the file up to which it has read."""
    # All blocks use the same memory: the system takes longer to provide new memory than the engine to search it.
    buffer, size, start = bytearray(3 * BLOCK_BYTES), len(data), 0
    buffer[:size] = data
    while True:
        after_lines = last = buffer.rfind(b"\n", start, size) + 1
        for _ in range(context):
            last = buffer.rfind(b"\n", start, max(last - 1, start)) + 1
        end = last or after_lines or size
        keep = start_of_lines(buffer, end, context)
        if end - keep > BLOCK_BYTES:
            keep = end
        read_position = position()
        data = read()
        # An expression may look at what follows its match, so no old bytes of the buffer may follow the last line.
        text = buffer if data and end < size else bytes(memoryview(buffer)[:size])
        yield _Block(text, start, end if data else size, read_position, size)
        if not data:
            return
        buffer[: size - keep] = buffer[keep:size]
        size, start = size - keep + len(data), end - keep
        buffer[size - len(data) : size] = data
        del data


def start_of_lines(data: bytes | bytearray, end: int, count: int) -> int:
    """Return the start of the last `count` lines before `end`, which follows a line ending."""
    for _ in range(count):
        if end <= 0:
            break
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def _hits(data: bytes, start: int, end: int, number: int, matcher: Matcher) -> Iterator[Hit]:
    """Yield a hit for each match in `data[start:end]`, whose first line has this `number`."""
    counted = position = start
    while position < end:
        match = matcher.search(data, position, end)
        if match is None:
            return
        begins, ends = match.span()
        line = max(data.rfind(b"\n", start, begins) + 1, start)
        if line == end:
            # This is an empty match after the last line ending, where no line begins.
            return
        # A match that ends with a line ending does not extend into the next line.
        line_end = data.find(b"\n", max(ends - 1, begins), end)
        line_end = end if line_end < 0 else line_end
        number += data.count(b"\n", counted, line)
        yield Hit(number, data, line, line_end, begins)
        counted, position = line, line_end + 1


def _decode(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _shorten(line: str) -> str:
    return _BREAKING.sub(
        lambda match: match[0].encode("unicode_escape").decode(),
        line if len(line) <= MAX_SHOWN else line[:MAX_SHOWN] + "…",
    )
