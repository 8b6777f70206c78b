"""The log level of the server, which depends on the levels that clients set with `logging/setLevel`.

A stateless server gets the client's level with each request. A server with sessions gets a new level in the session
of the client. If all clients share one session, the server gets the least severe level that any of them has set.
"""

from contextlib import suppress

from shared.client.client import Client
from shared.concurrency import TaskSet
from shared.errors import McpError
from shared.protocol.identity import LOG_LEVELS

from .connection import BridgeConnection


async def send_level(client: Client, level: str, time_limit: float) -> None:
    """Set the log level at the server of `client`, if it declares logging. Raises PeerError, ConnectionError, and
    TimeoutError if there is no answer within `time_limit` seconds."""
    if client.server.can("logging"):
        await client.request("logging/setLevel", {"level": level}, timeout=time_limit)


class SharedLevel:
    """Sets the level of a session that all clients share to the least severe of their levels."""

    def __init__(self, connection: BridgeConnection, tasks: TaskSet, timeout: float) -> None:
        self._connection = connection
        self._tasks = tasks
        self._timeout = timeout
        self._levels: dict[object, str] = {}

    async def set_level(self, client: object, level: str) -> None:
        """Store the level of `client`, any hashable key of one or more clients. If the least severe level changes,
        send it to the server. Raises the same errors as `send_level`, and RpcError while the server is down."""
        before = self._least_severe()
        self._levels[client] = level
        if (after := self._least_severe()) is not None and after != before:
            await send_level(self._connection.client, after, self._timeout)

    def forget(self, client: object) -> None:
        """Forget the level of a disconnected client. The server keeps its level until another client sets one."""
        self._levels.pop(client, None)

    def on_reconnected(self) -> None:
        """Set the level again on a new connection."""
        if self._levels and self._connection.up:
            self._tasks.start(self._restore())

    async def _restore(self) -> None:
        level = self._least_severe()
        if level is not None:
            # An error is ignored: no client waits for this.
            with suppress(McpError, OSError):
                await send_level(self._connection.client, level, self._timeout)

    def _least_severe(self) -> str | None:
        return min(self._levels.values(), key=LOG_LEVELS.index, default=None)
