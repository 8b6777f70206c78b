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
from .listen_streams import Listening

MAX_CONCURRENT_REQUESTS = 32
"""Maximum number of concurrent requests to subscribe."""
MAX_LEVELS = 256
"""Maximum number of slashes considered in a URI, since a malicious one may have thousands."""
HEARING_SECONDS = 2.0
"""Seconds that clients wait at the start until the bridge receives changes."""
FAREWELL_SECONDS = 5.0
"""The time limit for ending a subscription at the server; the caller waits for it."""


class Subscriber(Protocol):
    """Subscriptions to resources on one connection."""

    client: Client

    async def add(self, uri: str) -> bool:
        """Request notifications about `uri` from the server; return False if it refuses. Raises PeerError,
        ConnectionError and TimeoutError."""

    async def remove(self, uri: str) -> None:
        """End the notifications about `uri`; errors are ignored."""


class _Subscribing:
    """`Subscriber` at a server with sessions: one request for each resource."""

    def __init__(self, client: Client, seconds: float) -> None:
        self.client = client
        self._seconds = seconds
        self._places = anyio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def add(self, uri: str) -> bool:
        async with self._places:
            await self.client.request("resources/subscribe", {"uri": uri}, timeout=self._seconds)
        return True

    async def remove(self, uri: str) -> None:
        with suppress(McpError, OSError):
            await self.client.request("resources/unsubscribe", {"uri": uri}, timeout=FAREWELL_SECONDS)


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
        self._held: set[str] = set()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks that keep the requests about one URI in order."""

    async def begin(self) -> None:
        """Start serving clients."""
        # A change before the list is watched would be lost.
        with anyio.move_on_after(HEARING_SECONDS):
            await self.watches_lists.wait()
        self._is_served = True

    async def hold(self, uri: str) -> bool:
        """Watch `uri`, if it is not watched yet; return False if the server refuses. Raises PeerError,
        ConnectionError and TimeoutError, and RpcError while it is down."""
        async with self._turn(uri):
            if uri not in self._held:
                # Here, the caller can't be cancelled.
                with anyio.fail_after(self._seconds):
                    is_accepted = await self._current().add(uri)
                if not is_accepted:
                    return False
                self._held.add(uri)
        return True

    async def release(self, uri: str) -> None:
        """Stop watching `uri` if `changes` shows that no client needs it anymore."""
        async with self._turn(uri):
            if uri in self._held and not self._changes.has_subscribers(key_of(uri)):
                self._held.discard(uri)
                if self.subscriber is not None and self._base.up:
                    await self.subscriber.remove(uri)

    def turned(self) -> None:
        """Called when the connection came up or went down: the lists may have changed."""
        if self._base.up:
            self._tasks.start(self._again())
        if self._base.up and self._base.stateless:
            self._tasks.start(self._watch_lists(self._base.client))
        else:
            self._watching_lists()

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Handle a message from the server that belongs to no request. The streams of a stateless server handle their
        own."""
        if self._base.stateless:
            return
        change = Change("missed") if isinstance(notice, Gap) else change_of(notice)
        if change is not None:
            self._report(change)

    def _turn(self, uri: str) -> asyncio.Lock:
        lock = self._turns.get(uri)
        if lock is None:
            lock = self._turns[uri] = asyncio.Lock()
        return lock

    def _current(self) -> Subscriber:
        client = self._base.client
        if self.subscriber is None or self.subscriber.client is not client:
            if self._base.stateless:
                self.subscriber = Listening(client, self._tasks, self._report)
            else:
                self.subscriber = _Subscribing(client, self._seconds)
        return self.subscriber

    async def _again(self) -> None:
        """Subscribe to all resources again, and report that each may have changed in the meantime."""

        async def subscribe(uri: str) -> None:
            async with self._turn(uri):
                if uri in self._held:
                    # A resource that is refused now is requested again on the next connection; a client that reads it
                    # gets the reason.
                    with suppress(McpError, OSError):
                        await self._current().add(uri)
            self._changes.resource(key_of(uri))

        async with anyio.create_task_group() as tasks:
            for uri in tuple(self._held):
                tasks.start_soon(subscribe, uri)

    async def _watch_lists(self, client: Client) -> None:
        # A server that refuses has no changes to report.
        with suppress(PeerError, OSError):
            async with client.changes() as changes:
                # Changes before this were not reported to anyone.
                self._watching_lists()
                async for change in changes:
                    self._report(change)
            return
        self._watching_lists()

    def _watching_lists(self) -> None:
        self.watches_lists.set()
        if self._is_served:
            self._report_lists()

    def _report_lists(self) -> None:
        for report in (self._changes.tools, self._changes.prompts, self._changes.resources):
            report()

    def _report(self, change: Change) -> None:
        match change.kind:
            case "resource" if change.uri is not None:
                for uri in covering(change.uri, self._held.__contains__):
                    self._changes.resource(key_of(uri), None if uri == change.uri else change.uri)
            case "missed":
                for uri in tuple(self._held):
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


def covering(uri: str, is_held: Callable[[str], bool]) -> Iterator[str]:
    """Yield the watched URIs that `uri` equals or is a part of (2025-11-25, Resources, Subscriptions), up to
    `MAX_LEVELS` levels."""
    if is_held(uri):
        yield uri
    at = uri.find("/")
    for _ in range(MAX_LEVELS):
        if at < 0:
            return
        for whole in (uri[:at], uri[: at + 1]):
            if whole != uri and is_held(whole):
                yield whole
        at = uri.find("/", at + 1)
