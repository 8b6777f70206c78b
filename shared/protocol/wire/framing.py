"""Framing of messages in a byte stream: newline-delimited JSON (stdio) and server-sent events (HTTP).

`LineBuffer` searches only new bytes for newlines. It drops a line that exceeds the limit, except for both ends of the
line, and continues after the next newline. Lines end with LF; a CR before that is white space in JSON. A byte order
mark is accepted only at the start of a stream, where some shells write one (RFC 8259, section 8.1).
"""

from ..records import record
from .salvage import EDGE_BYTES, read_answer_id, read_request_id

_BOM = b"\xef\xbb\xbf"


@record
class Oversized:
    """Replaces a dropped message of more than `limit` bytes."""

    limit: int
    id: str | int | None = None
    """The id of the message if it is a request, and its start or end shows the id."""
    answered_id: str | int | None = None
    """The id of the request that the message answers, if its start or end shows the id."""


class LineBuffer:
    """Splits the chunks of a byte stream into lines, without line endings and without blank lines."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._is_dropping = self._is_reported = False
        self._tail = b""
        self._is_at_start = True

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Return the lines that `chunk` completes, and a replacement for a line that is already too long."""
        if self._is_at_start:
            start = bytes(self._buffer) + chunk
            # A chunk may contain a part of the mark, so nothing is passed on while the bytes may still become a mark.
            if len(start) >= len(_BOM) or not _BOM.startswith(start):
                self._is_at_start = False
                self._buffer.clear()
                chunk = start.removeprefix(_BOM)
        # `splitlines` on text would also split at U+2028, which JSON allows inside strings.
        *complete, tail = chunk.split(b"\n")
        first: list[bytes | Oversized] = []
        if complete and self._is_dropping:
            first = self._finish_dropped(complete.pop(0))
        elif complete and self._buffer:
            complete[0] = self._finish_line(complete[0])
        limit = self._limit
        lines = [
            line if len(line) <= limit else _make_oversized(limit, line, line) for line in complete if line.strip()
        ]
        if first:
            lines = first + lines
        return lines + self._store(tail) if tail else lines

    def end(self) -> list[bytes | Oversized]:
        """Return the last line, if the stream ended without a newline."""
        if self._is_dropping:
            return self._finish_dropped(b"")
        line = self._finish_line(b"")
        return [line] if line.strip() else []

    def _finish_line(self, end: bytes) -> bytes:
        line = bytes(self._buffer) + end
        self._buffer.clear()
        return line

    def _finish_dropped(self, end: bytes) -> list[bytes | Oversized]:
        is_reported, head, tail = self._is_reported, bytes(self._buffer), self._tail + end
        self._buffer.clear()
        self._is_dropping, self._tail = False, b""
        return [] if is_reported else [_make_oversized(self._limit, head, tail)]

    def _store(self, part: bytes) -> list[bytes | Oversized]:
        if self._is_dropping:
            # Both ends of a line that is too long are stored, because most programs write the id there, which the
            # error needs.
            self._buffer += part[: max(EDGE_BYTES - len(self._buffer), 0)]
            self._tail = (self._tail + part)[-EDGE_BYTES:]
            return []
        self._buffer += part
        if len(self._buffer) <= self._limit:
            return []
        self._is_dropping, self._tail = True, bytes(self._buffer[-EDGE_BYTES:])
        self._buffer = self._buffer[:EDGE_BYTES]
        # The line is reported now, unless its end may still show the id of a request.
        oversized = _make_oversized(self._limit, bytes(self._buffer), b"")
        is_known = oversized.id is not None or oversized.answered_id is not None
        self._is_reported = is_known or not self._buffer.lstrip().startswith(b"{")
        return [oversized] if self._is_reported else []


def _make_oversized(limit: int, head: bytes, tail: bytes) -> Oversized:
    head, tail = head[:EDGE_BYTES], tail[-EDGE_BYTES:]
    return Oversized(limit, read_request_id(head, tail), read_answer_id(head, tail))


@record
class ServerSentEvent:
    """One event of a `text/event-stream` (WHATWG HTML, section 9.2)."""

    data: bytes
    event: str = "message"
    id: str | None = None
    retry: int | None = None


def encode_event(event: ServerSentEvent) -> bytes:
    """Return `event` as bytes. Its data must not contain a newline; compact JSON never does."""
    lines = [b"event: " + event.event.encode()]
    if event.id is not None:
        lines.append(b"id: " + event.id.encode())
    if event.retry is not None:
        lines.append(b"retry: %d" % event.retry)
    lines.append(b"data: " + event.data)
    return b"\n".join(lines) + b"\n\n"
