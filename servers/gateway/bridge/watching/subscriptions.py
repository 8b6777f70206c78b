"""Subscriptions of clients to resources: a client with its own session on the server gets the notifications of that
session, and all others get those of the resources that the bridge watches.

The core handles `resources/subscribe` and `subscriptions/listen`. Here are its hooks, with a key for each resource of
a session, and one for each shared resource.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import anyio

from shared.client.client import Client
from shared.client.connection.subscription import Change, change_of
from shared.concurrency import TaskSet
from shared.errors import McpError, PeerError, ResourceNotFound
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Call
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.changes import Changes
from shared.server.dispatch.context import Context

from ..calls.own_sessions import OwnSession
from .resources import FAREWELL_SECONDS, MAX_CONCURRENT_REQUESTS, Watching, covering, key_of


class _Own:
    """The subscriptions of one session, each with its key."""

    def __init__(self, session: OwnSession, number: int) -> None:
        self.session = session
        self.number = number
        self.keys: dict[str, str] = {}
        self.keeper: asyncio.Task[None] | None = None
        """The task that opens the session again when it is lost."""


class Subscriptions:
    """The subscriptions of all clients of a bridge."""

    def __init__(self, watching: Watching, changes: Changes, tasks: TaskSet, seconds: float) -> None:
        """The time limit of a request to the server is `seconds`."""
        self._watching = watching
        self._changes = changes
        self._tasks = tasks
        self._seconds = seconds
        self._own: dict[OwnSession, _Own] = {}
        self._by_key: dict[str, tuple[_Own, str]] = {}
        self._numbers = count(1)
        self._refused: dict[Call, Collection[str]] = {}

    async def begin(self, context: Context[Any], uri: str, session: OwnSession | None) -> str:
        """Subscribe to `uri` in `session`, or for all clients that share one if it is None; return the key of its
        changes.

        Raises ResourceNotFound if the server refuses for a stateless client, else PeerError, ConnectionError,
        TimeoutError, and RpcError while the server is not available.
        """
        if session is not None:
            client = await session.open()
            await client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)
            own = self._own.get(session)
            if own is None:
                own = self._own[session] = _Own(session, next(self._numbers))
                own.keeper = self._tasks.start(self._keep_open(own))
            key = own.keys[uri] = f"session {own.number} {uri}"
            self._by_key[key] = (own, uri)
            return key
        try:
            if uri in self._refused.get(context.call, ()) or not await self._watching.hold(uri):
                raise ResourceNotFound(uri)
        except PeerError as error:
            # On a stream the acknowledgement shows which resources were refused.
            if context.peer.lasts or error.code > 0:
                raise
            raise ResourceNotFound(uri) from error
        return key_of(uri)

    async def end(self, key: str) -> None:
        """End the subscription with this key, which no client has anymore. Never raises."""
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
    async def subscribed_ahead(self, context: Context[Any], uris: Collection[str]) -> AsyncIterator[None]:
        """Subscribe to all `uris` at the same time, for a block that subscribes to them one after another."""
        refused: set[str] = set()

        async def hold(uri: str) -> None:
            try:
                if not await self._watching.hold(uri):
                    refused.add(uri)
            except (McpError, OSError):
                # A later request for this resource gets the reason.
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

    # Events of clients' sessions

    def updated(self, session: OwnSession, notice: Notified | Gap) -> None:
        """Report that a resource to which `session` has subscribed has changed, or, after a gap, may have changed."""
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
        # The server may spell it differently from its client; either way, it was subscribed to.
        for whole in [*covering(uri, own.keys.__contains__)] or [*own.keys][:1]:
            self._changes.resource(own.keys[whole], None if whole == uri else uri)

    async def reopened(self, session: OwnSession, client: Client) -> None:
        """Subscribe again in a session that was lost, with its new `client`, and report that its resources may have
        changed."""
        own = self._own.get(session)
        if own is None:
            return
        places = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)

        async def again(uri: str) -> None:
            async with places:
                # A refused resource is reported as changed: a client that reads it gets the reason.
                with suppress(McpError, OSError):
                    await client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)

        async with anyio.create_task_group() as tasks:
            for uri in tuple(own.keys):
                tasks.start_soon(again, uri)
        self._missed(own)

    async def _keep_open(self, own: _Own) -> None:
        """Reopen the session when it is lost, while it has subscriptions, since there may be no call that would do
        so."""
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
