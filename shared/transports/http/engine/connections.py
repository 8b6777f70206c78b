"""uvicorn's connection with what it lacks.

Limits on how large the head of a request may be, on what comes with the body and is none of it (the sizes of chunks,
their extensions, and trailers, whose fields count for nothing), and on how long head and body may take to come; they
hold before anybody knows who asks. Without them a peer could hold memory and connections by never finishing. Answers
that leave in one write: the head and the body of a short one fit into one packet. And a date that is made when it is
needed, so that an idle server sleeps.
"""

import asyncio
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from wsgiref.handlers import format_date_time

from httptools import HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ....protocol.http.rules import JSON, refuse
from ....protocol.wire.codec import encode
from .capacity import Capacity
from .write_backlog import backlog

MAX_HEAD = 65_536
"""Bytes of one request's line and headers; what comes in the same packet as their end may exceed it."""
MAX_HEADERS = 200
"""Headers of one request."""
HEAD_SECONDS = 30.0
"""How long the line and headers of a request may take to come."""

_FRAMING = 65_536, 8
"""Bytes that may come with a body without being part of it: so many, and for each byte of the body so many more. Some
clients send each word of JSON as a chunk."""
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_UNREAD = 16 * 1_048_576
"""Bytes of a body that may still come once the request is answered, refused most likely. To close the connection on a
client that still sends would lose it the answer."""
_LINGER_SECONDS = 30.0
"""How long a client has to take what was written before its connection was closed."""
_CORKED = 65_536
"""Bytes that are held back at most, for what is written next."""


