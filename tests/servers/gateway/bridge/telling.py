"""A small server behind a bridge, and what it was asked to tell of."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from servers.gateway.bridge import bridge
from shared.errors import InvalidParams
from shared.protocol.identity import LogMessage
from shared.protocol.session.events import Change, UnknownNotification
from shared.protocol.session.handshake import State
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.run import Run
from tests.servers.gateway.bridge.upstreams import Behind
from tests.shared.client.small import Small
from tests.shared.server.peer import PATIENCE

__all__ = ["MODES", "Telling", "until"]

MODES = ("handshake", "stateless")


class Ears:
    """A `Watcher` that keeps what is told."""

    def __init__(self, on_client_notification: Callable[[UnknownNotification], None]) -> None:
        self.on_client_notification = on_client_notification

    def on_roots_changed(self) -> None:
        pass

    def on_close(self) -> None:
        pass


class Telling(Small, Behind):
    """The server. What its tools tell concerns the session that they are called in, and no other one."""

    def __init__(self, mode: str, *, shared: bool = False) -> None:
        Small.__init__(self)
        Behind.__init__(self, self.app, mode, name="small")
        for function in (self.touch, self.say, self.shift, self.whisper, self.ears):
            self.app.tool()(function)
        self.shared = shared
        self.told: list[UnknownNotification] = []
        """What the clients have said of their own accord that called `ears`."""
        self.gate = anyio.Event()
        """Until it is set, nothing is told of `memo://slow`."""
        self.gate_seen = anyio.Event()

    @asynccontextmanager
    async def bridged(self) -> AsyncIterator[Run[Any]]:
        """A bridge before it; every wait ends after a while."""
        with anyio.fail_after(3 * PATIENCE):
            async with self.serving(shared=self.shared) as upstream, bridge(upstream).open() as running:
                yield running

    async def cut(self, number: int = 0) -> None:
        """The connection of that number is lost: the first one is the bridge's own."""
        await self.lines[number].aclose()

    async def hold(self, ctx: object, uri: str) -> str:
        if uri == "memo://bad":
            raise InvalidParams("not today")
        if uri == "memo://slow":
            self.gate_seen.set()
            await self.gate.wait()
        return await super().hold(ctx, uri)

    def links(self) -> list[Connection]:
        """The connections that are open, oldest first, as the server sees them; nothing else tells that."""
        return [link for link in self.running.changes._listeners if isinstance(link, Connection)]

    @property
    def roots_changed(self) -> int:
        """How often clients have said that their roots are others now."""
        return sum(link.session.roots_changed for link in self.links())

    async def heard_by_all(self) -> None:
        """Returns when all connections hear of the lists."""
        await until(lambda: all(link.streams or link.session._handshake.state is State.OPEN for link in self.links()))

    async def touch(self, ctx: Context[None], uri: str, part: str | None = None) -> str:
        """Tell that a resource has changed, or a part of it."""
        ctx.link.on_change(Change("resource", uri, part))
        return "touched"

    async def shift(self, ctx: Context[None], what: str) -> str:
        """Tell that a list has changed."""
        ctx.link.on_change(Change(what))
        return "shifted"

    async def say(self, ctx: Context[None], level: Any, text: str) -> str:
        """Log something that belongs to no call."""
        ctx.link.announce(LogMessage(level, text))
        return "said"

    async def ears(self, ctx: Context[None]) -> str:
        """Hear what the client says of its own accord."""
        ctx.link.watchers = (*ctx.link.watchers, Ears(self.told.append))
        return "listening"

    async def whisper(self, ctx: Context[None], method: str, params: dict[str, Any]) -> str:
        """Send a notification that belongs to no call."""
        ctx.link.session.notify_session(method, params)
        ctx.link.send_soon()
        return "whispered"


async def until(holds: Any) -> None:
    """Waits until `holds()` does."""
    while not holds():
        await anyio.lowlevel.checkpoint()
