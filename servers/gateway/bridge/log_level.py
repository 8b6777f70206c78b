"""`logging/setLevel` at a bridge: what a client wants, and what the server is told of that.

A server without sessions is told the level with each request, and one with sessions in the session of the client.
Where all clients share one, it is told the mildest level that any of them wants.
"""

from contextlib import suppress

from shared.client.client import Client
from shared.concurrency import Crew
from shared.errors import McpError
from shared.protocol.identity import LOG_LEVELS

from .base import Base


async def say_level(client: Client, level: str, seconds: float) -> None:
    """Has the server of `client` send log messages of this level and graver ones, if it declares that it sends any.
    Raises PeerError, ConnectionError and TimeoutError, the last after `seconds`."""
    if client.server.can("logging"):
        await client.request("logging/setLevel", {"level": level}, timeout=seconds)


class SharedLevel:
    """The level of a session that all clients share: the mildest of theirs."""

    def __init__(self, base: Base, tasks: Crew, seconds: float) -> None:
        self._base = base
        self._tasks = tasks
        self._seconds = seconds
        self._wanted: dict[object, str] = {}

    async def want(self, who: object, level: str) -> None:
        """A client wants this level from now on, or all that `who` stands for. Raises like `say_level`, and RpcError
        while the server is not available."""
        before = self._mildest()
        self._wanted[who] = level
        if self._mildest() != before:
            await say_level(self._base.client, self._mildest() or level, self._seconds)

    def forget(self, who: object) -> None:
        """That client is gone."""
        self._wanted.pop(who, None)

    def turned(self) -> None:
        """There is another connection, on which nothing is known of levels."""
        if self._wanted and self._base.up:
            self._tasks.start(self._again())

    async def _again(self) -> None:
        level = self._mildest()
        if level is not None:
            # A server that refuses is used without, as when a session is opened.
            with suppress(McpError, OSError):
                await say_level(self._base.client, level, self._seconds)

    def _mildest(self) -> str | None:
        return min(self._wanted.values(), key=LOG_LEVELS.index, default=None)
