"""Connections of HTTP/2 that notice when nobody is there any more.

One that is kept may lead nowhere after a while: a router forgot it, or the peer went without a word. What is asked
on it waits until its time is over, and so does each try after it, because the pool takes the same connection again.
So a silent peer is asked for a sign of life, as HTTP/2 has it (RFC 9113, 6.7), and a connection that gives none is
closed. A site that only thinks for long gives it, and is waited for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
from httpcore import AsyncNetworkStream, ReadTimeout

__all__ = ["Http2Stream", "used_streams"]

LONGEST_SILENCE = 3.0
"""Seconds until a peer is asked for a sign of life, and until it has to have given it."""
SHARE = 0.2
"""The same, of the time for one read."""
PING = bytes((0, 0, 8, 6, 0, 0, 0, 0, 0)) + b"anybody?"

_used: ContextVar[list["Http2Stream"] | None] = ContextVar("used", default=None)


@contextmanager
def used_streams() -> Iterator[list["Http2Stream"]]:
    """The connections that this task sends something on meanwhile."""
    streams: list[Http2Stream] = []
    token = _used.set(streams)
    try:
        yield streams
    finally:
        _used.reset(token)


class Http2Stream(AsyncNetworkStream):
    """A connection on which whole frames are written."""

    def __init__(self, inner: AsyncNetworkStream) -> None:
        self._inner = inner
        self._writing = anyio.Lock()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (the interface's)
        """Reads what has come; nothing at the end. Raises httpcore.ReadTimeout, and closes the connection, where its
        peer is gone."""
        silence = LONGEST_SILENCE if timeout is None else min(LONGEST_SILENCE, SHARE * timeout)
        try:
            return await self._inner.read(max_bytes, silence)
        except ReadTimeout:
            await self._write(PING, silence)
        try:
            return await self._inner.read(max_bytes, silence)
        except ReadTimeout:
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (the interface's)
        """Writes all of it."""
        if (streams := _used.get()) is not None and self not in streams:
            streams.append(self)
        await self._write(buffer, timeout)

    async def _write(self, frames: bytes, seconds: float | None) -> None:
        async with self._writing:
            await self._inner.write(frames, seconds)

    async def aclose(self) -> None:
        """Closes the connection."""
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        """What is known of the connection."""
        return self._inner.get_extra_info(info)
