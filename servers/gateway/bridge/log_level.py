"""`logging/setLevel` at a bridge: the levels of clients, and the level of the server.

A stateless server gets the level with each request, one with sessions gets it in the session of the client. If all
clients share one session, it gets the mildest level that any of them set.
"""

from contextlib import suppress

from shared.client.client import Client
from shared.concurrency import TaskSet
from shared.errors import McpError
from shared.protocol.identity import LOG_LEVELS

from .base import Base


async def say_level(client: Client, level: str, seconds: float) -> None:
    """Set the log level of the server of `client`, if it declares logging. Raises PeerError, ConnectionError and
    TimeoutError, the last after `seconds`."""
    if client.server.can("logging"):
        await client.request("logging/setLevel", {"level": level}, timeout=seconds)


class SharedLevel:
    """The level of a session that all clients share: the mildest of theirs."""

    def __init__(self, base: Base, tasks: TaskSet, seconds: float) -> None:
        self._base = base
        self._tasks = tasks
        self._seconds = seconds
        self._wanted: dict[object, str] = {}

    async def want(self, who: object, level: str) -> None:
        """Store the level that `who` set, which is one client or a group of clients, and update the server. Raises
        like `say_level`, and RpcError while the server is not available."""
        before = self._mildest()
        self._wanted[who] = level
        if self._mildest() != before:
            await say_level(self._base.client, self._mildest() or level, self._seconds)

    def forget(self, who: object) -> None:
        """Forget the level of a client that is gone."""
        self._wanted.pop(who, None)

    def turned(self) -> None:
        """Set the level again on a new connection."""
        if self._wanted and self._base.up:
            self._tasks.start(self._again())

    async def _again(self) -> None:
        level = self._mildest()
        if level is not None:
            # An error is ignored, as when a session is opened.
            with suppress(McpError, OSError):
                await say_level(self._base.client, level, self._seconds)

    def _mildest(self) -> str | None:
        return min(self._wanted.values(), key=LOG_LEVELS.index, default=None)
