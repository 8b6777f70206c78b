"""Servers to stand behind a bridge: in this process over memory, a child process, or over HTTP."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from servers.everything.server import app as everything
from servers.gateway.bridge import Bridge, Upstream, bridge
from shared.client.client import Client
from shared.client.connect import connect_http, connect_stdio
from shared.client.connection.restart import Pauses
from shared.client.options import ClientOptions
from shared.server.run import Run
from shared.server.server import Server
from shared.transports.http.server import HttpOptions, run_http
from tests.shared.client.small import End, Small
from tests.shared.server.peer import PATIENCE, Peer, talking
from tests.wire import NEWEST_HANDSHAKE, STATELESS

OLD, NEW = "handshake", "stateless"
PAIRS = [(version, mode) for version in (NEWEST_HANDSHAKE, STATELESS) for mode in (OLD, NEW)]
EVERY_PAIR = pytest.mark.parametrize(("version", "mode"), PAIRS, ids=lambda one: str(one))
"""The version of the client, and the era of the server behind the bridge."""
EVERYTHING = [sys.executable, "-m", "servers.everything"]


class Endless(Pauses):
    """Pauses that end only when a request wakes the connection."""

    def remaining(self, now: float) -> float:
        """Return more seconds than any test has."""
        return 100 * PATIENCE


class Behind:
    """A server in this process, which speaks the era that `mode` says; each session with it is a pair of queues."""

    def __init__(self, app: Server[Any] = everything, mode: str = OLD, *, name: str = "behind") -> None:
        self.app = app
        self.mode = mode
        self.name = name
        self.running: Run[Any]
        self.lines: list[End] = []
        """The connections with it, oldest first: closing one is losing it."""
        self.options: list[ClientOptions] = []
        """With which each of them was opened."""
        self.is_away = False
        """Whether no connection can be opened."""

    @asynccontextmanager
    async def serving(self, *, shared: bool = False, processes: int | None = None) -> AsyncIterator[Upstream]:
        """The way to it, as long as the block."""
        async with self.app.open() as self.running:
            yield Upstream(self.name, self.connect, shared, processes, PATIENCE)

    @asynccontextmanager
    async def connect(self, options: ClientOptions) -> AsyncIterator[Client]:
        """A session with it. Raises ConnectionError while it is away."""
        if self.is_away:
            raise ConnectionError("nobody answers at http://ada:secret@example.org/mcp?key=secret")
        mode = self.mode if options.mode == "auto" else options.mode
        async with Small.line(self) as end, Client(end, replace(options, mode=mode)) as client:
            self.options.append(options)
            yield client

    async def lose(self) -> None:
        """Loses all connections that there are."""
        for line in self.lines:
            await line.aclose()


@asynccontextmanager
async def opened(behind: Behind, **how: Any) -> AsyncIterator[Run[Bridge]]:
    """A bridge for several clients; every wait ends after some time."""
    with anyio.fail_after(3 * PATIENCE):
        async with behind.serving(**how) as upstream, bridge(upstream).open() as running:
            yield running


@asynccontextmanager
async def bridged(
    behind: Behind, version: str, capabilities: dict[str, Any] | None = None, **how: Any
) -> AsyncIterator[Peer]:
    """A client of a bridge to `behind`; every wait ends after some time. `how` is that of `bridge`."""
    with anyio.fail_after(3 * PATIENCE):
        async with behind.serving() as way, talking(bridge(way, **how), version, capabilities) as peer:
            yield peer


def child(mode: str, command: list[str] = EVERYTHING, **more: Any) -> Upstream:
    """A server in a process of its own for each session."""

    @asynccontextmanager
    async def connect(options: ClientOptions) -> AsyncIterator[Client]:
        given = replace(options, mode=mode if options.mode == "auto" else options.mode)
        async with connect_stdio(command, given, stderr="keep") as client:
            yield client

    return Upstream("child", connect, **more)


@asynccontextmanager
async def over_http(mode: str, app: Server[Any] = everything, **more: Any) -> AsyncIterator[Upstream]:
    """A server over HTTP, on a port of its own."""
    ready, stop, address = anyio.Event(), anyio.Event(), list[Any]()

    def started(*where: Any) -> None:
        address.extend(where)
        ready.set()

    async with app.open() as running, anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_http, running, HttpOptions(port=0), started=started, stop=stop))
        await ready.wait()

        @asynccontextmanager
        async def connect(options: ClientOptions) -> AsyncIterator[Client]:
            given = replace(options, mode=mode if options.mode == "auto" else options.mode)
            async with connect_http(f"http://127.0.0.1:{address[1]}/mcp", given) as client:
                yield client

        try:
            yield Upstream("remote", connect, **more)
        finally:
            stop.set()
