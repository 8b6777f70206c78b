"""Content-Length framing: each message follows a header with its length, as in the Language Server Protocol.

    Content-Length: 52\\r\\n
    \\r\\n
    {"jsonrpc":"2.0","id":1,"method":"ping","params":{}}

The names of headers are accepted in any case, other headers are ignored, and lines may end with LF alone.

A JSON text can't contain a line like `Content-Length: 52`, because these words can occur only in its strings, which
contain no line endings. So if a body contains such a line, the length in its header was too large, and the line
begins the next header. If a header is invalid or has no length, everything up to the next such line is skipped. Other
parsers, such as vscode-jsonrpc, don't search for the line, and would read the body as a header.

The length may count a line ending after the message, even if the peer does not send it. The example in section 4.1.3
of document 000 (see `dialects`) has the length 134, and its message 132 bytes.
"""

import re
from collections.abc import Generator
from contextlib import suppress

from pydantic_core import from_json

from ..records import record
from .framing import Oversized
from .salvage import EDGE_BYTES, read_request_id

MAX_HEADER = 8_192
"""Maximum size of a message's headers, in bytes. The usual ones take less than a hundred."""

_NAME = b"content-length"
_LINE = re.compile(_NAME + rb":[ \t]{0,8}[0-9]{1,15}[ \t]{0,8}\r?\n")
_MAX_LINE = 64
_PARTIAL_LINE = re.compile(
    rb"[}\]]\s*(%b|%b:[ \t]{0,8}[0-9]{0,15}[ \t]{0,8}\r?)\Z"
    % (b"|".join(_NAME[:size] for size in range(1, len(_NAME) + 1)), _NAME)
)
_BLANKS = re.compile(rb"\s+")
_BLANK_LINE = re.compile(rb"\n\r?\n")
_HEADER_START = re.compile(rb"[A-Za-z][A-Za-z0-9-]*(?::|\Z)")
"""Matches the name of a header and its colon, or the part of a name that has arrived."""
_NUMBER = re.compile(rb"[0-9]{1,15}")


@record
class Misframed:
    """Replaces a message whose header has no length, or a wrong one."""

    reason: str
    id: str | int | None = None
    """The id of the request in the body, if the start or the end of the body shows one."""
    may_be_rest: bool = False
    """True if this may be the rest of the previous body: it is not a header, so the length of that body may have been
    too small."""


Frame = bytes | Oversized | Misframed
"""A body, or the error that replaces it."""
_Frames = Generator[Frame | None, bool | None, None]
"""Yields frames, and None when it needs more bytes. The caller then sends it True if the stream has ended."""


class ContentLengthBuffer:
    """Splits the chunks of a byte stream into bodies, without their headers."""

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum number of bytes in a body."""
        self._buffer = bytearray()
        self._frames = _read_frames(self._buffer, limit)
        next(self._frames)

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the bodies that `chunk` completes, and errors that are already certain."""
        self._buffer += chunk
        return list(iter(self._frames.__next__, None))

    def end(self) -> list[Frame]:
        """Return the error if the stream ended within a message."""
        error = self._frames.send(True)
        return [] if error is None else [error]


def _read_frames(buffer: bytearray, limit: int) -> _Frames:
    """Yield the frames in `buffer`, and remove them from it. The caller adds the bytes that arrive."""
    while True:
        header = yield from _read_header(buffer)
        length = _read_length(header) if isinstance(header, bytes) else header
        if isinstance(length, Misframed):
            yield length
            yield from _skip(buffer, _LINE)
        else:
            yield from _read_body(buffer, length, limit)


def _read_header(buffer: bytearray) -> Generator[Frame | None, bool | None, bytes | Misframed]:
    """Return the header lines before the next body, removed from `buffer` with the blank line after them."""
    while True:
        if (blank := _BLANKS.match(buffer)) is not None:
            del buffer[: blank.end()]
        # Checked before the line is complete, since its line ending may never arrive.
        if buffer and not _HEADER_START.match(buffer):
            return Misframed(
                "a message must start with a Content-Length header, like the first one", may_be_rest=True
            )
        if (end := _BLANK_LINE.search(buffer, 0, MAX_HEADER)) is not None:
            return _pop(buffer, end.end())[: end.start()]
        if len(buffer) >= MAX_HEADER:
            yield Misframed(f"a header may have at most {MAX_HEADER:,} bytes")
            yield from _skip(buffer, _BLANK_LINE)
            yield from _skip(buffer, _LINE)
        elif (yield None) and buffer:
            yield Misframed("the stream ended within a header")


