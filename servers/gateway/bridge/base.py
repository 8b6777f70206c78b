"""`Base`: the bridge's own connection to the server behind it, which is opened again whenever it is lost.

    opening ──▶ up ──▶ down, for a reason ──▶ (after a pause, which grows, or a request) ──▶ opening

It tells which era the server lives in and what it says of itself. Where no client needs a session of its own, the
requests of all of them go over it.
"""

import asyncio
import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import anyio

from shared.client.client import Client
from shared.client.connection.restart import Pauses
from shared.client.options import ClientOptions
from shared.concurrency import Crew, Signal, first_error, first_of
from shared.errors import McpError, MethodNotFound, PeerError, RpcError
from shared.protocol.http.retry_after import BUSY
from shared.protocol.session.client import ServerDescription
from shared.protocol.session.client_events import Asked, Notified
from shared.protocol.wire.jsonrpc import Gap

from .upstream import Upstream

Heard = Callable[[Notified | Gap], None]
"""Takes what the server says that belongs to no request. Never waits or raises."""

T = TypeVar("T")

_log = logging.getLogger("shared.gateway.bridge.base")

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*://)\S+", re.IGNORECASE)
DOUBT_SECONDS = 10.0
AWAY_SECONDS = 1.0
"""How long a call waits for a server that is away: one that was started again is there by then."""
_ENDED = "it ended the connection"


def reason_of(error: BaseException) -> str:
    """What went wrong, in one line of 200 characters at most, without paths of ours and what a URL may hold besides
    its scheme: clients are told."""
    found = first_error(error)
    text = " ".join(_words(found).split()) or type(found).__name__
    return _URL.sub(r"\1…", text)[:200]


def _words(error: BaseException) -> str:
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    # Errors of names have numbers of their own, below zero; event loops write their own text for the system's.
    return os.strerror(error.errno) if error.errno > 0 else error.strerror or str(error)


class Base:
    """The connection, and what the server has said of itself over it. It is the relay of that connection."""

    def __init__(self, upstream: Upstream, options: ClientOptions) -> None:
        """`options` say what is declared to the server; who answers it is `relay` there, and else nobody."""
        self.reason = "it was not reached yet"
        """Why it is down, in words; what was so the last time, while it is up."""
        self.description: ServerDescription | None = None
        """What the server said of itself the last time that it was up."""
        self.stateless = False
        """Which era it lives in, or did the last time that it was up."""
        self.settled = anyio.Event()
        """Set when it was up or down for the first time."""
        self.upstream = upstream
        self._answers = options.relay
        # What is lost is opened again in `live`, and not by the client as well.
        self._options = replace(options, relay=self, reconnect=False, restart=False)
        self._client: Client | None = None
        self._doubted = anyio.Event()
        self._wanted = anyio.Event()
        """Set when a request waits for the connection, which ends the pause."""
        self._turned = Signal()
        self._tried = Signal()
        """Wakes who waits for the end of an attempt."""
        self._watchers: dict[object, Callable[[], None]] = {}
        self._listeners: dict[object, Heard] = {}

    @property
    def up(self) -> bool:
        """Whether requests can be made now."""
        return self._client is not None

    @property
    def client(self) -> Client:
        """Its client. Raises RpcError -32603 with the reason while it is down."""
        if self._client is None:
            raise RpcError(f"the server {self.upstream.name} is not available: {self.reason}")
        return self._client

    async def come_up(self) -> None:
        """Waits, `AWAY_SECONDS` at most, for an attempt to connect that begins now, or is under way.

        Raises RpcError like `client` where it is not up by then.
        """
        if not self.up:
            self._wanted.set()
            with anyio.move_on_after(AWAY_SECONDS):
                await first_of(self._turned.wait, self._tried.wait)
        _ = self.client

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        """Has `told` called after each time that it came up or went down, until what this gives is called."""
        return _joined(self._watchers, told)

    def listen(self, heard: Heard) -> Callable[[], None]:
        """Has `heard` called with all that the server tells that belongs to no request, until what this gives is
        called."""
        return _joined(self._listeners, heard)

    def doubt(self) -> None:
        """A request got no answer: the server is asked whether it is still there, where nothing else tells."""
        self._doubted.set()

    async def live(self) -> None:
        """Keeps the connection, until it is cancelled."""
        pauses, lives = Pauses(), Crew(self._failed)
        try:
            while True:
                pauses.started(anyio.current_time())
                # Waited for and not awaited: what it fails of is `_failed`'s to tell, and ends no more than itself.
                await asyncio.wait([lives.start(self._live_once())])
                self._wanted = anyio.Event()
                self._tried.wake()
                # Requests are many: without the shortest pause each would start a server that can't live.
                await anyio.sleep(pauses.shortest_left(anyio.current_time()))
                with anyio.move_on_after(pauses.left(anyio.current_time())):
                    await self._wanted.wait()
        finally:
            await lives.stop()

    async def _live_once(self) -> None:
        try:
            async with self.upstream.connect(self._options) as client:
                self.stateless, self.description = client.stateless, client.server
                self._settle(client)
                self._settle(None, await self._over(client))
        except (McpError, OSError, ValueError) as error:
            self._settle(None, reason_of(error))

    def _failed(self, error: BaseException) -> None:
        _log.error("the connection with the server %s failed", self.upstream.name, exc_info=error)
        self._settle(None, "the connection failed")

    async def _over(self, client: Client) -> str:
        """Waits until the connection is lost, or the server no longer answers; the reason."""
        while True:
            self._doubted = anyio.Event()
            await first_of(client.ended, self._doubted.wait)
            if not client.connected:
                return _ENDED
            try:
                await self._try(client)
            except (McpError, OSError) as error:
                return reason_of(error)

    async def _try(self, client: Client) -> None:
        """Raises OSError, or PeerError, where it does not answer."""
        with anyio.fail_after(DOUBT_SECONDS):
            try:
                await client.ping()
            except PeerError as error:
                # Whoever answers is there, unless it is a proxy that says of its server that it is not.
                if error.code in BUSY:
                    raise

    def _settle(self, client: Client | None, reason: str = "") -> None:
        has_changed = self.up is not (client is not None) or not self.settled.is_set()
        if client is not None:
            _log.info("the server %s is there", self.upstream.name)
        elif has_changed or reason != self.reason:
            _log.warning("the server %s is not available: %s", self.upstream.name, reason)
        self._client, self.reason = client, reason or self.reason
        self.settled.set()
        if not has_changed:
            return
        self._turned.wake()
        for told in tuple(self._watchers.values()):
            told()

    # The relay of the connection

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """The answer to a question that belongs to no request. Raises RpcError where nobody gives one."""
        if self._answers is None:
            raise MethodNotFound(f"method not found: {asked.method[:100]}")
        return await self._answers.answer(asked)

    def heard(self, notice: Notified | Gap) -> None:
        """Tells whoever listens."""
        for heard in tuple(self._listeners.values()):
            heard(notice)
        if self._answers is not None:
            self._answers.heard(notice)


def _joined(those: dict[object, T], one: T) -> Callable[[], None]:
    """Adds `one`; what takes it out again."""
    key = object()
    those[key] = one

    def leave() -> None:
        those.pop(key, None)

    return leave
