"""`BridgeConnection`: the bridge's own connection to the server behind it, which is reopened whenever it is lost.

    connecting ──▶ up ──▶ down, with its reason ──▶ connecting again: after a pause that gets longer with each failed
                                                    attempt, or as soon as a request needs the connection

It stores whether the server is stateless, and the description that the server sent. Requests that need no dedicated
session are sent over it, for all clients.
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
from shared.protocol.http.retry_after import RETRYABLE
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.descriptions import ServerDescription
from shared.protocol.wire.jsonrpc import Gap

from .upstream import Upstream

OnServerMessage = Callable[[Notified | Gap], None]
"""Receives the server's messages that belong to no request. Never waits or raises."""

T = TypeVar("T")

_log = logging.getLogger("shared.gateway.bridge.connection")

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*://)\S+", re.IGNORECASE)

PING_SECONDS = 10.0
"""Seconds that the server has to answer a ping, which is sent after a request without an answer."""
CALL_WAIT_SECONDS = 1.0
"""Seconds that a call waits for a server that is down: enough for one that is being restarted."""
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


class BridgeConnection:
    """Keeps one connection to the server open. It is also the relay of the connection's client, and so receives the
    server's requests and notifications."""

    def __init__(self, upstream: Upstream, options: ClientOptions) -> None:
        """`options` are those of the client; their `relay`, if set, answers the server's requests."""
        self.reason = "it has not been reached yet"
        """Why it is down; if it is up, why it was down the last time."""
        self.description: ServerDescription | None = None
        """The description of the server when it was last up."""
        self.stateless = False
        """True if the server has no sessions, or had none when it was last up."""
        self.first_attempt_ended = anyio.Event()
        """Set when the first attempt to connect has succeeded or failed."""
        self.upstream = upstream
        self._relay = options.relay
        # `keep_connected` reopens a lost connection, so the client must not do so.
        self._options = replace(options, relay=self, reconnect=False, restart=False)
        self._client: Client | None = None
        self._check_requested = anyio.Event()
        self._pauses = Pauses()
        self._is_connecting = False
        self._connection_requested = anyio.Event()
        """Set when a request waits for the connection, which ends the pause."""
        self._state_changed = Signal()
        self._attempt_ended = Signal()
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
        """Return when the connection is up. While it is down, wait up to `CALL_WAIT_SECONDS` for the current attempt
        to connect, or for one that can begin within that time.

        Raises RpcError like `client` if it is still down.
        """
        if not self.up:
            self._connection_requested.set()
            if self._is_connecting or self._min_remaining() < CALL_WAIT_SECONDS:
                with anyio.move_on_after(CALL_WAIT_SECONDS):
                    await wait_for_first(self._state_changed.wait, self._attempt_ended.wait)
        _ = self.client

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` each time the connection has come up or gone down. Return a function that stops this."""
        return _register(self._watchers, on_change)

    def listen(self, listener: OnServerMessage) -> Callable[[], None]:
        """Call `listener` with each message from the server that belongs to no request. Return a function that
        removes the listener."""
        return _register(self._listeners, listener)

    def check_liveness(self) -> None:
        """Make `keep_connected` check whether the server answers. Call this after a request without an answer."""
        self._check_requested.set()

    async def keep_connected(self) -> None:
        """Keep the connection open, and reopen it when it is lost, until cancelled."""
        pauses, tasks = self._pauses, TaskSet(self._on_failure)
        try:
            while True:
                pauses.record_start(anyio.current_time())
                self._is_connecting = True
                # A task of its own, because `_on_failure` handles its errors, which must not end this loop.
                await asyncio.wait([tasks.start(self._connect_once())])
                self._is_connecting = False
                self._connection_requested = anyio.Event()
                self._attempt_ended.wake()
                # Without a minimum pause, each request would try to start a server that can't run.
                await anyio.sleep(self._min_remaining())
                with anyio.move_on_after(pauses.remaining(anyio.current_time())):
                    await self._connection_requested.wait()
        finally:
            await tasks.stop()

    def _min_remaining(self) -> float:
        # Starting a process that ends at once costs more than a connection that is refused.
        return self._pauses.min_remaining(anyio.current_time(), is_costly=self.upstream.max_processes is not None)

    async def _connect_once(self) -> None:
        try:
            async with self.upstream.connect(self._options) as client:
                self.stateless, self.description = client.stateless, client.server
                self._set_state(client)
                self._set_state(None, await self._wait_until_lost(client))
        except (McpError, OSError, ValueError) as error:
            self._set_state(None, reason_of(error))

    def _on_failure(self, error: BaseException) -> None:
        _log.error("the connection with the server %s failed", self.upstream.name, exc_info=error)
        self._set_state(None, "the connection failed")

    async def _wait_until_lost(self, client: Client) -> str:
        """Wait until the connection is lost or the server no longer answers; return the reason."""
        while True:
            self._check_requested = anyio.Event()
            await wait_for_first(client.ended, self._check_requested.wait)
            if not client.connected:
                return _ENDED
            try:
                with anyio.fail_after(PING_SECONDS):
                    await client.ping()
            except (McpError, OSError) as error:
                # An error response shows that the server is available, unless a proxy reports the opposite.
                if not isinstance(error, PeerError) or error.code in RETRYABLE:
                    return reason_of(error)

    def _set_state(self, client: Client | None, reason: str = "") -> None:
        has_changed = self.up is not (client is not None) or not self.first_attempt_ended.is_set()
        if client is not None:
            _log.info("the server %s is available", self.upstream.name)
        elif has_changed or reason != self.reason:
            _log.warning("the server %s is not available: %s", self.upstream.name, reason)
        self._client, self.reason = client, reason or self.reason
        self.first_attempt_ended.set()
        if not has_changed:
            return
        self._state_changed.wake()
        for on_change in tuple(self._watchers.values()):
            on_change()

    # The relay of the connection

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the answer to a request from the server that belongs to none of the bridge's calls. Raises RpcError
        if nothing answers such requests."""
        if self._relay is None:
            raise MethodNotFound(f"method not found: {request.method[:100]}")
        return await self._relay.answer(request)

    def on_server_message(self, message: Notified | Gap) -> None:
        """Pass a message to all listeners."""
        for listener in tuple(self._listeners.values()):
            listener(message)
        if self._relay is not None:
            self._relay.on_server_message(message)


def _register(listeners: dict[object, T], listener: T) -> Callable[[], None]:
    """Add `listener`; return a function that removes it."""
    key = object()
    listeners[key] = listener

    def unregister() -> None:
        listeners.pop(key, None)

    return unregister
