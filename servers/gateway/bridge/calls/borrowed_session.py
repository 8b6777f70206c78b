"""A session at a server that has them, which one call after another has for itself."""

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
from shared.protocol.session.client import ClientIdentity
from shared.protocol.session.client_events import Asked, Notified
from shared.protocol.types.client import LogLevel
from shared.protocol.wire.jsonrpc import Gap

from ..base import Heard
from ..forwarding import settled
from ..tasks import seconds_for, through_task
from .upstream_call import OF_CALLS, CallOver, UpstreamCall

ROOTS_SECONDS = 5.0
"""How long a server waits for roots during a call whose client can't be asked, before it gets none."""


class LeasedSession:
    """A session with the server, leased to one call or to none: the relay of what the server says in it."""

    def __init__(self, owner: str, key: str, identity: ClientIdentity, apart: Heard) -> None:
        """`apart` takes what the server tells that belongs to no call."""
        self.owner = owner
        self.key = key
        """Who may have it: its owner, as far as that says the same of itself."""
        self.client: Client | None = None
        """Its client, while it is open."""
        self.error: Exception | None = None
        """Why it could not be opened."""
        self.settled = anyio.Event()
        """Set when it is open, or will never be."""
        self.closing = anyio.Event()
        """Set when nobody wants it any more."""
        self.is_left = False
        """Whether the call is gone that it is opened for."""
        # A server that has ended is started again by the next call.
        self.options = ClientOptions(
            mode="handshake",
            info=identity.info,
            capabilities=identity.capabilities,
            log_level=identity.log_level,
            relay=self,
            restart=True,
        )
        self._apart = apart
        self._level = identity.log_level
        self._call: UpstreamCall | None = None
        self._moved = Signal()

    @property
    def is_usable(self) -> bool:
        """Whether calls can be made in it."""
        return self.client is not None and self.client.connected

    @property
    def call(self) -> UpstreamCall | None:
        """The call that has it."""
        return self._call

    def lease(self, call: UpstreamCall | None) -> None:
        """It is that call's from now on."""
        self._call = call
        self._moved.wake()

    async def exchange(
        self,
        request: tuple[str, dict[str, Any]],
        reports: bool,
        level: str | None,
        task: dict[str, Any] | None,
        call: UpstreamCall,
    ) -> dict[str, Any]:
        """The result of one request, by method and params, which wants `reports` of progress and log messages of that
        `level`, and is to run as that `task`, if any. Raises like `Client.exchange`, and `follow`."""
        if self.client is None:
            raise Unreached("the session was closed")
        client = self.client
        if level in LOG_LEVELS and level != self._level and client.server.can("logging"):
            self._level = level
            with suppress(PeerError):
                await client.set_log_level(cast("LogLevel", level))

        async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            caller = Caller(call, reports)
            return settled(await client.exchange(method, params, caller, timeout=seconds_for(method)))

        return await through_task(ask, *request, task, call)

    # What the server says

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client of its call answers. Where there is none, or none that can be asked, roots wait for the
        next one: servers ask for them when a session begins. Raises RpcError for what nobody answers."""
        if asked.method != "roots/list":
            if self._call is None:
                raise MethodNotFound(f"no call is under way whose client could be asked: {asked.method[:100]}")
            return await self._call.answer(asked)
        while True:
            call = self._call
            if call is not None and call.asks:
                with suppress(CallOver):
                    return await call.answer(asked)
            seconds = None if call is None or call.asks else ROOTS_SECONDS
            with anyio.move_on_after(seconds) as patience:
                while self._call is call:
                    await self._moved.wait()
            if patience.cancelled_caught:
                raise MethodNotFound("the client that called can't be asked for its roots now")

    def heard(self, notice: Notified | Gap) -> None:
        """Tells its call, or the others what concerns none."""
        if isinstance(notice, Gap):
            return
        if self._call is not None:
            self._call.heard(notice)
        elif notice.method not in OF_CALLS:
            self._apart(notice)
