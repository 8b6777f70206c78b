"""The lines of an open file that match a pattern.

A file is read in blocks and searched a block at a time: the engine goes over the whole block, and only where it found
something is the line around it determined. A block ends with a line, and includes the lines that may be needed as
context. A line that is longer than a block is searched in parts. With `multiline` the whole file is one block.

A file in another charset than UTF-8, which is detected as for a read, is converted to UTF-8. CR LF ends a line as LF
does, and as it does for edits: `$` matches before it, and no pattern sees the CR.
"""

import codecs
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from servers.common.documents.texts import DocumentText, may_be_document
from servers.filesystem.errors import FilesError
from servers.filesystem.read.charsets import UTF8, Charset, charset_of, marked
from servers.filesystem.search.files import Control
from servers.filesystem.search.matcher import Matcher
from shared.program.files.entries import Handle

BLOCK = 1 << 20
"""Bytes that are read at once; those at the start of a file show its charset, or that it is binary."""
MAX_WHOLE = 16 << 20
"""Bytes of the largest file that is searched as a whole."""
MAX_SHOWN = 500
"""Characters of a line that are shown; of a longer one, those around the match."""
_BREAKING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that could make one line look like two, or move the cursor of a terminal. A tab is harmless."""


class Hit(NamedTuple):
    """A match: the number of its line, counted from 1, and its position and that of its lines in `data`."""

    number: int
    data: bytes
    start: int
    end: int
    match: int

    def text(self) -> str:
        """Return the lines of the match; if they are long, the text around its beginning."""
        line = _decoded(self.data[self.start : self.end])
        if len(line) <= MAX_SHOWN:
            return _shown(line)
        column = len(self.data[self.start : self.match].decode("utf-8", "replace")) + 1
        begin = min(max(column - MAX_SHOWN // 4, 0), len(line) - MAX_SHOWN)
        return ("…" if begin else "") + _shown(line[begin:])

    def before(self, count: int) -> list[str]:
        """Return the `count` lines before, or as many as there are."""
        start = start_of_lines(self.data, self.start, count)
        return [_shown(_decoded(line)) for line in self.data[start : self.start].split(b"\n")[:-1]]

    def after(self, count: int) -> list[str]:
        """Return the `count` lines after, or as many as there are."""
        end = self.end
        for _ in range(count):
            if end + 1 >= len(self.data):
                break
            next_end = self.data.find(b"\n", end + 1)
            end = next_end if next_end >= 0 else len(self.data)
        return [_shown(_decoded(line)) for line in self.data[self.end : end].split(b"\n")[1:]]


class _Block(NamedTuple):
    """The text to search, `data[start:end]`, with the lines around it."""

    data: bytes
    start: int
    end: int


class Searched(NamedTuple):
    """The matches in a file, one for each line, and its charset; and True if parts of a document are left out."""

    hits: Iterator[Hit]
    charset: str = UTF8.name
    is_partial: bool = False


NO_HITS = Searched(iter(()))
"""The result for most files."""


ReadDocument = Callable[[Handle, float], DocumentText | None]
"""Returns the text of a document, within a number of seconds; None if the file is not one. Raises FilesError."""


class Reader:
    """The parameters of a search of files: pattern, by blocks or whole files, lines of context, limit of time, and
    the reader of documents, if they are searched.
    """

    def __init__(
        self,
        matcher: Matcher,
        whole: bool,
        context: int,
        control: Control,
        read_document: ReadDocument | None = None,
    ) -> None:
        self._matcher = matcher
        self._search = matcher.search
        self._whole = whole
        self._most = MAX_WHOLE if whole else BLOCK
        self._context = context
        self._control = control
        self._read_document = read_document

    def hits(self, handle: Handle) -> Searched | None:
        """Return the matches in a file; None if it is binary, or too large to be searched as a whole, or a document
        for which no time is left.

        Raises FilesError for a document, and OSError, also from the iterator.
        """
        descriptor, status = handle
        size = status.st_size
        if self._whole and size > MAX_WHOLE:
            return None
        requested = size + 1 if size < self._most else self._most
        data = os.read(descriptor, requested)
        if self._read_document is not None and may_be_document(data):
            share = self._control.share_of_time()
            document = None if share is None else self._read_document(handle, share)
            if document is None:
                return None
            return self._whole_text(document.text.encode())._replace(is_partial=bool(document.notes))
        complete = self._whole or len(data) < requested
        charset, read = UTF8, None
        if b"\0" in data or not data.isascii():
            detected = _charset_of(data, complete)
            if detected is None:
                return None
            charset = detected
            data = data[len(charset.mark) :]
            if charset.name != UTF8.name:
                data, read = _in_utf_8(data, charset, partial(os.read, descriptor, BLOCK))
        if not complete:
            data, read = _with_line_feeds(data, read or partial(os.read, descriptor, BLOCK))
            return Searched(self._in_blocks(read, data), charset.name)
        return self._whole_text(data, charset.name)

    def _whole_text(self, data: bytes, charset: str = UTF8.name) -> Searched:
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        # Most files are small and without a match: they need no more than this.
        if not self._search(data):
            return NO_HITS
        return Searched(_hits(_Block(data, 0, len(data)), 1, self._matcher), charset)

    def _in_blocks(self, read: Callable[[], bytes], data: bytes) -> Iterator[Hit]:
        number, last = 1, 0
        for block in _blocks(read, data, self._context):
            for hit in _hits(block, number, self._matcher):
                # The parts of a line longer than a block may match one by one.
                if hit.number > last:
                    yield hit
                last = hit.number
            if self._control.ended():
                return
            number += block.data.count(b"\n", block.start, block.end)


def _charset_of(data: bytes, complete: bool) -> Charset | None:
    """Return the charset of a file, judged by its start; None if it is binary. Bytes without NULs that are not text
    are searched as they are.
    """
    try:
        return marked(data) or charset_of(data, "", whole=complete)
    except FilesError:
        return None if b"\0" in data else UTF8


def _in_utf_8(data: bytes, charset: Charset, read: Callable[[], bytes]) -> tuple[bytes, Callable[[], bytes]]:
    """Return the start of a text in UTF-8, and the function that reads the rest in it."""
    decoder = codecs.getincrementaldecoder(charset.name)("replace")

    def read_on() -> bytes:
        while more := read():
            if text := decoder.decode(more):
                return text.encode()
        return decoder.decode(b"", True).encode()

    return decoder.decode(data).encode(), read_on


def _with_line_feeds(data: bytes, read: Callable[[], bytes]) -> tuple[bytes, Callable[[], bytes]]:
    """Return the start of a text, and the function that reads the rest, with LF for CR LF."""
    last = b""

    def convert(piece: bytes) -> bytes:
        nonlocal last
        piece, last = last + piece, b""
        if piece.endswith(b"\r"):  # its LF may come with the next piece
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


def _blocks(read: Callable[[], bytes], data: bytes, context: int) -> Iterator[_Block]:
    start = 0
    while True:
        whole = last = data.rfind(b"\n", start) + 1
        for _ in range(context):
            last = data.rfind(b"\n", start, max(last - 1, start)) + 1
        end = last or whole or len(data)
        keep = start_of_lines(data, end, context)
        if end - keep > BLOCK:
            keep = end
        more = read()
        if not more:
            yield _Block(data, start, len(data))
            return
        yield _Block(data, start, end)
        data, start = data[keep:] + more, end - keep


def start_of_lines(data: bytes, end: int, count: int) -> int:
    """Return the start of the last `count` lines before `end`, which follows a line end."""
    for _ in range(count):
        if end <= 0:
            break
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


def _hits(block: _Block, number: int, matcher: Matcher) -> Iterator[Hit]:
    data, start, end = block
    counted = position = start
    while position < end:
        match = matcher.search(data, position, end)
        if match is None:
            return
        begins, ends = match.span()
        line = max(data.rfind(b"\n", start, begins) + 1, start)
        if line == end:
            # There is no line after the last line end.
            return
        # A match that ends with a line end does not reach into the next line.
        line_end = data.find(b"\n", max(ends - 1, begins), end)
        line_end = end if line_end < 0 else line_end
        number += data.count(b"\n", counted, line)
        yield Hit(number, data, line, line_end, begins)
        counted, position = line, line_end + 1


def _decoded(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _shown(line: str) -> str:
    return _BREAKING.sub(
        lambda match: match[0].encode("unicode_escape").decode(),
        line if len(line) <= MAX_SHOWN else line[:MAX_SHOWN] + "…",
    )
