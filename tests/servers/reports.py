"""A client that requests a level of log messages, or none, and its messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.common.notices import Notices
from shared import Server
from tests.servers.peers import inside
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, Peer

LEVEL = "io.modelcontextprotocol/logLevel"
LOGGED = "notifications/message"
POLLED = "polling every second, because the system reports no changes"

both_eras = pytest.mark.parametrize("era", [NEWEST_HANDSHAKE, STATELESS])

LogMessage = tuple[str, str]


class RefusedNotices(Notices):
    """File notices that the system refuses."""

    def __init__(self) -> None:
        super().__init__(_refuse)


def _refuse(_directories: list[str]) -> None:
    raise OSError("inotify watch limit reached")


class Reader:
    """A client, with its log messages as (level, text), all from one logger."""

    def __init__(self, peer: Peer, logger: str, level: str | None) -> None:
        self.peer = peer
        self._logger = logger
        self._meta = {} if level is None or peer.version != STATELESS else {LEVEL: level}

    async def messages_of(self, method: str, /, **params: Any) -> list[LogMessage]:
        """Returns the log messages during a request."""
        await self.peer.request(method, params, **self._meta)
        messages = [self._log_message(one) for one in self.peer.others if one["method"] == LOGGED]
        self.peer.others.clear()
        return messages

    async def messages_of_tool(self, tool: str, /, **arguments: Any) -> list[LogMessage]:
        """Returns the log messages during the call of a tool."""
        return await self.messages_of("tools/call", name=tool, arguments=arguments)

    async def next_message(self) -> LogMessage:
        """Returns the next log message."""
        return self._log_message(await self.peer.other(LOGGED))

    def _log_message(self, message: dict[str, Any]) -> LogMessage:
        params = message["params"]
        assert params["logger"] == self._logger
        return params["level"], params["data"]


@asynccontextmanager
async def reading(
    app: Server[Any], *options: str | Path, era: str = NEWEST_HANDSHAKE, level: str | None = "info"
) -> AsyncIterator[Reader]:
    """Opens a server with these options; yields a client."""
    async with inside(app, *options, era=era) as peer:
        if era != STATELESS and level is not None:
            await peer.client.request("logging/setLevel", {"level": level})
        yield Reader(peer.client, app.implementation.name, level)