class Connection(HttpToolsProtocol):
    """One HTTP/1.1 connection."""

    body_seconds = 30.0
    """How long the body of a request may take to come."""
    capacity: Capacity | None = None
    """Who may have how many connections; None where a proxy has all of them."""
    left: asyncio.Event | None = None
    """There where each connection is to end with the next answer; set when none is left."""

    _counted = ""
    _head_bytes = 0
    _body_bytes = 0
    _framed_bytes = 0
    _has_begun = False
    _early = b""
    _awaits: str | None = "head"
    _timed: str | None = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expects a head from now on."""
        super().connection_made(transport)
        if self.capacity is not None and self.client is not None:
            if not self.capacity.take(self.client[0]):
                transport.abort()
                return
            self._counted = self.client[0]
        self.transport = _Corked(transport, self.loop)  # type: ignore[assignment]
        self._time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expects nothing any more."""
        self._give_place()
        self._awaits = None
        self._time()
        super().connection_lost(exc)
        # uvicorn leaves this timer where the peer has reset the connection, and with it the request that came last.
        self._unset_keepalive_if_required()
        if self.left is not None and not self.connections:
            self.left.set()

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self._awaits = "head"
        self._has_begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a field of the trailers. Raises ValueError, which ends the connection, for one too many."""
        # Trailers are not for the application: it decides by the headers, and has begun to (RFC 9110, section 6.5.1).
        if self._awaits == "head":
            if len(self.headers) >= MAX_HEADERS:
                raise ValueError("too many headers")
            HttpToolsProtocol.on_header(self, name, value)  # `super()` takes longer, and this is called most

    def on_headers_complete(self) -> None:
        """The last byte of a head."""
        self._awaits = "body"
        self._head_bytes = self._body_bytes = self._framed_bytes = 0
        self.server_state.default_headers = _dated(int(time.time()))
        if not self.url.startswith(b"/"):
            # Has a target that names a host, as proxies are sent it, count instead of the header (RFC 9112, section
            # 3.2.2). Several headers stay: they are refused.
            target = _ABSOLUTE.match(self.url)
            hosts = [number for number, (name, _) in enumerate(self.headers) if name == b"host"]
            if target is not None and len(hosts) == 1:
                self.headers[hosts[0]] = (b"host", target[1])
        super().on_headers_complete()
        if self.left is not None:
            self.leave()

    def leave(self) -> None:
        """Ends the connection with the answer that is due, which says so; one that waits for a request stays, and so
        does one whose answer has begun to say otherwise."""
        cycle: RequestResponseCycle | None = self.cycle
        # The header `connection: close` is among the first bytes of an answer.
        if cycle is not None and not cycle.response_started:
            cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The last byte of a body."""
        self._awaits = None
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Takes bytes in; refuses what grows too large."""
        awaited, self._has_begun = self._awaits, False
        try:
            super().data_received(data)
        except HttpParserUpgrade as upgrade:
            # A client may send its first frames with the request: they belong to the protocol that takes over.
            self._early = data[upgrade.args[0] :]
            self.flow.pause_reading()
        if awaited is None and not self._has_begun:
            self._awaits = "head"  # blank lines before it, of which there may be some (RFC 9112, section 2.2)
        if self._awaits != self._timed:  # most requests come as a whole, and need no timer
            self._time()
        if self._awaits == "head":
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self.send_400_response("The request head is too large.")
        elif self._awaits == "body" == awaited:
            self._framed_bytes += len(data)
            free, more = _FRAMING
            # In proportion to the body, as each small chunk has a line of its own; a body of nothing but framing is
            # an attack.
            if self._framed_bytes > free + (1 + more) * self._body_bytes:
                self.send_400_response("The chunks or trailers of the request are too large.")
            elif self._framed_bytes > _UNREAD and self.cycle.response_complete:
                self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuses the request, and closes the connection: without a word while an answer is on its way."""
        if not self._may_answer():
            self.transport.close()
        elif not self.transport.is_closing():
            super().send_400_response(msg)

    def _may_answer(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None:
            return True
        if self._awaits == "body":
            return not (cycle.response_started or self.pipeline)
        # A 400 in the midst of an answer would be read as a part of it.
        return bool(cycle.response_complete)

    def _unsupported_upgrade_warning(self) -> None:
        """Leaves what follows the head of a WebSocket to `data_received`. Raises HttpParserUpgrade for it."""
        if self._get_upgrade() == b"websocket":
            raise  # noqa: PLE0704 - uvicorn calls this where it has caught that
        super()._unsupported_upgrade_warning()

    def hand_over(self, protocol: asyncio.Protocol, answer: bytes) -> None:
        """Has `protocol` take the connection over, after `answer` to the request that is being served."""
        self.cycle.disconnected = True  # uvicorn expects no answer to it, and at its end waits for the task alone
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self._give_place()  # there is a limit of its own to those that are taken over
        self.parser = None  # type: ignore[assignment]
        self.transport.write(answer)
        transport, early = self.transport.uncork(), self._early  # type: ignore[attr-defined]
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        self.flow.resume_reading()
        if early:
            protocol.data_received(early)

    def _give_place(self) -> None:
        if self.capacity is not None and self._counted:
            self.capacity.give(self._counted)
            self._counted = ""

    def _time(self) -> None:
        """Sets the timer for what is awaited now."""
        self._timed = self._awaits
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._awaits is not None:
            seconds = HEAD_SECONDS if self._awaits == "head" else self.body_seconds
            self._timer = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self._timer = self._timed = None
        # While an answer is on its way, only the next, pipelined head is late: uvicorn's own timer sees to it.
        cycle: RequestResponseCycle | None = self.cycle
        if self._awaits == "body" and cycle is not None and not cycle.response_started:
            self.transport.write(_TOO_LATE)
            self.transport.close()
        elif self._awaits == "body" or cycle is None or cycle.response_complete:
            self.transport.close()


def break_off(receive: Callable[..., Any]) -> None:
    """Ends the answer to the request of this `receive` in its middle, and with it the connection, if that is one of
    ours: its client reads the rest elsewhere, or not at all. uvicorn would take it for a fault of the application."""
    cycle = getattr(receive, "__self__", None)
    if isinstance(cycle, RequestResponseCycle):
        cycle.disconnected = True
        cycle.transport.close()


def untaken(receive: Callable[..., Any]) -> int:
    """Bytes of the answer to the request of this `receive` that its client has not taken; 0 where the connection is
    none of ours, or written to by nobody yet."""
    cycle = getattr(receive, "__self__", None)
    return backlog(cycle.transport) if isinstance(cycle, RequestResponseCycle) else 0


def hand_over(receive: Callable[..., Any], protocol: asyncio.Protocol, answer: bytes) -> bool:
    """Answers the request of this `receive` with `answer`, and has `protocol` take its connection over; whether that
    is one of ours, and still there."""
    cycle = getattr(receive, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle) or cycle.disconnected:
        return False
    connection = getattr(cycle.on_response, "__self__", None)
    if not isinstance(connection, Connection):
        return False
    connection.hand_over(protocol, answer)
    return True


@lru_cache(1)
def _dated(now: int) -> list[tuple[bytes, bytes]]:
    # Not by `email.utils`, which asks a time zone: that leaves the name of a method in the interpreter's cache, every
    # second one more (see `request_ids`).
    return [(b"date", format_date_time(now).encode())]


class _Corked:
    """A transport that holds what is written back until the loop turns, so that it leaves together."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            # Head and body are two writes of uvicorn, in the same turn of the loop.
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > _CORKED:
            self._flush()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        self._transport.close()
        # What nobody reads would otherwise be kept as long as the other side likes.
        if self._transport.get_write_buffer_size():
            self._loop.call_later(_LINGER_SECONDS, self._transport.abort)

    def uncork(self) -> asyncio.Transport:
        """The transport itself, once all is written."""
        self._flush()
        return self._transport

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            # A client may hang up between a write and the turn of the loop: uvloop raises where asyncio drops it.
            if not self._transport.is_closing():
                self._transport.write(b"".join(held))


def _too_late() -> bytes:
    body = encode(refuse(408, "the body did not come in time").failure)
    head = f"HTTP/1.1 408 Request Timeout\r\ncontent-type: {JSON}\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + body


_TOO_LATE = _too_late()
