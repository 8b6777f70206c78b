"""Bytes to messages' bytes and back: newline-delimited JSON (stdio) and server-sent events (HTTP).

`LineBuffer` searches only what is new, drops what exceeds its limit without storing it, and finds its feet
again at the next newline. Lines end with LF; a CR before it is white space to JSON. A byte order mark is
accepted at the very start of a stream, where some shells put one, and nowhere else (RFC 8259, section 8.1).
"""

from .records import record

__all__ = ["LineBuffer", "Oversized", "ServerSentEvent", "encode_event"]

_BOM = b"\xef\xbb\xbf"


@record
class Oversized:
    """Stands where a line longer than `limit` bytes was dropped."""

    limit: int


class LineBuffer:
    """Collects chunks of a byte stream and gives back its lines, without their ends, blank ones left out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._dropping = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """The lines that `chunk` completes."""
        if self._at_start:
            chunk = self._without_mark(chunk)
        *complete, tail = chunk.split(b"\n")
        if complete and (self._buffer or self._dropping):
            complete[0] = self._finished(complete[0])
        limit = self._limit
        lines = [line if len(line) <= limit else Oversized(limit) for line in complete if line.strip()]
        return lines + self._store(tail) if tail else lines

    def _finished(self, end: bytes) -> bytes:
        line = b"" if self._dropping else bytes(self._buffer) + end
        self._buffer.clear()
        self._dropping = False
        return line

    def end(self) -> list[bytes | Oversized]:
        """The last line, where the stream ended without a newline."""
        line = self._finished(b"")
        return [line] if line.strip() else []

    def _store(self, part: bytes) -> list[bytes | Oversized]:
        if self._dropping:
            return []
        self._buffer += part
        if len(self._buffer) <= self._limit:
            return []
        self._buffer.clear()
        self._dropping = True
        return [Oversized(self._limit)]

    def _without_mark(self, chunk: bytes) -> bytes:
        start = bytes(self._buffer) + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            return chunk
        self._at_start = False
        self._buffer.clear()
        return start.removeprefix(_BOM)


@record
class ServerSentEvent:
    """One event of a `text/event-stream` (WHATWG HTML, section 9.2)."""

    data: bytes
    event: str = "message"
    id: str | None = None
    retry: int | None = None


def encode_event(event: ServerSentEvent) -> bytes:
    """`event` as bytes. Its data must hold no newline, which compact JSON never does."""
    lines = [b"event: " + event.event.encode()]
    if event.id is not None:
        lines.append(b"id: " + event.id.encode())
    if event.retry is not None:
        lines.append(b"retry: %d" % event.retry)
    lines.append(b"data: " + event.data)
    return b"\n".join(lines) + b"\n\n"
