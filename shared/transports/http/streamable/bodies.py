"""Reads the bodies of requests within limits. Large bodies are decoded one after another, in steps between which
other tasks run."""

from collections.abc import Callable
from typing import TypeVar

from ....concurrency import run_in_turns
from ....protocol.http.bodies import check_length, make_body
from ....protocol.http.rules import Refusal, is_gzip, refuse
from ....server.dispatch.portions import Portions
from ....server.dispatch.turns import Turns
from ....steps import Steps, complete
from ....telemetry.footprint import count_bytes
from .reply import Asgi, ClientGone, HttpExchange

T = TypeVar("T")

_LARGE_BODY_BYTES = 65_536
"""The bytes at which a body counts as large: it takes a millisecond to decode, and longer if a tool validates it."""
_MAX_BODIES_BYTES = 64 * 1_048_576
"""The maximum size in bytes of all bodies that are being read or wait to be decoded, unless one body may exceed a
quarter of it: then the maximum is four times the limit of one body."""
_FULL = refuse(429, "too many bytes of your requests are being read; send less at once", Retry_After="1")


class Bodies:
    """Reads the bodies of one endpoint."""

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum length of a body in bytes, after decompression if it is gzipped."""
        self._limit = limit
        self._memory = Portions(max(_MAX_BODIES_BYTES, 4 * limit))
        self._turns = Turns(1)

    async def read(self, http: HttpExchange, decode: Callable[[bytes], Steps[T]]) -> T | Refusal:
        """Return the body of a request, decoded by `decode`. Refusals: 413 beyond the limit, 400 for invalid gzip,
        429 if too much data from this client is being read. The time limit of the connection applies. Raises
        ClientGone if the client disconnects."""
        # After a refusal the connection stays open: closing it while the client is still sending would reset it, and
        # the refusal would be lost.
        refusal = check_length(http.headers, self._limit)
        if refusal is not None:
            return refusal
        event = await http.receive()
        if event["type"] == "http.request" and not event.get("more_body", False) and not is_gzip(http.headers):
            data: bytes = event.get("body", b"")
            if len(data) <= min(self._limit, _LARGE_BODY_BYTES):
                _count(http, len(data))
                return complete(decode(data))  # most bodies are short and arrive in one piece
        share = _Share(self._memory, http.client)
        try:
            body = await self._gather(http, event, share)
            return body if isinstance(body, Refusal) else await self.decode(http.client, decode, body)
        finally:
            share.release()

    async def _gather(self, http: HttpExchange, event: Asgi, share: "_Share") -> bytes | Refusal:
        body = make_body(http.headers, self._limit)
        while event["type"] != "http.disconnect":
            is_last = not event.get("more_body", False)
            refusal = body.feed(event.get("body", b"")) or (body.end() if is_last else None)
            if refusal is None and not share.grow(len(body.data)):
                refusal = _FULL
            if refusal is not None:
                return refusal
            if is_last:
                _count(http, len(body.data))
                return bytes(body.data)
            event = await http.receive()
        raise ClientGone

    async def decode(self, client: str, decode: Callable[[bytes], Steps[T]], body: bytes) -> T:
        """Return `body` decoded by `decode`, in turn if it is large."""
        if len(body) < _LARGE_BODY_BYTES:
            return complete(decode(body))
        # Large bodies are decoded one after another, client by client: many at once would delay all other clients.
        async with self._turns.acquire(client):
            return await run_in_turns(decode(body))


class _Share:
    """The share of one body in the memory for all bodies."""

    def __init__(self, memory: Portions, client: str) -> None:
        self._memory = memory
        self._client = client
        self._size = 0

    def grow(self, size: int) -> bool:
        """Grow the share to `size` bytes. Returns False if the client may not use that much."""
        is_granted = self._memory.reserve(self._client, size - self._size)
        if is_granted:
            self._size = size
        return is_granted

    def release(self) -> None:
        """Release the whole share."""
        self._memory.release(self._client, self._size)


def _count(http: HttpExchange, size: int) -> None:
    count_bytes(size)
    http.reply.unreported_bytes += size
