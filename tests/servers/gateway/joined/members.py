"""Members for tests of the gateway, which open and close when the test says so."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from servers.gateway.joined.directory import Prefix
from servers.gateway.joined.gateway import gateway
from shared import Implementation, Run, Server
from shared.server.extension import Extension
from tests.shared.server.peer import ERAS, PATIENCE, Json, Peer

both_eras = pytest.mark.parametrize("version", ERAS)


def small(name: str, **options: Any) -> Server[Any]:
    """A server without features."""
    return Server(Implementation(name=name, version="1"), **options)


async def names(peer: Peer, what: str = "tools") -> list[str]:
    """The names on the first page of a list."""
    return [one["name"] for one in (await peer.request(f"{what}/list"))["result"][what]]


async def vendors(peer: Peer, method: str, params: Json | None = None, **meta: Any) -> Json:
    """The answer to a request of a method that is not of the protocol."""
    id_ = await peer.begin(method, params, **meta)
    peer._methods.pop(id_)  # the official schemas know no such method
    return await peer.answer(id_)


class Door:
    """A server that a test opens and closes, in a task of its own."""

    def __init__(self, name: str, server: Server[Any], settings: BaseModel | None = None) -> None:
        self.name = name
        self.running: Run[Any] | None = None
        self.reason = "it is starting"
        self._server = server
        self._settings = settings
        self.extensions: list[Extension[Any]] = []
        """What it is opened with besides."""
        self._watching: list[Callable[[], None]] = []
        self._closing = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    def watch(self, heard: Callable[[], None]) -> Callable[[], None]:
        self._watching.append(heard)
        return lambda: self._watching.remove(heard)

    async def open(self) -> Run[Any]:
        """The server, opened."""
        opened: asyncio.Future[Run[Any]] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._life = asyncio.create_task(self._live(opened))
        with anyio.fail_after(PATIENCE):
            await asyncio.wait([opened, self._life], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            await self._life
        return await opened

    async def close(self) -> None:
        """Closes it, if it is open."""
        self._closing.set()
        if self._life is not None:
            with anyio.fail_after(PATIENCE):
                await self._life

    async def _live(self, opened: "asyncio.Future[Run[Any]]") -> None:
        async with self._server.open(self._settings, extensions=self.extensions) as running:
            self._tell(running, "")
            opened.set_result(running)
            await self._closing.wait()
            self._tell(None, "it was closed")

    def _tell(self, running: Run[Any] | None, reason: str) -> None:
        self.running, self.reason = running, reason
        for heard in tuple(self._watching):
            heard()


@asynccontextmanager
async def joined(
    *doors: Door, prefix: Prefix = "auto", closed: tuple[Door, ...] = (), third_party_names: Sequence[str] = ()
) -> AsyncIterator[Run[Any]]:
    """A gateway to `doors`, all of them open, and to those that are `closed` as yet, which come after them. Those of
    `third_party_names` count as servers of others."""
    try:
        for door in doors:
            await door.open()
        async with gateway([*doors, *closed], prefix=prefix, third_party_names=third_party_names).open() as running:
            yield running
    finally:
        for door in (*doors, *closed):
            await door.close()


def with_tools(name: str, *tools: str, **options: Any) -> Door:
    """A member whose tools say whose they are."""
    server = small(name, **options)
    for tool in tools:

        async def say(of: str = f"{name} {tool}") -> str:
            """Say whose it is."""
            return of

        server.tool(name=tool)(say)
    return Door(name, server)


def with_resources(name: str, *uris: str) -> Door:
    """A member with these resources; those of a template take one variable, `id`."""
    return Door(name, serving(name, *uris))


def serving(name: str, *uris: str) -> Server[Any]:
    """The same, as a server that has no door yet."""
    server = small(name)
    for uri in uris:
        if "{" in uri:

            @server.resource(uri, name=f"{name} {uri}")
            async def read_one(id: str) -> str:
                """Read one of many."""
                return f"{name} {id}"

        else:

            @server.resource(uri, name=f"{name} {uri}")
            async def read() -> str:
                """Read it."""
                return name

    return server


def opened(door: Door) -> Run[Any]:
    """The server behind a door that is open."""
    assert door.running is not None
    return door.running


async def prompt() -> str:
    """Say something."""
    return "something"
