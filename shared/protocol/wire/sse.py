"""A parser of `text/event-stream` (WHATWG HTML, section 9.2.6).

Lines end with LF, CR LF or CR, even if a chunk ends between CR and LF. Comments and unknown fields are ignored, and
so is an event without the blank line that ends it. An event that is longer than the limit is dropped; reading
continues after it.
"""

import re

from .framing import Oversized, ServerSentEvent

_BOM = b"\xef\xbb\xbf"
_ID = re.compile(rb"[\t -~\x80-\xff]{0,4096}")
"""An id that the header `Last-Event-ID` can contain. Others are ignored, as the standard ignores ids with a NUL."""


class EventStream:
    """Splits the chunks of an event stream into events.

    `last_id` and `retry` (in milliseconds) are the last values that the stream has sent. A client needs both to
    reconnect.
    """

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum number of bytes in an event."""
        self.last_id: str | None = None
        self.retry: int | None = None
        self._limit = limit
        self._line = bytearray()
        self._size = 0
        self._is_after_cr = False
        self._is_at_start = True
        self._data: list[bytes] = []
        self._event = ""
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[ServerSentEvent | Oversized]:
        """Return the events that `chunk` completes, with `Oversized` for dropped ones."""
        if not chunk:
            return []
        if self._is_after_cr:
            # The CR at the end of the last chunk has ended its line, so the LF of the same CR LF must not count as a
            # blank line, which would end the event.
            chunk = chunk.removeprefix(b"\n")
        self._is_after_cr = chunk.endswith(b"\r")
        events: list[ServerSentEvent | Oversized] = []
        # `splitlines` on bytes splits only at LF, CR and CR LF, which are the standard's line endings.
        for part in chunk.splitlines(keepends=True):
            text = part.rstrip(b"\r\n")
            self._size += len(text)
            if self._size <= self._limit:
                self._line += text
            elif text:
                # The event is too long to store. The placeholder `-` only keeps this line from looking blank, since a
                # blank line ends the event.
                self._data.clear()
                self._line[:] = b"-"
            if len(text) < len(part):
                events += self._end_line()
        return events

    def restart(self) -> None:
        """Reset for a new connection that continues this stream: forget the incomplete event of the last one."""
        self._line.clear()
        self._is_after_cr = False
        self._is_at_start = True
        self._clear()

    def _end_line(self) -> list[ServerSentEvent | Oversized]:
        line = bytes(self._line)
        self._line.clear()
        if self._is_at_start:
            self._is_at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._size > self._limit:
                self._clear()
                return [Oversized(self._limit)]
            if self._id is not None:
                # As in the standard, the id counts only now that the event is complete. A client that reconnected
                # with the id of an incomplete event would miss that event.
                self.last_id = self._id
            data, event = self._data, self._event or "message"
            complete_event = ServerSentEvent(b"\n".join(data), event, self._id, self._retry)
            self._clear()
            # An event without data is not dispatched. The first event of a stream may have only an id, with which to
            # reconnect (SEP-1699); it was stored above.
            return [complete_event] if data else []
        if self._size <= self._limit:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            match name:
                case b"data":
                    self._data.append(value)
                case b"event":
                    self._event = value.decode("utf-8", "replace")
                case b"id" if _ID.fullmatch(value):
                    self._id = value.decode("utf-8", "replace")
                # The standard ignores the field if its value is not digits. More than nine are cut off: a pause of
                # nine digits in milliseconds already takes eleven days.
                case b"retry" if value.isdigit():
                    self.retry = self._retry = int(value[:9])
        if line.startswith(b":"):
            self._size -= len(line)  # not counted, because any number of comments may be sent to keep a stream alive
        return []

    def _clear(self) -> None:
        self._size = 0
        self._data = []
        self._event = ""
        self._id = None
        self._retry = None
