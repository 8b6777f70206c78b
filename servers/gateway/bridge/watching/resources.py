"""Subscriptions of the bridge itself at the server: one for each resource, for any number of clients.

the first client subscribes ──▶ subscribe at the server ──▶ watched ──▶ the last client leaves ──▶ unsubscribe
                                                              └──▶ subscribe again on each new connection
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol
from weakref import WeakValueDictionary

import anyio

from shared.client.client import Client
from shared.client.connection.subscription import Change, change_of
from shared.concurrency import TaskSet
from shared.errors import McpError, PeerError
from shared.protocol.session.client_events import Notified
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.changes import Changes

from ..connection import BridgeConnection
from .listen_streams import ListenStreams

MAX_CONCURRENT_REQUESTS = 32
"""Maximum number of concurrent requests to subscribe."""
MAX_LEVELS = 256
"""Maximum number of slashes that are considered in a URI, since a malicious URI may have thousands."""
LISTS_SECONDS = 2.0
"""Seconds that clients wait at the start until the server reports changed lists to the bridge."""
UNSUBSCRIBE_SECONDS = 5.0
"""The time limit, in seconds, of a request to end a subscription at the server."""


class Subscriber(Protocol):
    """Makes subscriptions to resources over one connection."""

    client: Client

    async def add(self, uri: str) -> bool:
        """Request notifications about `uri` from the server; return False if the server refuses. Raises PeerError,
        ConnectionError and TimeoutError."""

    async def remove(self, uri: str) -> None:
        """End the notifications about `uri`; errors are ignored."""


class _SessionSubscriber:
    """`Subscriber` at a server with sessions: one request for each resource."""

    def __init__(self, client: Client, timeout: float) -> None:
        self.client = client
        self._timeout = timeout
        self._slots = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def add(self, uri: str) -> bool:
        async with self._slots:
            await self.client.request("resources/subscribe", {"uri": uri}, timeout=self._timeout)
        return True

    async def remove(self, uri: str) -> None:
        with suppress(McpError, OSError):
            await self.client.request("resources/unsubscribe", {"uri": uri}, timeout=UNSUBSCRIBE_SECONDS)


class ResourceWatcher:
    """Watches resources and lists over the bridge's own connection, and reports changes to `changes`, which notifies
    all interested clients."""

    def __init__(self, connection: BridgeConnection, changes: Changes, tasks: TaskSet, timeout: float) -> None:
        """`timeout` is that of one request to the server, in seconds."""
        self._connection = connection
        self._changes = changes
        self._tasks = tasks
        self._timeout = timeout
        self.subscriber: Subscriber | None = None
        """Makes the subscriptions over the newest connection; None before the first subscription."""
        self.lists_watched = anyio.Event()
        """Set when the server reports changes of its lists, or when it is known that it will not."""
        self._has_begun = False
        self._watched: set[str] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks that keep the requests about one URI in order."""

    async def begin(self) -> None:
        """Called before clients are served: wait until changes of the lists are reported."""
        # A change that came before the lists are watched would be lost.
        with anyio.move_on_after(LISTS_SECONDS):
            await self.lists_watched.wait()
        self._has_begun = True

    async def subscribe(self, uri: str) -> bool:
        """Subscribe to `uri` at the server, unless the bridge has already done so; return False if the server
        refuses. Raises PeerError, ConnectionError and TimeoutError, and RpcError while the server is down."""
        async with self._lock_of(uri):
            if uri not in self._watched:
                # `ListenStreams.add` has no timeout of its own.
                with anyio.fail_after(self._timeout):
                    is_accepted = await self._current_subscriber().add(uri)
                if not is_accepted:
                    return False
                self._watched.add(uri)
        return True

    async def unsubscribe_if_unused(self, uri: str) -> None:
        """Unsubscribe from `uri` if no client is subscribed to it any more."""
        async with self._lock_of(uri):
            if uri in self._watched and not self._changes.has_subscribers(key_of(uri)):
                self._watched.discard(uri)
                if self.subscriber is not None and self._connection.up:
                    await self.subscriber.remove(uri)

    def on_connection_change(self) -> None:
        """Called when the connection has come up or gone down, after which the lists may have changed."""
        if self._connection.up:
            self._tasks.start(self._resubscribe())
        if self._connection.up and self._connection.stateless:
            self._tasks.start(self._watch_lists(self._connection.client))
        else:
            self._on_lists_watched()

    def on_server_message(self, message: Notified | Gap) -> None:
        """Handle a message from a server with sessions that belongs to no request. A stateless server reports changes
        on its listen streams instead."""
        if self._connection.stateless:
            return
        change = Change("missed") if isinstance(message, Gap) else change_of(message)
        if change is not None:
            self._report(change)

    def _lock_of(self, uri: str) -> asyncio.Lock:
        lock = self._locks.get(uri)
        if lock is None:
            lock = self._locks[uri] = asyncio.Lock()
        return lock

    def _current_subscriber(self) -> Subscriber:
        client = self._connection.client
        if self.subscriber is None or self.subscriber.client is not client:
            if self._connection.stateless:
                self.subscriber = ListenStreams(client, self._tasks, self._report)
            else:
                self.subscriber = _SessionSubscriber(client, self._timeout)
        return self.subscriber

    async def _resubscribe(self) -> None:
        """Subscribe to all resources again, and report that each may have changed in the meantime."""

        async def subscribe(uri: str) -> None:
            async with self._lock_of(uri):
                if uri in self._watched:
                    # An error is ignored: the next connection subscribes again, and a client that reads the resource
                    # gets the error.
                    with suppress(McpError, OSError):
                        await self._current_subscriber().add(uri)
            self._changes.resource(key_of(uri))

        async with anyio.create_task_group() as tasks:
            for uri in tuple(self._watched):
                tasks.start_soon(subscribe, uri)

    async def _watch_lists(self, client: Client) -> None:
        # A server that refuses the stream does not report changes.
        with suppress(PeerError, OSError):
            async with client.changes() as changes:
                # The server did not report changes before this, so this call reports all lists as changed.
                self._on_lists_watched()
                async for change in changes:
                    self._report(change)
            return
        self._on_lists_watched()

    def _on_lists_watched(self) -> None:
        self.lists_watched.set()
        if self._has_begun:
            self._report_lists()

    def _report_lists(self) -> None:
        for report in (self._changes.tools, self._changes.prompts, self._changes.resources):
            report()

    def _report(self, change: Change) -> None:
        match change.kind:
            case "resource" if change.uri is not None:
                for uri in find_covering(change.uri, self._watched.__contains__):
                    self._changes.resource(key_of(uri), None if uri == change.uri else change.uri)
            case "missed":
                for uri in tuple(self._watched):
                    self._changes.resource(key_of(uri))
                self._report_lists()
            case "tools":
                self._changes.tools()
            case "prompts":
                self._changes.prompts()
            case "resources":
                self._changes.resources()


def key_of(uri: str) -> str:
    """Return the key under which changes of the resource at `uri` are reported to the clients that share the bridge's
    subscription."""
    return f"all {uri}"


def find_covering(uri: str, is_watched: Callable[[str], bool]) -> Iterator[str]:
    """Yield the watched URIs that are `uri` or a directory of it: a server may report a change of a sub-resource
    (2025-11-25, Resources, Subscriptions). Only the first `MAX_LEVELS` directories are considered."""
    if is_watched(uri):
        yield uri
    end = uri.find("/")
    for _ in range(MAX_LEVELS):
        if end < 0:
            return
        for watched_uri in (uri[:end], uri[: end + 1]):
            if watched_uri != uri and is_watched(watched_uri):
                yield watched_uri
        end = uri.find("/", end + 1)
