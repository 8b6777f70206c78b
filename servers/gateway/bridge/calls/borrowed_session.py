"""A session on a server with sessions, used by one call at a time."""

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

from ..base import OnServerMessage
from ..forwarding import require_result
from ..tasks import run_as_task, time_limit_of
from .upstream_call import CALL_NOTIFICATIONS, CallOver, UpstreamCall

ROOTS_SECONDS = 5.0
"""Seconds after which a request for roots fails during a call whose client can't be asked."""


class LeasedSession:
    """A session with the server, leased to one call or to none; the relay of the server's messages in it."""

    def __init__(self, owner: str, key: str, identity: ClientIdentity, session_messages: OnServerMessage) -> None:
        """`session_messages` is called with messages from the server that belong to no call."""
        self.owner = owner
        self.key = key
        """The key of the clients that may use it: the owner, with the same name and capabilities."""
        self.client: Client | None = None
        """The client of the session while it is open."""
        self.error: Exception | None = None
        """The reason that it could not be opened."""
        self.settled = anyio.Event()
        """Set when it is open, or never will be."""
        self.closing = anyio.Event()
        """Set when it is no longer needed."""
        self.is_left = False
        """True if the call for which it was opened has ended."""
        # A server that has ended is restarted by the next call.
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
        """True if calls can be made in it."""
        return self.client is not None and self.client.connected

    @property
    def call(self) -> UpstreamCall | None:
        """The call that uses it."""
        return self._call

    def lease(self, call: UpstreamCall | None) -> None:
        """Lease it to that call, or to none."""
        self._call = call
        self._changed.wake()

    async def exchange(
        self,
        request: tuple[str, dict[str, Any]],
        reports: bool,
        level: str | None,
        task: dict[str, Any] | None,
        call: UpstreamCall,
    ) -> dict[str, Any]:
        """Send one request, by method and params, and return its result. `reports` requests progress notifications,
        `level` sets the log level, and `task` are the params of a task, if any. Raises the same errors as
        `Client.exchange` and `follow`."""
        if self.client is None:
            raise Unreached("the session was closed")
        client = self.client
        if level in LOG_LEVELS and level != self._level and client.server.can("logging"):
            self._level = level
            with suppress(PeerError):
                await client.set_log_level(cast("LogLevel", level))

        async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            caller = Caller(call, reports)
            return require_result(await client.exchange(method, params, caller, timeout=time_limit_of(method)))

        return await run_as_task(ask, *request, task, call)

    # Messages of the server

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the answer of its call's client. If there is no call, or its client can't be asked, a request for
        roots waits for the next call: servers send it when a session begins. Raises RpcError for a request that can't
        be answered."""
        if request.method != "roots/list":
            if self._call is None:
                raise MethodNotFound(
                    f"can't forward {request.method[:100]}: no call is in progress, so there is no client to ask"
                )
            return await self._call.answer(request)
        while True:
            call = self._call
            if call is not None and call.can_ask:
                with suppress(CallOver):
                    return await call.answer(request)
            seconds = None if call is None or call.can_ask else ROOTS_SECONDS
            with anyio.move_on_after(seconds) as patience:
                while self._call is call:
                    await self._changed.wait()
            if patience.cancelled_caught:
                raise MethodNotFound("the client can't be asked for its roots at the moment")

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Forward a message to its call. Messages that belong to no call go to `session_messages`."""
        if isinstance(notice, Gap):
            return
        if self._call is not None:
            self._call.on_server_message(notice)
        elif notice.method not in CALL_NOTIFICATIONS:
            self._session_messages(notice)
