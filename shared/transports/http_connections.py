"""uvicorn's connection with what it lacks.

Two limits: how large the head of a request may be, and how long the head and the body may take to come. Without them
a peer could hold memory and connections by never finishing. Answers that leave in one write: the head and the body
of a short one fit into one packet. And a date that is made when it is needed, so that an idle server sleeps.
"""

import asyncio
import time
from functools import lru_cache
from typing import Any
from wsgiref.handlers import format_date_time

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..protocol.http_rules import JSON, refuse
from ..protocol.jsonrpc import encode

__all__ = ["HEAD_SECONDS", "MAX_HEAD", "Connection"]

MAX_HEAD = 65_536
"""Bytes of one request's line and headers; what comes in the same packet as their end may exceed it."""
HEAD_SECONDS = 30.0
"""How long the line and headers of a request may take to come."""

_CORKED = 65_536
"""Bytes that are held back at most, for what is written next."""


class Connection(HttpToolsProtocol):
    """One HTTP/1.1 connection."""

    body_seconds = 30.0
    """How long the body of a request may take to come."""

    _head_bytes = 0
    _awaits: str | None = "head"
    _timed: str | None = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expects a head from now on."""
        super().connection_made(transport)
        self.transport = _Corked(transport, self.loop)  # type: ignore[assignment]
        self._time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expects nothing any more."""
        self._awaits = None
        self._time()
        super().connection_lost(exc)
        # uvicorn leaves this timer where the peer has reset the connection, and with it the request that came last.
        self._unset_keepalive_if_required()

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self._awaits = "head"

    def on_headers_complete(self) -> None:
        """The last byte of a head."""
        self._awaits = "body"
        self._head_bytes = 0
        self.server_state.default_headers = _dated(int(time.time()))
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The last byte of a body."""
        self._awaits = None
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Takes bytes in; refuses a head that grows too large."""
        super().data_received(data)
        if self._awaits != self._timed:  # most requests come as a whole, and need no timer
            self._time()
        if self._awaits == "head" and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self.send_400_response("The request head is too large.")

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
        # While an answer is on its way, only the next, pipelined head is late: uvicorn's own timer sees to it.
        cycle: RequestResponseCycle | None = self.cycle
        if self._awaits == "body" and cycle is not None and not cycle.response_started:
            self.transport.write(_TOO_LATE)
            self.transport.close()
        elif self._awaits == "body" or cycle is None or cycle.response_complete:
            self.transport.close()


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

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            self._transport.write(b"".join(held))


def _too_late() -> bytes:
    body = encode(refuse(408, "the body did not come in time").failure)
    head = f"HTTP/1.1 408 Request Timeout\r\ncontent-type: {JSON}\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + body


_TOO_LATE = _too_late()
