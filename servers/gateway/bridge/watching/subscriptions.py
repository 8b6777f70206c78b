"""Who hears of which resource: a client with a session of its own at the server what is told there, and all others
what the bridge watches for them.

`resources/subscribe` and `subscriptions/listen` are handled by the core. Here are its hooks, with a key for each
resource of a session, and one for each that is shared.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import anyio

from shared.client.client import Client
from shared.client.connection.subscription import Change, change_of
from shared.concurrency import Crew
from shared.errors import McpError, PeerError, ResourceNotFound
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Call
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.changes import Changes
from shared.server.dispatch.context import Context

from ..calls.own_sessions import OwnSession
from .resources import AT_ONCE, FAREWELL_SECONDS, Watching, covering, key_of


class _Own:
    """What one session has subscribed to, each with its key."""

    def __init__(self, session: OwnSession, number: int) -> None:
        self.session = session
        self.number = number
        self.keys: dict[str, str] = {}
        self.keeper: asyncio.Task[None] | None = None
        """Has the session opened again when it is lost."""


class Subscriptions:
    """The subscriptions of all clients of a bridge."""

    def __init__(self, watching: Watching, changes: Changes, tasks: Crew, seconds: float) -> None:
        """An answer of the server's is waited for `seconds`."""
        self._watching = watching
        self._changes = changes
        self._tasks = tasks
        self._seconds = seconds
        self._own: dict[OwnSession, _Own] = {}
        self._by_key: dict[str, tuple[_Own, str]] = {}
        self._numbers = count(1)
        self._refused: dict[Call, Collection[str]] = {}

    async def begin(self, context: Context[Any], uri: str, session: OwnSession | None) -> str:
        """Subscribes to `uri` in `session`, or where there is none for all who share it; the key of its changes.

        Raises ResourceNotFound where the server refuses a stateless client, and else PeerError, ConnectionError,
        TimeoutError, and RpcError while the server is not available.
        """
        if session is not None:
            client = await session.open()
            await client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)
            own = self._own.get(session)
            if own is None:
                own = self._own[session] = _Own(session, next(self._numbers))
                own.keeper = self._tasks.start(self._keep(own))
            key = own.keys[uri] = f"session {own.number} {uri}"
            self._by_key[key] = (own, uri)
            return key
        try:
            if uri in self._refused.get(context.call, ()) or not await self._watching.hold(uri):
                raise ResourceNotFound(uri)
        except PeerError as error:
            # A stream is told what it has not got by what it is acknowledged.
            if context.peer.lasts or error.code > 0:
                raise
            raise ResourceNotFound(uri) from error
        return key_of(uri)

    async def end(self, key: str) -> None:
        """Nobody subscribes any more to what has this key. Never raises."""
        if key not in self._by_key:
            await self._watching.release(key.removeprefix(key_of("")))
            return
        own, uri = self._by_key.pop(key)
        del own.keys[uri]
        if not own.keys:
            del self._own[own.session]
            if own.keeper is not None:
                own.keeper.cancel()
        client = own.session.client
        if client is not None and not own.session.has_left:
            with suppress(McpError, OSError):
                await client.request("resources/unsubscribe", {"uri": uri}, timeout=FAREWELL_SECONDS)

    @asynccontextmanager
    async def foreseen(self, context: Context[Any], uris: Collection[str]) -> AsyncIterator[None]:
        """As long as the block, which is to subscribe to `uris` one after the other: they are asked for together."""
        refused: set[str] = set()

        async def hold(uri: str) -> None:
            try:
                if not await self._watching.hold(uri):
                    refused.add(uri)
            except (McpError, OSError):
                # Whoever asks for it by itself learns why.
                return

        try:
            async with anyio.create_task_group() as tasks:
                for uri in uris:
                    tasks.start_soon(hold, uri)
            self._refused[context.call] = refused
            yield
        finally:
            self._refused.pop(context.call, None)
            with anyio.CancelScope(shield=True):
                for uri in uris:
                    await self._watching.release(uri)

    # What sessions of clients hear

    def updated(self, session: OwnSession, notice: Notified | Gap) -> None:
        """A resource has changed that `session` has subscribed to, or any of them may have."""
        own = self._own.get(session)
        if own is None:
            return
        change = Change("missed") if isinstance(notice, Gap) else change_of(notice)
        if change is None:
            return
        uri = change.uri
        if uri is None:
            self._missed(own)
            return
        # The server may spell it otherwise than its client: whatever it is, it was subscribed to.
        for whole in [*covering(uri, own.keys.__contains__)] or [*own.keys][:1]:
            self._changes.resource(own.keys[whole], None if whole == uri else uri)

    async def reopened(self, session: OwnSession, client: Client) -> None:
        """Subscribes anew in a session that was lost, by its new `client`, and says what may have changed."""
        own = self._own.get(session)
        if own is None:
            return
        places = anyio.Semaphore(AT_ONCE)

        async def again(uri: str) -> None:
            async with places:
                # What is refused now is told as a change: who reads it learns why.
                with suppress(McpError, OSError):
                    await client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)

        async with anyio.create_task_group() as tasks:
            for uri in tuple(own.keys):
                tasks.start_soon(again, uri)
        self._missed(own)

    async def _keep(self, own: _Own) -> None:
        """Has a session opened again that was lost, as long as it has subscriptions: no call may come to do so."""
        session = own.session
        while not session.has_left:
            if (client := session.client) is not None:
                await client.ended()
            else:
                with suppress(McpError):
                    await session.open()

    def _missed(self, own: _Own) -> None:
        for key in tuple(own.keys.values()):
            self._changes.resource(key)
