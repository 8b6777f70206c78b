"""uvicorn's connection with additional limits and batched writes.

It limits the size of a request's head, the framing around its body (the sizes of chunks, their extensions, and
trailers, whose fields are ignored), and the time for head and body to arrive. These limits apply before the sender is
known: without them a peer could occupy memory and connections by never finishing a request. Head and body of an
answer are sent in one write, so that a short answer fits into one packet. The `date` header is computed when a
request arrives instead of every second, so that an idle server sleeps.
"""

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from wsgiref.handlers import format_date_time

from httptools import HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ....protocol.http.rules import JSON, refuse
from ....protocol.wire.codec import encode
from .capacity import Capacity
from .write_backlog import Unread, UpgradedProtocol, backlog

MAX_HEAD_BYTES = 65_536
"""The maximum length in bytes of a request's line and headers. It is not checked if one packet completes them."""
MAX_HEADERS = 200
"""The maximum number of headers of one request."""
HEAD_SECONDS = 30.0
"""Seconds for the line and headers of a request to arrive."""

_FRAMING_BYTES = 65_536, 8
"""The number of bytes of framing allowed with a body, and how many more are allowed for each byte of the body. Some
clients send each word of JSON as a chunk."""
_ABSOLUTE_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_MAX_UNREAD_BYTES = 16 * 1_048_576
"""Maximum number of bytes of a body that are read after the request was answered, most likely with a refusal. If the
connection were closed at once, a client that is still sending would lose the answer."""
_LINGER_SECONDS = 30.0
"""Seconds after the close of a connection in which the client can read the remaining data."""
_READ_SECONDS = 60.0
"""Seconds within which a client must read something while the buffer is full. Without this limit, the end of a stream
would wait for the client forever."""
_MAX_CORKED_BYTES = 65_536
"""The maximum number of bytes that are collected for one write."""