def _read_length(header: bytes) -> int | Misframed:
    fields = [line.partition(b":") for line in header.split(b"\n")]
    if not all(colon for _, colon, _ in fields):
        return Misframed("each line of a header must be a name, a colon and a value")
    match [value.strip() for name, _, value in fields if name.lower() == _NAME]:
        case []:
            return Misframed("a header must have a Content-Length")
        case [value] if _NUMBER.fullmatch(value):
            return int(value)
        case [_]:
            return Misframed("Content-Length must be a number of bytes")
        case _:  # even if both are equal: two programs have written to this header, so it can't be trusted
            return Misframed("a header must have exactly one Content-Length")


def _read_body(buffer: bytearray, length: int, limit: int) -> _Frames:
    """Yield the body in the next `length` bytes. Of a body of more than `limit` bytes, only both ends are stored,
    until the error for it is known."""
    is_oversized, is_answered = length > limit, False
    searched = 0
    while True:
        length = _exclude_line_end(buffer, length)
        available = min(length, len(buffer))
        end = _find_early_end(buffer, searched, available, is_whole=available == length)
        if end is not None or available == length:
            break
        if is_oversized:
            excess = max(0, available - 2 * EDGE_BYTES)
            # Only the middle is removed, since either end may show the id of the request.
            del buffer[EDGE_BYTES : EDGE_BYTES + excess]
            length, available = length - excess, available - excess
            if not is_answered and (answer := _answer_early(buffer, limit)) is not None:
                yield answer
                is_answered = True
        searched = max(0, available - _MAX_LINE)
        if (yield None) and not is_answered:
            # If the stream ends within a body that is too large, the error is the same as for a complete one.
            if is_oversized and buffer.strip():
                yield Oversized(limit, _id_of(buffer))
            else:
                yield Misframed("the stream ended before the length given by Content-Length", _id_of(buffer))
    body = _pop(buffer, available if end is None else end)
    if is_oversized:
        if not is_answered:
            yield Oversized(limit, _id_of(body))
    elif end is not None:
        yield Misframed("Content-Length is larger than the message", _id_of(body))
    else:
        yield body


def _answer_early(buffer: bytearray, limit: int) -> Oversized | None:
    """Return the error for a body that is too large before all of it has arrived; None if its end may show the id."""
    # While the buffer is shorter than both ends, nothing has been removed, so it can be a complete message. Then the
    # length was wrong, and the sender already waits for the answer.
    if len(buffer) < 2 * EDGE_BYTES and _is_object(buffer.rstrip()):
        return Oversized(limit, _id_of(buffer))
    head = bytes(buffer[:EDGE_BYTES])
    id_ = read_request_id(head, b"")
    return Oversized(limit, id_) if id_ is not None or head.lstrip()[:1] not in (b"", b"{") else None


def _exclude_line_end(buffer: bytearray, length: int) -> int:
    """Return `length` without the one or two bytes of a line ending after the message, if it counts them."""
    for end in (length - 2, length - 1):
        if 0 < end <= len(buffer) and buffer[end - 1 : end] == b"}" and _is_object(buffer[:end]):
            return end
    return length


def _is_object(text: bytearray) -> bool:
    """Return True if `text` is a complete JSON object."""
    # The braces are counted first: without this, nearly all messages would be parsed twice.
    if text.endswith(b"}") and text.count(b"{") == text.count(b"}"):
        with suppress(ValueError):
            from_json(text)
            return True
    return False


def _find_early_end(buffer: bytearray, start: int, end: int, *, is_whole: bool) -> int | None:
    """Return the position at which the next header begins, if that is before `end`; otherwise None. `end` is the end
    of the body, or with `is_whole` False of the part that has arrived."""
    if buffer.find(b"\n", start, end) >= 0 and (line := _LINE.search(buffer[start:end].lower())) is not None:
        return start + line.start()
    start = max(0, end - _MAX_LINE)
    if is_whole and (line := _PARTIAL_LINE.search(buffer[start:end].lower())) is not None:
        return start + line.start(1)
    return None


def _id_of(body: bytes | bytearray) -> str | int | None:
    return read_request_id(bytes(body[:EDGE_BYTES]), bytes(body[-EDGE_BYTES:]))


def _skip(buffer: bytearray, line: re.Pattern[bytes]) -> _Frames:
    """Drop everything before the next `line`."""
    while (next_line := line.search(buffer.lower())) is None:
        del buffer[:-_MAX_LINE]
        yield None
    del buffer[: next_line.start()]


def _pop(buffer: bytearray, size: int) -> bytes:
    with memoryview(buffer) as view:
        result = bytes(view[:size])
    del buffer[:size]
    return result
