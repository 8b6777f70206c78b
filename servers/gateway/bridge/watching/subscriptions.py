"""Subscriptions of clients to resources. The subscription of a client with a dedicated session is made in that
session. For all other clients, the bridge itself subscribes, once for each resource.

`shared.server` handles `resources/subscribe` and `subscriptions/listen`, and calls the hooks here. They return a key
for each subscription, under which changes are reported: one for each resource of a dedicated session, and one for
each resource that clients share.
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

from ..calls.dedicated_sessions import DedicatedSession
from .resources import MAX_CONCURRENT_REQUESTS, UNSUBSCRIBE_SECONDS, ResourceWatcher, find_covering, key_of


class _SessionSubscriptions:
    """The subscriptions of one dedicated session: the key of each, by its URI."""

    def __init__(self, session: DedicatedSession, number: int) -> None:
        self.session = session
        self.number = number
        self.keys: dict[str, str] = {}
        self.reopener: asyncio.Task[None] | None = None
        """The task that reopens the session when it is lost."""


class Subscriptions:
    """The subscriptions of all clients of a bridge."""

    def __init__(self, watching: ResourceWatcher, changes: Changes, tasks: TaskSet, timeout: float) -> None:
        """`timeout` is that of one request to the server, in seconds."""
        self._watching = watching
        self._changes = changes
        self._tasks = tasks
        self._timeout = timeout
        self._by_session: dict[DedicatedSession, _SessionSubscriptions] = {}
        self._by_key: dict[str, tuple[_SessionSubscriptions, str]] = {}
        self._numbers = count(1)
        self._refused: dict[Call, Collection[str]] = {}

    async def begin(self, context: Context[Any], uri: str, session: DedicatedSession | None) -> str:
        """Subscribe to `uri` in the dedicated `session`, or, if that is None, in the bridge's own; return the key
        under which changes are reported.

        Raises ResourceNotFound if a stateless server refuses the resource. If the server sends an error, raises
        ResourceNotFound for a stateless client, and PeerError for other clients or an error with an HTTP status. Also
        raises ConnectionError, TimeoutError, and RpcError while the server is down.
        """
        if session is not None:
            client = await session.open()
            await client.request("resources/subscribe", {"uri": uri}, timeout=self._timeout)
            subscriptions = self._by_session.get(session)
            if subscriptions is None:
                subscriptions = self._by_session[session] = _SessionSubscriptions(session, next(self._numbers))
                subscriptions.reopener = self._tasks.start(self._keep_open(subscriptions))
            key = subscriptions.keys[uri] = f"session {subscriptions.number} {uri}"
            self._by_key[key] = (subscriptions, uri)
            return key
        try:
            if uri in self._refused.get(context.call, ()) or not await self._watching.subscribe(uri):
                raise ResourceNotFound(uri)
        except PeerError as error:
            # The acknowledgement of a listen stream shows which resources were refused; other errors end it.
            if context.peer.has_handshake or error.code > 0:
                raise
            raise ResourceNotFound(uri) from error
        return key_of(uri)

    async def end(self, key: str) -> None:
        """End the subscription with this key, which no client uses anymore. Never raises."""
        if key not in self._by_key:
            await self._watching.unsubscribe_if_unused(key.removeprefix(key_of("")))
            return
        subscriptions, uri = self._by_key.pop(key)
        del subscriptions.keys[uri]
        if not subscriptions.keys:
            del self._by_session[subscriptions.session]
            if subscriptions.reopener is not None:
                subscriptions.reopener.cancel()
        client = subscriptions.session.client
        if client is not None and not subscriptions.session.client_has_left:
            with suppress(McpError, OSError):
                await client.request("resources/unsubscribe", {"uri": uri}, timeout=UNSUBSCRIBE_SECONDS)

    @asynccontextmanager
    async def subscribe_ahead(self, context: Context[Any], uris: Collection[str]) -> AsyncIterator[None]:
        """Subscribe to all `uris` concurrently, so that the block, which subscribes to them one after another, does
        not wait for the server each time."""
        refused: set[str] = set()

        async def subscribe(uri: str) -> None:
            try:
                if not await self._watching.subscribe(uri):
                    refused.add(uri)
            except (McpError, OSError):
                # The block subscribes to it again, and gets the error.
                return

        try:
            async with anyio.create_task_group() as tasks:
                for uri in uris:
                    tasks.start_soon(subscribe, uri)
            self._refused[context.call] = refused
            yield
        finally:
            self._refused.pop(context.call, None)
            with anyio.CancelScope(shield=True):
                for uri in uris:
                    await self._watching.unsubscribe_if_unused(uri)

    # Events of clients' sessions

    def on_update(self, session: DedicatedSession, message: Notified | Gap) -> None:
        """Report that a resource to which `session` has subscribed has changed. After a `Gap`, in which messages were
        lost, report all these resources."""
        subscriptions = self._by_session.get(session)
        if subscriptions is None:
            return
        change = Change("missed") if isinstance(message, Gap) else change_of(message)
        if change is None:
            return
        uri = change.uri
        if uri is None:
            self._report_all(subscriptions)
            return
        # If the server spells the URI differently, it is unknown which resource has changed: report any of them.
        for watched_uri in [*find_covering(uri, subscriptions.keys.__contains__)] or [*subscriptions.keys][:1]:
            self._changes.resource(subscriptions.keys[watched_uri], None if watched_uri == uri else uri)

    async def on_reopen(self, session: DedicatedSession, client: Client) -> None:
        """Renew the subscriptions of `session` after it was reopened with `client`, and report that each resource may
        have changed."""
        subscriptions = self._by_session.get(session)
        if subscriptions is None:
            return
        slots = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)

        async def subscribe(uri: str) -> None:
            async with slots:
                # An error is ignored: the resource is reported as changed below, and a client that reads it gets the
                # error.
                with suppress(McpError, OSError):
                    await client.request("resources/subscribe", {"uri": uri}, timeout=self._timeout)

        async with anyio.create_task_group() as tasks:
            for uri in tuple(subscriptions.keys):
                tasks.start_soon(subscribe, uri)
        self._report_all(subscriptions)

    async def _keep_open(self, subscriptions: _SessionSubscriptions) -> None:
        """Reopen the session whenever it is lost while it has subscriptions, since a call that would reopen it may
        never come."""
        session = subscriptions.session
        while not session.client_has_left:
            if (client := session.client) is not None:
                await client.ended()
            else:
                with suppress(McpError):
                    await session.open()

    def _report_all(self, subscriptions: _SessionSubscriptions) -> None:
        for key in tuple(subscriptions.keys.values()):
            self._changes.resource(key)