class Connection(HttpToolsProtocol):
    """One HTTP/1.1 connection."""

    body_seconds = 30.0
    """Maximum seconds until the body of a request has arrived."""
    capacity: Capacity | None = None
    """The limits on connections; None if all connections come from a proxy."""
    unread: Unread
    """The bytes that wait for slow clients of the listener."""
    all_closed: asyncio.Event | None = None
    """Set when the last connection has ended. It exists only while the server retires, when each connection ends with
    its next answer; otherwise None."""

    _counted_address = ""
    _head_bytes = 0
    _body_bytes = 0
    _framed_bytes = 0
    _has_begun = False
    _early_data = b""
    _awaited_part: str | None = "head"
    _timed_part: str | None = None
    _timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None
    _on_read: tuple[Callable[[], None], ...] = ()
    _closes_after_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the head of a request."""
        super().connection_made(transport)
        self._raw_transport = transport
        if self.capacity is not None and self.client is not None:
            if not self.capacity.acquire(self.client[0]):
                transport.abort()
                return
            self._counted_address = self.client[0]
        self.transport = _CorkedTransport(transport, self.loop, self._may_close)  # type: ignore[assignment]
        self._set_timer()

    def pause_writing(self) -> None:
        """Called when the client reads too slowly."""
        super().pause_writing()
        self.unread.add(self._raw_transport)
        self._check_reading()

    def resume_writing(self) -> None:
        """Called when the client has read most of the sent data."""
        super().resume_writing()
        self._stop_counting_unread()
        self._notify_read()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._release_place()
        self._stop_counting_unread()
        self._notify_read()
        self._awaited_part = None
        self._set_timer()
        super().connection_lost(exc)
        # uvicorn leaves its keep-alive timer running, which keeps the last request in memory, if the peer has reset
        # the connection.
        self._unset_keepalive_if_required()
        if self.all_closed is not None and not self.connections:
            self.all_closed.set()

    def on_message_begin(self) -> None:
        """Called for the first byte of a head."""
        super().on_message_begin()
        self._awaited_part = "head"
        self._has_begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called for a header, or a field of the trailers. Raises ValueError, which ends the connection, if there are
        too many."""
        # Later fields are trailers, which are not passed to the application: it has already acted on the headers (RFC
        # 9110, section 6.5.1).
        if self._awaited_part == "head":
            if len(self.headers) >= MAX_HEADERS:
                raise ValueError("too many headers")
            # This is what uvicorn does; a call would take longer, and this is called most often.
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Called for the last byte of a head."""
        self._awaited_part = "body"
        self._head_bytes = self._body_bytes = self._framed_bytes = 0
        self.server_state.default_headers = _date_header(int(time.time()))
        if not self.url.startswith(b"/"):
            # The host in an absolute URL, as sent to proxies, replaces the `host` header (RFC 9112, section 3.2.2).
            # Several `host` headers are left as they are, because such a request is refused.
            target = _ABSOLUTE_URL.match(self.url)
            host_indexes = [index for index, (name, _) in enumerate(self.headers) if name == b"host"]
            if target is not None and len(host_indexes) == 1:
                self.headers[host_indexes[0]] = (b"host", target[1])
        super().on_headers_complete()
        if self.all_closed is not None:
            self.end_with_answer()

    def end_with_answer(self) -> None:
        """Close the connection after the pending answer, which announces this with `connection: close`. A connection
        without a pending answer stays open, and so does one whose answer has already begun."""
        cycle: RequestResponseCycle | None = self.cycle
        # After the start of an answer it is too late for the header.
        if cycle is not None and not cycle.response_started:
            cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Called for part of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Called for the last byte of a body."""
        self._awaited_part = None
        super().on_message_complete()
        if self._closes_after_body:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and refuse a request that grows too large."""
        previous_part, self._has_begun = self._awaited_part, False
        try:
            super().data_received(data)
        except HttpParserUpgrade as upgrade:
            # A client may send its first WebSocket frames with the request: they belong to the protocol that takes
            # over.
            self._early_data = data[upgrade.args[0] :]
            self.flow.pause_reading()
        if previous_part is None and not self._has_begun:
            # Only blank lines have arrived, which may precede a request (RFC 9112, section 2.2).
            self._awaited_part = "head"
        if self._awaited_part != self._timed_part:  # most requests arrive in one piece, and need no timer
            self._set_timer()
        if self._awaited_part == "head":
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response("The request head is too large.")
        elif self._awaited_part == "body" == previous_part:
            self._framed_bytes += len(data)
            free_bytes, bytes_per_body_byte = _FRAMING_BYTES
            # In proportion to the body, because each chunk, however small, has a line of its own. A body that is
            # almost only framing is an attack.
            if self._framed_bytes > free_bytes + (1 + bytes_per_body_byte) * self._body_bytes:
                self.send_400_response("The chunks or trailers of the request are too large.")
            elif self._framed_bytes > _MAX_UNREAD_BYTES and self.cycle.response_complete:
                self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse the request, and close the connection; no refusal is sent while an answer is being sent."""
        if not self._may_answer():
            self.transport.close()
        elif not self.transport.is_closing():
            super().send_400_response(msg)

    def _may_close(self) -> bool:
        """Return False if the connection is to close after the answer while the client is still sending the body:
        closing now would reset the connection, and the client would lose the answer (RFC 9112, section 9.6).
        `on_message_complete` then closes it."""
        cycle: RequestResponseCycle | None = self.cycle
        is_body_pending = (
            cycle is not None and cycle.response_complete and not cycle.keep_alive and self._awaited_part == "body"
        )
        may_close, self._closes_after_body = (
            self._closes_after_body or not is_body_pending,
            self._closes_after_body or is_body_pending,
        )
        return may_close

    def _may_answer(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None:
            return True
        if self._awaited_part == "body":
            return not (cycle.response_started or self.pipeline)
        # The client would read a 400 in the middle of an answer as a part of that answer.
        return bool(cycle.response_complete)

    def _unsupported_upgrade_warning(self) -> None:
        """Raise HttpParserUpgrade, to leave the bytes after the head of a WebSocket request to `data_received`."""
        if self._get_upgrade() == b"websocket":
            raise  # noqa: PLE0704 - uvicorn calls this where it has caught that
        super()._unsupported_upgrade_warning()

    def hand_over(self, protocol: UpgradedProtocol, answer: bytes) -> None:
        """Send `answer` to the current request, and pass the connection to `protocol`."""
        # So that uvicorn does not miss an answer, and at shutdown only waits for the task.
        self.cycle.disconnected = True
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self._release_place()  # WebSockets have a limit of their own
        self.parser = None  # type: ignore[assignment]
        self.transport.write(answer)
        transport, early_data = self.transport.uncork(), self._early_data  # type: ignore[attr-defined]
        protocol.unread = self.unread
        self._stop_counting_unread()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        self.flow.resume_reading()
        if self.flow.write_paused:  # the client has not read the previous answer
            protocol.pause_writing()
        self._notify_read()  # from now on, `protocol` counts the answer
        if early_data:
            protocol.data_received(early_data)

    def _release_place(self) -> None:
        if self.capacity is not None and self._counted_address:
            self.capacity.release(self._counted_address)
            self._counted_address = ""

    def _check_reading(self, previous: float = math.inf) -> None:
        """Abort the connection if its client has read nothing since `previous` bytes were unread; otherwise check
        again later."""
        unread = backlog(self._raw_transport)
        if unread < previous:
            self._reading_timer = self.loop.call_later(_READ_SECONDS, self._check_reading, unread)
        else:
            self._raw_transport.abort()

    def call_when_read(self, call: Callable[[], None]) -> None:
        """Call `call` once the client has read most of the sent data, or has disconnected."""
        if self.flow.write_paused:
            self._on_read += (call,)
        else:
            call()

    def _notify_read(self) -> None:
        waiting, self._on_read = self._on_read, ()
        for call in waiting:
            call()

    def _stop_counting_unread(self) -> None:
        self.unread.remove(self._raw_transport)
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _set_timer(self) -> None:
        """Set the timer for the part of the request that is awaited."""
        self._timed_part = self._awaited_part
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._awaited_part is not None:
            seconds = HEAD_SECONDS if self._awaited_part == "head" else self.body_seconds
            self._timer = self.loop.call_later(seconds, self._on_timeout)

    def _on_timeout(self) -> None:
        self._timer = self._timed_part = None
        # While an answer is being sent, only the head of the next, pipelined request can be late: uvicorn's own timer
        # handles that.
        cycle: RequestResponseCycle | None = self.cycle
        if self._awaited_part == "body" and cycle is not None and not cycle.response_started:
            self.transport.write(_TIMEOUT_RESPONSE)
            self.transport.close()
        elif self._awaited_part == "body" or cycle is None or cycle.response_complete:
            self.transport.close()


def abort_answer(receive: Callable[..., Any]) -> None:
    """Abort the answer to the request of this `receive`, and close its connection if that is a `Connection`. Used if
    the client reads the rest of the answer elsewhere, or not at all; without this, uvicorn would report an incomplete
    answer as a fault of the application."""
    cycle = getattr(receive, "__self__", None)
    if isinstance(cycle, RequestResponseCycle):
        cycle.disconnected = True
        cycle.transport.close()


def send_whole(send: Callable[..., Any], status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
    """Send an answer with `headers`, which are not checked, its length, and `body` in one write. Returns False, and
    sends nothing, if one write does not suffice."""
    cycle = getattr(send, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle) or cycle.response_started or cycle.disconnected:
        return False
    if cycle.flow.write_paused or not cycle.keep_alive or cycle.scope["method"] != "POST":
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    head = _encode_head(status, *cycle.default_headers, *headers)
    # Written to the corked transport: with several connections, a direct write takes a tenth more processor time.
    cycle.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
    cycle.message_event.set()
    cycle.on_response()
    return True


def unread_bytes(receive: Callable[..., Any]) -> int:
    """Return the number of bytes that the client has not read, of the answer to the request of this `receive`; 0 if
    the connection is not a `Connection`, or nothing has been written."""
    cycle = getattr(receive, "__self__", None)
    return backlog(cycle.transport) if isinstance(cycle, RequestResponseCycle) else 0


def call_when_read(receive: Callable[..., Any], call: Callable[[], None]) -> None:
    """Call `call` once the client has read most of the answer to the request of this `receive`, or has disconnected.
    If its connection is not a `Connection`, call it at once."""
    connection = getattr(getattr(getattr(receive, "__self__", None), "on_response", None), "__self__", None)
    if isinstance(connection, Connection):
        connection.call_when_read(call)
    else:
        call()


def hand_over(receive: Callable[..., Any], protocol: UpgradedProtocol, answer: bytes) -> bool:
    """Answer the request of this `receive` with `answer`, and pass its connection to `protocol`. Returns False if it
    is not a `Connection`, or is already lost."""
    cycle = getattr(receive, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle) or cycle.disconnected:
        return False
    connection = getattr(cycle.on_response, "__self__", None)
    if not isinstance(connection, Connection):
        return False
    connection.hand_over(protocol, answer)
    return True


@lru_cache(64)  # nearly all answers of a second begin in a few ways
def _encode_head(status: int, *headers: tuple[bytes, bytes]) -> bytes:
    return b"".join((STATUS_LINE[status], *(b"%b: %b\r\n" % header for header in headers)))


@lru_cache(1)
def _date_header(now: int) -> list[tuple[bytes, bytes]]:
    # `email.utils` would query a time zone, which adds an entry to an interpreter cache every second.
    return [(b"date", format_date_time(now).encode())]


class _CorkedTransport:
    """A transport that delays writes until the next turn of the loop, so that they leave together."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, may_close: Callable[[], bool]
    ) -> None:
        """While `may_close` returns False, `close` only writes the delayed data."""
        self._may_close = may_close
        self._transport = transport
        self._loop = loop
        self._corked: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._corked:
            # Head and body are two writes of uvicorn, in the same turn of the loop.
            self._loop.call_soon(self._flush)
        self._corked.append(data)
        self._size += len(data)
        if self._size > _MAX_CORKED_BYTES:
            self._flush()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        if not self._may_close():
            return
        self._transport.close()
        # Without a limit, a client that reads nothing would keep the data in memory.
        if self._transport.get_write_buffer_size():
            self._loop.call_later(_LINGER_SECONDS, self._transport.abort)

    def uncork(self) -> asyncio.Transport:
        """Write everything, and return the underlying transport."""
        self._flush()
        return self._transport

    def _flush(self) -> None:
        if self._corked:
            chunks, self._corked, self._size = self._corked, [], 0
            # A client may disconnect between the write and this turn of the loop: asyncio then ignores writes, but
            # uvloop raises an error.
            if not self._transport.is_closing():
                self._transport.write(b"".join(chunks))


_TIMEOUT_BODY = encode(refuse(408, "the body did not arrive in time").failure)
_TIMEOUT_RESPONSE = b"\r\n".join(
    (
        b"HTTP/1.1 408 Request Timeout",
        f"content-type: {JSON}".encode(),
        b"content-length: %d" % len(_TIMEOUT_BODY),
        b"connection: close",
        b"",
        _TIMEOUT_BODY,
    )
)
