"""A session of the pool: a session on the server, used by one call at a time."""

from contextlib import suppress
from typing import Any, cast

import anyio

from shared.client.client import Client
from shared.client.errors import Unreached
from shared.client.options import ClientOptions
from shared.client.relay import Caller
from shared.concurrency import Signal
from shared.errors import MethodNotFound, PeerError
from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.descriptions import ClientIdentity
from shared.protocol.types.client import LogLevel
from shared.protocol.wire.jsonrpc import Gap

from ..connection import OnServerMessage
from ..tasks import run_as_task
from .upstream_call import CALL_NOTIFICATIONS, CallEnded, UpstreamCall

ROOTS_SECONDS = 5.0
"""Seconds after which a request for roots fails if it comes during a call whose client can't be asked."""


class PooledSession:
    """A session on the server, which at most one call uses at a time. It is also the relay of that session: it
    receives the server's requests and notifications."""

    def __init__(self, owner: str, key: str, identity: ClientIdentity, session_messages: OnServerMessage) -> None:
        """`session_messages` is called with messages from the server that belong to no call."""
        self.owner = owner
        self.key = key
        """Identifies the clients that may use the session: those with the same owner, name and capabilities."""
        self.client: Client | None = None
        """The client of the session while it is open."""
        self.error: Exception | None = None
        """The error with which the session ended, or could not be opened."""
        self.settled = anyio.Event()
        """Set when the session is open, or when opening it has failed."""
        self.closing = anyio.Event()
        """Set when the session is no longer needed."""
        self.was_abandoned = False
        """True if the call for which the session is being opened no longer waits for it."""
        # With `restart`, the next call restarts a server that has ended.
        self.options = ClientOptions(
            mode="handshake",
            info=identity.info,
            capabilities=identity.capabilities,
            log_level=identity.log_level,
            relay=self,
            restart=True,
        )
        self._session_messages = session_messages
        self._level = identity.log_level
        self._call: UpstreamCall | None = None
        self._changed = Signal()

    @property
    def is_usable(self) -> bool:
        """True if calls can be made in the session."""
        return self.client is not None and self.client.connected

    @property
    def call(self) -> UpstreamCall | None:
        """The call that uses the session; None if the session is idle."""
        return self._call

    def assign(self, call: UpstreamCall | None) -> None:
        """Assign the session to `call`; None makes it idle."""
        self._call = call
        self._changed.wake()

    async def exchange(
        self,
        request: tuple[str, dict[str, Any]],
        wants_progress: bool,
        level: str | None,
        task_params: dict[str, Any] | None,
        call: UpstreamCall,
    ) -> dict[str, Any]:
        """Send one request, a method and its params, and return its result. `wants_progress` requests progress
        notifications, `level` is the log level to set first, and `task_params` are the params of a task, if any.
        Raises the same errors as `Client.exchange` and `follow`."""
        if self.client is None:
            raise Unreached("the session was closed")
        client = self.client
        if level in LOG_LEVELS and level != self._level and client.server.can("logging"):
            self._level = level
            with suppress(PeerError):
                await client.set_log_level(cast("LogLevel", level))
        return await run_as_task(client, Caller(call, wants_progress), *request, task_params, call)

    # The relay of the session

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the answer of the client whose call uses the session. A request for roots waits for the next call if
        there is none, or if the client of the current one can't be asked: servers send it when a session begins.
        Raises RpcError for a request that can't be answered."""
        if request.method != "roots/list":
            if self._call is None:
                raise MethodNotFound(
                    f"can't forward {request.method[:100]}: no call is in progress, so there is no client to ask"
                )
            return await self._call.answer(request)
        while True:
            call = self._call
            if call is not None and call.can_ask_client:
                with suppress(CallEnded):
                    return await call.answer(request)
            timeout = None if call is None or call.can_ask_client else ROOTS_SECONDS
            with anyio.move_on_after(timeout) as waiting:
                while self._call is call:
                    await self._changed.wait()
            if waiting.cancelled_caught:
                raise MethodNotFound("the client can't be asked for its roots at the moment")

    def on_server_message(self, message: Notified | Gap) -> None:
        """Pass a message to the call that uses the session, or, if it belongs to no call, to `session_messages`."""
        if isinstance(message, Gap):
            return
        if self._call is not None:
            self._call.on_server_message(message)
        elif message.method not in CALL_NOTIFICATIONS:
            self._session_messages(message)
