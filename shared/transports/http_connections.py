"""uvicorn's connection with the two limits it lacks: how large the head of a request may be, and how long it
may take to come. Without them a peer could hold memory and connections by never finishing a header.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ["HEAD_SECONDS", "MAX_HEAD", "Connection"]

MAX_HEAD = 65_536
"""Bytes of one request's line and headers; what comes in the same packet as their end may exceed it."""
HEAD_SECONDS = 30.0


class Connection(HttpToolsProtocol):
    """One HTTP/1.1 connection."""

    _head_bytes = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expects a head from now on."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expects nothing any more."""
        self._head_is_here()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """The last byte of a head."""
        self._head_is_here()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Takes bytes in; refuses a head that grows too large."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD:
            self.send_400_response("The request head is too large.")

    def _expect_head(self) -> None:
        self._head_is_here()
        self._in_head = True
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _head_is_here(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        # While an answer is on its way, only the next, pipelined head is late: uvicorn's own timer sees to it.
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
