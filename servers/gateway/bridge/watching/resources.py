"""Resources that the bridge itself watches at the server for its clients: each only once, for any number of clients.

hold ──▶ (the first for a URI) ──▶ subscribe at the server ──▶ held ──▶ (no client is left) ──▶ unsubscribe
                                                                └──▶ subscribe again, on a new connection
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

from ..base import Base
from .listen_streams import ListenStreams

MAX_CONCURRENT_REQUESTS = 32
"""Maximum number of concurrent requests to subscribe."""
MAX_LEVELS = 256
"""Maximum number of slashes considered in a URI, since a malicious one may have thousands."""
LISTS_SECONDS = 2.0
"""Seconds that clients wait at the start until the bridge receives changes."""
UNSUBSCRIBE_SECONDS = 5.0
"""The time limit for ending a subscription at the server; the caller waits for it."""


class Subscriber(Protocol):
    """Subscriptions to resources on one connection."""

    client: Client

    async def add(self, uri: str) -> bool:
        """Request notifications about `uri` from the server; return False if it refuses. Raises PeerError,
        ConnectionError and TimeoutError."""

    async def remove(self, uri: str) -> None:
        """End the notifications about `uri`; errors are ignored."""


class _SessionSubscriber:
    """`Subscriber` at a server with sessions: one request for each resource."""

    def __init__(self, client: Client, seconds: float) -> None:
        self.client = client
        self._seconds = seconds
        self._slots = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def add(self, uri: str) -> bool:
        async with self._slots:
            await self.client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)
        return True

    async def remove(self, uri: str) -> None:
        with suppress(McpError, OSError):
            await self.client.request("resources/unsubscribe", {"uri": uri}, timeout=UNSUBSCRIBE_SECONDS)


class Watching:
    """The resources that are watched over the connection of the bridge. Their changes, and changes to the lists, are
    forwarded to all interested clients."""

    def __init__(self, base: Base, changes: Changes, tasks: TaskSet, seconds: float) -> None:
        """The time limit of a request is `seconds`."""
        self._base = base
        self._changes = changes
        self._tasks = tasks
        self._seconds = seconds
        self.subscriber: Subscriber | None = None
        """The subscriptions on the newest connection, once there are any."""
        self.watches_lists = anyio.Event()
        """Set when changes to the lists are received, or never will be."""
        self._is_served = False
        self._watched: set[str] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks that keep the requests about one URI in order."""

    async def begin(self) -> None:
        """Start serving clients."""
        # A change before the list is watched would be lost.
        with anyio.move_on_after(LISTS_SECONDS):
            await self.watches_lists.wait()
        self._is_served = True

    async def hold(self, uri: str) -> bool:
        """Watch `uri`, if it is not watched yet; return False if the server refuses. Raises PeerError,
        ConnectionError and TimeoutError, and RpcError while it is down."""
        async with self._lock_of(uri):
            if uri not in self._watched:
                # Here, the caller can't be cancelled.
                with anyio.fail_after(self._seconds):
                    is_accepted = await self._current().add(uri)
                if not is_accepted:
                    return False
                self._watched.add(uri)
        return True

    async def release(self, uri: str) -> None:
        """Stop watching `uri` if `changes` shows that no client needs it anymore."""
        async with self._lock_of(uri):
            if uri in self._watched and not self._changes.has_subscribers(key_of(uri)):
                self._watched.discard(uri)
                if self.subscriber is not None and self._base.up:
                    await self.subscriber.remove(uri)

    def on_connection_change(self) -> None:
        """Called when the connection came up or went down: the lists may have changed."""
        if self._base.up:
            self._tasks.start(self._resubscribe())
        if self._base.up and self._base.stateless:
            self._tasks.start(self._watch_lists(self._base.client))
        else:
            self._on_lists_watched()

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Handle a message from the server that belongs to no request. The streams of a stateless server handle their
        own."""
        if self._base.stateless:
            return
        change = Change("missed") if isinstance(notice, Gap) else change_of(notice)
        if change is not None:
            self._report(change)

    def _lock_of(self, uri: str) -> asyncio.Lock:
        lock = self._locks.get(uri)
        if lock is None:
            lock = self._locks[uri] = asyncio.Lock()
        return lock

    def _current(self) -> Subscriber:
        client = self._base.client
        if self.subscriber is None or self.subscriber.client is not client:
            if self._base.stateless:
                self.subscriber = ListenStreams(client, self._tasks, self._report)
            else:
                self.subscriber = _SessionSubscriber(client, self._seconds)
        return self.subscriber

    async def _resubscribe(self) -> None:
        """Subscribe to all resources again, and report that each may have changed in the meantime."""

        async def subscribe(uri: str) -> None:
            async with self._lock_of(uri):
                if uri in self._watched:
                    # A resource that is refused now is requested again on the next connection; a client that reads it
                    # gets the reason.
                    with suppress(McpError, OSError):
                        await self._current().add(uri)
            self._changes.resource(key_of(uri))

        async with anyio.create_task_group() as tasks:
            for uri in tuple(self._watched):
                tasks.start_soon(subscribe, uri)

    async def _watch_lists(self, client: Client) -> None:
        # A server that refuses has no changes to report.
        with suppress(PeerError, OSError):
            async with client.changes() as changes:
                # Changes before this were not reported to anyone.
                self._on_lists_watched()
                async for change in changes:
                    self._report(change)
            return
        self._on_lists_watched()

    def _on_lists_watched(self) -> None:
        self.watches_lists.set()
        if self._is_served:
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
    """Return the key for changes to a resource that all clients share."""
    return f"all {uri}"


def find_covering(uri: str, is_watched: Callable[[str], bool]) -> Iterator[str]:
    """Yield the watched URIs that `uri` equals or is a part of (2025-11-25, Resources, Subscriptions), up to
    `MAX_LEVELS` levels."""
    if is_watched(uri):
        yield uri
    end = uri.find("/")
    for _ in range(MAX_LEVELS):
        if end < 0:
            return
        for whole in (uri[:end], uri[: end + 1]):
            if whole != uri and is_watched(whole):
                yield whole
        end = uri.find("/", end + 1)
