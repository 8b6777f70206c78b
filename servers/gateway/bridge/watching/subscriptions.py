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
from .resources import MAX_CONCURRENT_REQUESTS, UNSUBSCRIBE_SECONDS, Watching, find_covering, key_of


class _SessionSubscriptions:
    """The subscriptions of one session, each with its key."""

    def __init__(self, session: OwnSession, number: int) -> None:
        self.session = session
        self.number = number
        self.keys: dict[str, str] = {}
        self.reopener: asyncio.Task[None] | None = None
        """The task that opens the session again when it is lost."""


class Subscriptions:
    """The subscriptions of all clients of a bridge."""

    def __init__(self, watching: Watching, changes: Changes, tasks: TaskSet, seconds: float) -> None:
        """The time limit of a request to the server is `seconds`."""
        self._watching = watching
        self._changes = changes
        self._tasks = tasks
        self._seconds = seconds
        self._by_session: dict[OwnSession, _SessionSubscriptions] = {}
        self._by_key: dict[str, tuple[_SessionSubscriptions, str]] = {}
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
            subscriptions = self._by_session.get(session)
            if subscriptions is None:
                subscriptions = self._by_session[session] = _SessionSubscriptions(session, next(self._numbers))
                subscriptions.reopener = self._tasks.start(self._keep_open(subscriptions))
            key = subscriptions.keys[uri] = f"session {subscriptions.number} {uri}"
            self._by_key[key] = (subscriptions, uri)
            return key
        try:
            if uri in self._refused.get(context.call, ()) or not await self._watching.hold(uri):
                raise ResourceNotFound(uri)
        except PeerError as error:
            # On a stream the acknowledgement shows which resources were refused.
            if context.peer.has_handshake or error.code > 0:
                raise
            raise ResourceNotFound(uri) from error
        return key_of(uri)

    async def end(self, key: str) -> None:
        """End the subscription with this key, which no client has anymore. Never raises."""
        if key not in self._by_key:
            await self._watching.release(key.removeprefix(key_of("")))
            return
        subscriptions, uri = self._by_key.pop(key)
        del subscriptions.keys[uri]
        if not subscriptions.keys:
            del self._by_session[subscriptions.session]
            if subscriptions.reopener is not None:
                subscriptions.reopener.cancel()
        client = subscriptions.session.client
        if client is not None and not subscriptions.session.has_left:
            with suppress(McpError, OSError):
                await client.request("resources/unsubscribe", {"uri": uri}, timeout=UNSUBSCRIBE_SECONDS)

    @asynccontextmanager
    async def subscribe_ahead(self, context: Context[Any], uris: Collection[str]) -> AsyncIterator[None]:
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

    def on_update(self, session: OwnSession, notice: Notified | Gap) -> None:
        """Report that a resource to which `session` has subscribed has changed, or, after a gap, may have changed."""
        subscriptions = self._by_session.get(session)
        if subscriptions is None:
            return
        change = Change("missed") if isinstance(notice, Gap) else change_of(notice)
        if change is None:
            return
        uri = change.uri
        if uri is None:
            self._report_all(subscriptions)
            return
        # The server may spell it differently from its client; either way, it was subscribed to.
        for whole in [*find_covering(uri, subscriptions.keys.__contains__)] or [*subscriptions.keys][:1]:
            self._changes.resource(subscriptions.keys[whole], None if whole == uri else uri)

    async def on_reopen(self, session: OwnSession, client: Client) -> None:
        """Subscribe again in a session that was lost, with its new `client`, and report that its resources may have
        changed."""
        subscriptions = self._by_session.get(session)
        if subscriptions is None:
            return
        slots = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)

        async def subscribe(uri: str) -> None:
            async with slots:
                # A refused resource is reported as changed: a client that reads it gets the reason.
                with suppress(McpError, OSError):
                    await client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)

        async with anyio.create_task_group() as tasks:
            for uri in tuple(subscriptions.keys):
                tasks.start_soon(subscribe, uri)
        self._report_all(subscriptions)

    async def _keep_open(self, subscriptions: _SessionSubscriptions) -> None:
        """Reopen the session when it is lost, while it has subscriptions, since there may be no call that would do
        so."""
        session = subscriptions.session
        while not session.has_left:
            if (client := session.client) is not None:
                await client.ended()
            else:
                with suppress(McpError):
                    await session.open()

    def _report_all(self, subscriptions: _SessionSubscriptions) -> None:
        for key in tuple(subscriptions.keys.values()):
            self._changes.resource(key)
