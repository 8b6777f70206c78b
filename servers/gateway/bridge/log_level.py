"""`logging/setLevel` at a bridge: the levels of clients, and the level of the server.

A stateless server is sent the level with each request; a server with sessions is sent each change, in the client's
session. If all clients share one session, the server is sent the least severe level that any of them set.
"""

from contextlib import suppress

from shared.client.client import Client
from shared.concurrency import TaskSet
from shared.errors import McpError
from shared.protocol.identity import LOG_LEVELS

from .base import Base


async def send_level(client: Client, level: str, seconds: float) -> None:
    """Set the log level of the server of `client`, if it declares logging. Raises PeerError, ConnectionError and
    TimeoutError, the last after `seconds`."""
    if client.server.can("logging"):
        await client.request("logging/setLevel", {"level": level}, timeout=seconds)


class SharedLevel:
    """The level of a session that all clients share: the least severe of their levels."""

    def __init__(self, base: Base, tasks: TaskSet, seconds: float) -> None:
        self._base = base
        self._tasks = tasks
        self._seconds = seconds
        self._levels: dict[object, str] = {}

    async def set_level(self, client: object, level: str) -> None:
        """Store the level of `client`, a client or a group of them, and update the server. Raises the same errors as
        `send_level`, and RpcError while the server is not available."""
        before = self._least_severe()
        self._levels[client] = level
        if (after := self._least_severe()) is not None and after != before:
            await send_level(self._base.client, after, self._seconds)

    def forget(self, client: object) -> None:
        """Forget the level of a disconnected client. The server keeps its level until another client sets one."""
        self._levels.pop(client, None)

    def on_reconnected(self) -> None:
        """Set the level again on a new connection."""
        if self._levels and self._base.up:
            self._tasks.start(self._restore())

    async def _restore(self) -> None:
        level = self._least_severe()
        if level is not None:
            # Best effort, as when a session is opened.
            with suppress(McpError, OSError):
                await send_level(self._base.client, level, self._seconds)

    def _least_severe(self) -> str | None:
        return min(self._levels.values(), key=LOG_LEVELS.index, default=None)
