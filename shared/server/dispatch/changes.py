"""The changes of a run's lists and resources: they are published here, and passed on to the connections.

A connection reports changes in quick succession once: a change that still waits to be sent is not added again. So a
peer that reads slowly does not delay others, and the number of changes that wait for it does not exceed the number of
its subscriptions.

A server watches resources while clients subscribe to them. `on_subscribe` is called for each subscription, and
returns the key of the resource, with which its changes are published; `on_unsubscribe` is called when the last
subscription to a key ends. `on_wanted` is called once, when a client first lists resources or listens to changes of
that list; until then, no client needs to know its changes.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Protocol

from anyio import CancelScope, Lock
from anyio.lowlevel import checkpoint_if_cancelled

from ...errors import InvalidParams, ResourceNotFound
from ...protocol.identity import LogMessage
from ...protocol.session.events import Change
from ...protocol.session.subscriptions import LISTS

MAX_SUBSCRIPTIONS = 10_000
"""Maximum number of subscriptions of all clients together."""

Share = Callable[[Change], None]
OnSubscribe = Callable[[Any, str], Awaitable[str]]
OnWanted = Callable[[], Awaitable[None]]
OnUnsubscribe = Callable[[str], Awaitable[None]]
OnRemoteChange = Callable[[Change], Iterable[str]]

log = logging.getLogger("shared.server.dispatch.changes")


class Listener(Protocol):
    """A receiver of changes, such as a connection. Its methods neither wait nor raise."""

    def on_change(self, change: Change) -> None:
        """Receive a change."""

    def announce(self, message: LogMessage) -> None:
        """Receive a log message that belongs to no call."""


class Changes:
    """The changes of one run."""

    def __init__(self) -> None:
        self.on_subscribe: OnSubscribe | None = None
        self.on_unsubscribe: OnUnsubscribe | None = None
        self.on_wanted: OnWanted | None = None
        self.share: Share | None = None
        """A function that publishes a change to the other replicas; None if there are none."""
        self.on_remote_change: OnRemoteChange | None = None
        """A function that is called with each change of a resource that another replica has published. It returns the
        keys whose subscribers to notify here; without a function, these are the subscribers of the changed key. For a
        change called "written" (see `wrote`), it returns all keys that are concerned. A server that detects changes
        itself may instead look for changes, and return no keys. The function neither waits nor raises."""
        self._is_wanted = False
        self._wanting = Lock()
        self._has_warned = False
        self._listeners: dict[Listener, None] = {}
        self._subscribers: Counter[str] = Counter()
        self._by_client: Counter[str] = Counter()
        self._total = 0

    def tools(self) -> None:
        """Publish a change to the list of tools."""
        self._publish(Change("tools"))

    def prompts(self) -> None:
        """Publish a change to the list of prompts."""
        self._publish(Change("prompts"))

    def resources(self) -> None:
        """Publish a change to the list of resources."""
        self._publish(Change("resources"))

    def resource(self, key: str, part: str | None = None) -> None:
        """Publish a change to the resource with that key or, if given, to its part with the URI `part`. Reads must
        return the new content from now on."""
        if self.on_subscribe is None and not self._has_warned:
            self._has_warned = True
            log.warning("no one can be notified that %s changed: the server has no `on_subscribe`", key)
        # Without subscribers here, clients of other replicas may have subscribed.
        if key in self._subscribers or self.share is not None:
            self._publish(Change("resource", key, part))

    def wrote(self, key: str) -> None:
        """Notify other replicas that this server has written the resource with that key, because they may not detect
        changes on a network volume themselves. Subscribers here are not notified by this, but when the server detects
        the change, as any other."""
        self._notify_replicas(Change("written", key))

    def announce(self, message: LogMessage) -> None:
        """Pass a log message that belongs to no call on to all listeners."""
        for listener in tuple(self._listeners):
            listener.announce(message)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners."""
        return tuple(self._listeners)

    def join(self, listener: Listener) -> None:
        """Notify `listener` of changes from now on."""
        self._listeners[listener] = None

    def leave(self, listener: Listener) -> None:
        """Stop notifying `listener`."""
        self._listeners.pop(listener, None)

    async def call_on_wanted(self) -> None:
        """Call `on_wanted`, unless it has succeeded before. Raises its exceptions."""
        if self._is_wanted or self.on_wanted is None:
            return
        # Further callers wait for the first one, since a change before it has ended would be missed. If that fails or
        # is cancelled, the next one calls it again.
        async with self._wanting:
            if not self._is_wanted:
                await self.on_wanted()
                self._is_wanted = True

    async def subscribe(self, context: Any, uri: str, client: str = "") -> str:
        """Begin a subscription of `client` to `uri`, and return the key of the resource. `context` is the context of
        the call that subscribes.

        Raises ResourceNotFound if nobody can subscribe to the URI, and InvalidParams for too many subscriptions.
        """
        if self.on_subscribe is None:
            raise ResourceNotFound(uri)
        # If the client has disconnected, the call was cancelled, and must not begin further subscriptions.
        await checkpoint_if_cancelled()
        # A client may have at most as many subscriptions as remain for others: half of all if there is one such
        # client, a third each if there are two, and so on. If a server can have only one client, its name is empty,
        # and it may have all.
        remaining = MAX_SUBSCRIPTIONS - self._total
        if remaining <= 0 or (client and self._by_client.get(client, 0) >= remaining):
            raise InvalidParams(
                f"the server reserves its last {remaining:,} subscriptions for other clients; end some first"
            )
        self._by_client[client] += 1
        self._total += 1
        with ExitStack() as undo:
            undo.callback(self._uncount, client)
            with CancelScope(shield=True):
                key = await self.on_subscribe(context, uri)
            undo.pop_all()
        self._subscribers[key] += 1
        return key

    async def unsubscribe(self, keys: Iterable[str], client: str = "") -> None:
        """End one subscription of `client` to each of `keys`, even if the caller is cancelled or `on_unsubscribe`
        raises."""
        # With the stack, all keys are handled even if one of them raises.
        async with AsyncExitStack() as stack:
            for key in reversed(tuple(keys)):
                stack.push_async_callback(self._unsubscribe, key, client)

    def _uncount(self, client: str) -> None:
        self._total -= 1
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]

    async def _unsubscribe(self, key: str, client: str) -> None:
        self._uncount(client)
        self._subscribers[key] -= 1
        if self._subscribers[key] > 0:
            return
        del self._subscribers[key]
        if self.on_unsubscribe is not None:
            with CancelScope(shield=True):
                await self.on_unsubscribe(key)

    def has_subscribers(self, key: str) -> bool:
        """Return True if a client has subscribed to the resource with that key."""
        return key in self._subscribers

    @property
    def subscribed_resources(self) -> int:
        """The number of resources to which clients have subscribed."""
        return len(self._subscribers)

    def receive(self, change: Change) -> None:
        """Handle a change that another replica has published: notify the listeners."""
        if change.uri is None:
            self._notify_listeners(change)
            return
        keys = (change.uri,) if self.on_remote_change is None else self.on_remote_change(change)
        for key in keys:
            if key in self._subscribers:
                self._notify_listeners(Change("resource", key, change.part if key == change.uri else None))

    def notify_all(self) -> None:
        """Notify the listeners that anything may have changed."""
        # Changes may have been missed. Reading something again unnecessarily is better than keeping outdated content.
        for name in LISTS:
            self._notify_listeners(Change(name))
        for key in tuple(self._subscribers):
            self._notify_listeners(Change("resource", key))

    def _publish(self, change: Change) -> None:
        self._notify_replicas(change)
        self._notify_listeners(change)

    def _notify_replicas(self, change: Change) -> None:
        if self.share is not None:
            self.share(change)

    def _notify_listeners(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener.on_change(change)
