"""The bodies of requests: read within a limit, and those that are large are decoded one after another."""

from collections.abc import Callable
from typing import TypeVar

from anyio import lowlevel

from ....protocol.http.bodies import body_of, check_length
from ....protocol.http.rules import Refusal, is_gzip
from ....server.dispatch.thread_limiter import Turns
from ....telemetry.footprint import count_bytes
from .reply import Gone, Http

T = TypeVar("T")

_LARGE = 65_536
"""Bytes of a body that takes a millisecond to decode, and more where a tool validates it."""


class Bodies:
    """What reads those of one endpoint."""

    def __init__(self, limit: int) -> None:
        """A body has `limit` bytes at most, inflated where it is gzipped."""
        self._limit = limit
        self._turns = Turns(1)

    async def read(self, http: Http) -> bytes | Refusal:
        """The body of a request: 413 beyond the limit, 400 for gzip that is broken. How long it may take is the
        connection's matter. Raises Gone when the client goes away meanwhile."""
        # The connection stays open: closing it on a client that still sends would reset it, and lose this answer.
        refusal = check_length(http.headers, self._limit)
        if refusal is not None:
            return refusal
        event = await http.receive()
        if event["type"] == "http.request" and not event.get("more_body", False) and not is_gzip(http.headers):
            data: bytes = event.get("body", b"")
            if len(data) <= self._limit:
                _count(http, len(data))
                return data  # whole, as most are
        body = body_of(http.headers, self._limit)
        while event["type"] != "http.disconnect":
            is_last = not event.get("more_body", False)
            refusal = body.feed(event.get("body", b"")) or (body.end() if is_last else None)
            if refusal is not None:
                return refusal
            if is_last:
                _count(http, len(body.data))
                return bytes(body.data)
            event = await http.receive()
        raise Gone

    async def decode(self, client: str, decode: Callable[[bytes], T], body: bytes) -> T:
        """What `decode` makes of a body. Of those that take long one is read in a turn of the event loop, client by
        client: many that come at once would hold up everybody else."""
        if len(body) < _LARGE:
            return decode(body)
        async with self._turns.take(client):
            await lowlevel.checkpoint()
            return decode(body)


def _count(http: Http, size: int) -> None:
    count_bytes(size)
    http.reply.unspent += size
