"""`Base`: the bridge's own connection to the server behind it, which is reopened whenever it is lost.

    opening ──▶ up ──▶ down, for a reason ──▶ (after a pause, which grows, or a request) ──▶ opening

It knows the server's era and description. The requests of all clients that don't need their own session use it.
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
from shared.concurrency import Signal, TaskSet, first_error, wait_for_first
from shared.errors import McpError, MethodNotFound, PeerError, RpcError
from shared.protocol.http.retry_after import BUSY
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.descriptions import ServerDescription
from shared.protocol.wire.jsonrpc import Gap

from .upstream import Upstream

OnServerMessage = Callable[[Notified | Gap], None]
"""Receives the server's messages that belong to no request. Never waits or raises."""

T = TypeVar("T")

_log = logging.getLogger("shared.gateway.bridge.base")

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*://)\S+", re.IGNORECASE)
DOUBT_SECONDS = 10.0
AWAY_SECONDS = 1.0
"""Seconds that a call waits for an unavailable server: enough for one that is being restarted."""
_ENDED = "it ended the connection"


def reason_of(error: BaseException) -> str:
    """Describe the error in one line of at most 200 characters. Clients see it, so it has no paths of this machine,
    and only the scheme of URLs."""
    root_error = first_error(error)
    text = str(root_error)
    if isinstance(root_error, OSError) and root_error.errno is not None:
        # Name resolution errors have negative numbers; event loops replace the system's error texts with their own.
        text = os.strerror(root_error.errno) if root_error.errno > 0 else root_error.strerror or text
    text = " ".join(text.split()) or type(root_error).__name__
    return _URL.sub(r"\1…", text)[:200]


class Base:
    """The connection, its relay, and the server's description received over it."""

    def __init__(self, upstream: Upstream, options: ClientOptions) -> None:
        """`options` are declared to the server; its `relay`, if set, answers the server's requests."""
        self.reason = "it has not been reached yet"
        """The reason that it is down or, if it is up, that it was last down."""
        self.description: ServerDescription | None = None
        """The description of the server when it was last up."""
        self.stateless = False
        """True if the server has no sessions, or had none when it was last up."""
        self.settled = anyio.Event()
        """Set once it has been up or down for the first time."""
        self.upstream = upstream
        self._answers = options.relay
        # `live` reopens a lost connection, so the client must not.
        self._options = replace(options, relay=self, reconnect=False, restart=False)
        self._client: Client | None = None
        self._check_requested = anyio.Event()
        self._pauses = Pauses()
        self._is_trying = False
        self._connection_requested = anyio.Event()
        """Set when a request waits for the connection, which ends the pause."""
        self._state_changed = Signal()
        self._attempted = Signal()
        """Wakes the calls that wait for the end of an attempt."""
        self._watchers: dict[object, Callable[[], None]] = {}
        self._listeners: dict[object, OnServerMessage] = {}

    @property
    def up(self) -> bool:
        """True if requests can be made now."""
        return self._client is not None

    @property
    def client(self) -> Client:
        """The client of the connection. Raises RpcError -32603 with the reason while it is down."""
        if self._client is None:
            raise RpcError(f"the server {self.upstream.name} is not available: {self.reason}")
        return self._client

    async def wait_until_up(self) -> None:
        """Wait, for at most `AWAY_SECONDS`, for an attempt to connect that begins by then or is in progress.

        Raises RpcError like `client` if it is not up by then.
        """
        if not self.up:
            self._connection_requested.set()
            if self._is_trying or self._min_remaining() < AWAY_SECONDS:
                with anyio.move_on_after(AWAY_SECONDS):
                    await wait_for_first(self._state_changed.wait, self._attempted.wait)
        _ = self.client

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` each time that the connection has come up or gone down. Return a function that stops
        this."""
        return _register(self._watchers, on_change)

    def listen(self, listener: OnServerMessage) -> Callable[[], None]:
        """Call `listener` with each message from the server that belongs to no request. Return a function that
        removes the listener."""
        return _register(self._listeners, listener)

    def check_liveness(self) -> None:
        """Check if the server still answers, after a request without an answer."""
        self._check_requested.set()

    async def live(self) -> None:
        """Keep the connection open until cancelled."""
        pauses, tasks = self._pauses, TaskSet(self._on_failure)
        try:
            while True:
                pauses.record_start(anyio.current_time())
                self._is_trying = True
                # Not awaited directly: `_on_failure` reports its error, which must not end anything else.
                await asyncio.wait([tasks.start(self._connect_once())])
                self._is_trying = False
                self._connection_requested = anyio.Event()
                self._attempted.wake()
                # Without a minimum pause, each request would try to start a server that can't run.
                await anyio.sleep(self._min_remaining())
                with anyio.move_on_after(pauses.remaining(anyio.current_time())):
                    await self._connection_requested.wait()
        finally:
            await tasks.stop()

    def _min_remaining(self) -> float:
        # A process that ends at once each time costs more than a connection that is refused.
        return self._pauses.min_remaining(anyio.current_time(), is_costly=self.upstream.processes is not None)

    async def _connect_once(self) -> None:
        try:
            async with self.upstream.connect(self._options) as client:
                self.stateless, self.description = client.stateless, client.server
                self._settle(client)
                self._settle(None, await self._wait_until_lost(client))
        except (McpError, OSError, ValueError) as error:
            self._settle(None, reason_of(error))

    def _on_failure(self, error: BaseException) -> None:
        _log.error("the connection with the server %s failed", self.upstream.name, exc_info=error)
        self._settle(None, "the connection failed")

    async def _wait_until_lost(self, client: Client) -> str:
        """Wait until the connection is lost or the server no longer answers; return the reason."""
        while True:
            self._check_requested = anyio.Event()
            await wait_for_first(client.ended, self._check_requested.wait)
            if not client.connected:
                return _ENDED
            try:
                with anyio.fail_after(DOUBT_SECONDS):
                    await client.ping()
            except (McpError, OSError) as error:
                # An error response shows that the server is available, unless a proxy reports the opposite.
                if not isinstance(error, PeerError) or error.code in BUSY:
                    return reason_of(error)

    def _settle(self, client: Client | None, reason: str = "") -> None:
        has_changed = self.up is not (client is not None) or not self.settled.is_set()
        if client is not None:
            _log.info("the server %s is available", self.upstream.name)
        elif has_changed or reason != self.reason:
            _log.warning("the server %s is not available: %s", self.upstream.name, reason)
        self._client, self.reason = client, reason or self.reason
        self.settled.set()
        if not has_changed:
            return
        self._state_changed.wake()
        for on_change in tuple(self._watchers.values()):
            on_change()

    # The relay of the connection

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Answer a request from the server that belongs to none of the bridge's calls. Raises RpcError if it has no
        answer."""
        if self._answers is None:
            raise MethodNotFound(f"method not found: {request.method[:100]}")
        return await self._answers.answer(request)

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Forward a message to all listeners."""
        for listener in tuple(self._listeners.values()):
            listener(notice)
        if self._answers is not None:
            self._answers.on_server_message(notice)


def _register(listeners: dict[object, T], listener: T) -> Callable[[], None]:
    """Add `listener`; return a function that removes it."""
    key = object()
    listeners[key] = listener

    def unregister() -> None:
        listeners.pop(key, None)

    return unregister
