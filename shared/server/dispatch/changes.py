"""The change bus, which notifies listeners of changes, at most once per pause.

Changes in quick succession are reported once: a change whose notification is pending is not added again. A peer that
reads slowly does not delay other peers, and its pending notifications are bounded by the number of its subscriptions.

Resources are watched while a client subscribes to them: `on_subscribe` is called for each subscription and returns
the key under which changes to the resource are published; `on_unsubscribe` is called when the last subscription under
a key ends. `on_wanted` is called once, when a client first lists resources or listens to that list: from then on
clients may be interested in its changes.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Protocol

from anyio import CancelScope
from anyio.lowlevel import checkpoint_if_cancelled

from ...errors import InvalidParams, ResourceNotFound
from ...protocol.identity import LogMessage
from ...protocol.session.events import Change
from ...protocol.session.subscriptions import LISTS

MAX_SUBSCRIPTIONS = 10_000
"""Maximum number of subscriptions of all clients combined."""

Share = Callable[[Change], None]
OnSubscribe = Callable[[Any, str], Awaitable[str]]
OnWanted = Callable[[], Awaitable[None]]
OnUnsubscribe = Callable[[str], Awaitable[None]]
OnRemoteChange = Callable[[Change], Iterable[str]]

log = logging.getLogger("shared.server.dispatch.changes")


class Listener(Protocol):
    """A receiver of changes. Its methods neither wait nor raise."""

    def on_change(self, change: Change) -> None:
        """Receive a change."""

    def announce(self, message: LogMessage) -> None:
        """Receive a message that concerns everyone."""


class Changes:
    """Passes changes on to the listeners that are interested."""

    def __init__(self) -> None:
        self.on_subscribe: OnSubscribe | None = None
        self.on_unsubscribe: OnUnsubscribe | None = None
        self.on_wanted: OnWanted | None = None
        self.share: Share | None = None
        """Notifies other replicas of the server of a change; None if there are no other replicas."""
        self.on_remote_change: OnRemoteChange | None = None
        """Returns the keys whose subscribers are notified here when a resource has changed in another replica,
        instead of the key of the change: for a `written` change, all keys that it concerns. A server that detects
        changes itself then looks for them, and returns no keys. The function neither waits nor raises."""
        self._is_wanted = False
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
        """Publish a change to the resource of `key`, or to its `part` with this URI. A read must return the new
        content from now on."""
        if self.on_subscribe is None and not self._has_warned:
            self._has_warned = True
            log.warning("no one can be notified that %s changed: the server has no `on_subscribe`", key)
        # A client of another replica may have subscribed, even if nobody here has.
        if key in self._subscribers or self.share is not None:
            self._publish(Change("resource", key, part))

    def wrote(self, key: str) -> None:
        """Notify other replicas that this server itself has written the resource of `key`: on a network volume, they
        may not detect the change themselves. The server's own clients are notified by the watch on the resource, as
        for any other change."""
        self._notify_replicas(Change("written", key))

    def announce(self, message: LogMessage) -> None:
        """Pass a message that concerns everyone on to all listeners."""
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
        """Call `on_wanted` if this is the first client that is interested in the list of resources."""
        if not self._is_wanted:
            self._is_wanted = True
            if self.on_wanted is not None:
                await self.on_wanted()

    async def subscribe(self, context: Any, uri: str, client: str = "") -> str:
        """Begin a subscription of `client` to `uri`, for the call of `context`; return its key.

        Raises ResourceNotFound if the URI does not allow subscriptions, and InvalidParams if the client's share is
        used up.
        """
        if self.on_subscribe is None:
            raise ResourceNotFound(uri)
        # A disconnected client must not begin the rest of its subscriptions.
        await checkpoint_if_cancelled()
        # A client may have as many subscriptions as remain for others: half of all if it is alone, a third if there
        # are two such clients, and so on. The only client of a server has no name, and may have all.
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
        """End one subscription of `client` to each of `keys`, even if cancelled, and even if the server's own code
        raises."""
        # The stack releases every key, even if the release of another key raises.
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
        """Return True if a client subscribes to the resource of `key`."""
        return key in self._subscribers

    @property
    def subscribed_resources(self) -> int:
        """The number of resources with subscriptions."""
        return len(self._subscribers)

    def receive(self, change: Change) -> None:
        """Notify the listeners of a change that another replica has published."""
        if change.uri is None:
            self._notify_listeners(change)
            return
        keys = (change.uri,) if self.on_remote_change is None else self.on_remote_change(change)
        for key in keys:
            if key in self._subscribers:
                self._notify_listeners(Change("resource", key, change.part if key == change.uri else None))

    def notify_all(self) -> None:
        """Notify the listeners that anything may have changed."""
        # It is unknown which changes were missed. An unnecessary read is better than outdated content.
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
