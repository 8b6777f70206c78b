"""`bridge`: a server that is another one, of any version and over any transport.

    a call ──▶ forward ──▶ Bridge.call ──▶ the place where it belongs ──▶ the server
                                              stateless server            one connection for all
                                              sessions on both sides      a session for each client
                                              sessions at the server      one that is lent for the call
                                              one session for all         where the operator says so

Subscriptions and log levels are this server's own business: of many clients it makes one.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio

from ...client.options import ClientOptions
from ...errors import PeerError, RpcError
from ...kit.tasks import Crew
from ...protocol.methods import PROTOCOLS_OWN, Method
from ...protocol.session.client_events import Notified
from ...protocol.shaping import is_shapely
from ...protocol.types.base import Implementation
from ...protocol.wire.jsonrpc import Gap
from ...server.connection import Connection
from ...server.context import Context
from ...server.extension import Extension
from ...server.features import Handler
from ...server.running import Opening, Running
from ...server.server import Server
from ...version import __version__
from .base import Base
from .forwarding import as_newest, error_for, lost_error
from .own_sessions import OwnSession, OwnSessions
from .pool import Pool
from .stateless import StatelessPlace
from .upstream import Upstream

__all__ = ["Bridge", "Place", "bridge"]

_log = logging.getLogger(__name__)

_OURS = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"})
"""The methods of the protocol that a bridge does not simply forward."""


class Place(Protocol):
    """Where calls are made at the server."""

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """The server's result, as it came. Raises PeerError for its error, ConnectionError and TimeoutError where
        none came, and any McpError for what the client is to be told."""


class Bridge:
    """One run of a bridge: what it has open at the server, and where each call goes."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.tasks = Crew(_failed)
        """What lives as long as the bridge; a task that fails is logged, and takes no other along."""
        self.base = Base(upstream, ClientOptions())
        self.own = OwnSessions(upstream, self.tasks, self)
        """The sessions of clients that have one each."""
        self._stateless = StatelessPlace(self.base)
        self._pool = Pool(upstream, self.tasks, self.base.heard)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Is open as long as the block. It begins when the server was reached, or not, for the first time."""
        self.tasks.start(self.base.live())
        try:
            with anyio.move_on_after(self.upstream.opening_seconds):
                await self.base.settled.wait()
            yield
        finally:
            self._pool.close()
            with anyio.CancelScope(shield=True):
                await self.tasks.stop()

    def place(self, context: Context[Any]) -> Place:
        """Where the call of `context` goes. Raises RpcError while nothing is known of the server."""
        if self.base.description is None or self.base.stateless:
            self.base.client  # noqa: B018 - it raises why there is none
            return self._stateless
        return self.own if context.peer.lasts else self._pool

    def greet(self, link: Connection) -> None:
        """Opens the session of a client that has shaken hands, which may be told something before it asks."""
        if self.base.description is not None and not self.base.stateless and not self.upstream.shared:
            self.own.of(link).begin()

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """The result of a call, or the error that its client is told: an McpError."""
        name, method = self.upstream.name, context.call.method.name
        try:
            result = as_newest(await self.place(context).call(context, params))
        except PeerError as error:
            raise error_for(context, error, name, stateless=self.base.stateless) from None
        except (OSError, TimeoutError) as error:
            self.base.doubt()
            raise lost_error(name, error) from None
        if not is_shapely(method, result):
            raise RpcError(f"the server {name} answered {method} with what is no result of that")
        return result

    # What own sessions hear that belongs to no call

    def told(self, link: Connection, notice: Notified) -> None:
        """The server has told the client of `link` something."""
        link.session.tell(notice.method, notice.params)
        link.soon()

    def updated(self, session: OwnSession, notice: Notified | Gap) -> None:
        """A resource has changed that a session has subscribed to."""

    async def reopened(self, session: OwnSession) -> None:
        """A session was lost, and there is another one."""


def bridge(upstream: Upstream, *, extensions: Sequence[Extension[Any]] = ()) -> Server[Bridge]:
    """A server that is `upstream`, for clients of any version. `extensions` stand before it: they see what clients
    ask, and what is answered.

    It opens whether the server is reached or not, and tries again for as long as it is open.
    """
    forwarding = Extension[Bridge]("bridge", around=_around, otherwise=_forward)
    server = Server[Bridge](
        Implementation(name=upstream.name, version=__version__), extensions=[forwarding, *extensions]
    )

    @server.lifespan
    async def open_bridge(opening: Opening) -> AsyncIterator[Bridge]:
        one = Bridge(upstream)
        async with one.living():
            if one.base.description is not None:
                said = one.base.description
                opening.describe(said.capabilities, said.instructions, said.info)
            opening.greet(one.greet)
            yield one

    return server


async def _forward(running: Running[Any], context: Context[Any], params: Any) -> dict[str, Any]:
    state: Bridge = context.state
    return await state.call(context, params)


def _around(method: Method, handler: Handler) -> Handler:
    return _forward if method.name in PROTOCOLS_OWN and method.name not in _OURS else handler


def _failed(error: BaseException) -> None:
    _log.error("a task of the bridge failed", exc_info=error)
