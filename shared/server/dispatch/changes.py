"""The change bus: what changed, told to whoever asked, at most once per pause.

Changes that come close together are one: a change that is already waiting to be told is not added again. A
peer that is slow to read holds up nobody, and what waits for it is bounded by what it subscribed to.

Resources are watched while somebody subscribes to them: `on_subscribe` is called for each subscription and
says under which key changes of the resource are published; `on_unsubscribe` when the last one of a key ends.
`on_wanted` is called once, when a client first lists resources or listens to that list: from then on somebody
may be interested in its changes.
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

MAX_HELD = 10_000
"""Subscriptions of all clients together."""

Share = Callable[[Change], None]
Subscribed = Callable[[Any, str], Awaitable[str]]
Wanted = Callable[[], Awaitable[None]]
Unsubscribed = Callable[[str], Awaitable[None]]
Heard = Callable[[Change], Iterable[str]]

log = logging.getLogger("shared.server.dispatch.changes")


class Listener(Protocol):
    """Who is told of what changes. Neither waits nor raises."""

    def changed(self, change: Change) -> None:
        """Something has changed."""

    def announce(self, message: LogMessage) -> None:
        """Something holds from now on that concerns everybody."""


class Changes:
    """Connects what changes to who wants to know."""

    def __init__(self) -> None:
        self.on_subscribe: Subscribed | None = None
        self.on_unsubscribe: Unsubscribed | None = None
        self.on_wanted: Wanted | None = None
        self.share: Share | None = None
        """Tells other replicas of the server of what has changed, where there are any."""
        self.on_heard: Heard | None = None
        """Of a change of a resource that another replica tells of, the keys to tell of here, in place of that of the
        change: of one that is `written`, all that it concerns. A server that looks for changes itself looks then, and
        gives none. It neither waits nor raises."""
        self._wanted = False
        self._is_warned = False
        self._listeners: dict[Listener, None] = {}
        self._holders: Counter[str] = Counter()
        self._shares: Counter[str] = Counter()
        self._total = 0

    def tools(self) -> None:
        """The list of tools changed."""
        self._publish(Change("tools"))

    def prompts(self) -> None:
        """The list of prompts changed."""
        self._publish(Change("prompts"))

    def resources(self) -> None:
        """The list of resources changed."""
        self._publish(Change("resources"))

    def resource(self, key: str, part: str | None = None) -> None:
        """The resource known under `key` changed, or the `part` of it that has this URI; what a read gives is new
        from now on."""
        if self.on_subscribe is None and not self._is_warned:
            self._is_warned = True
            log.warning("nobody can hear that %s changed: the server has no `on_subscribe`", key)
        # Nobody here may have subscribed, and a client of another replica all the same.
        if key in self._holders or self.share is not None:
            self._publish(Change("resource", key, part))

    def wrote(self, key: str) -> None:
        """This server has itself written what is known under `key`. Its own clients hear of that as of any change,
        by what watches; other replicas, which may not see it as it is on a network volume, hear of it by this."""
        self._tell_others(Change("written", key))

    def announce(self, message: LogMessage) -> None:
        """Something holds from now on that concerns everybody."""
        for listener in tuple(self._listeners):
            listener.announce(message)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is told."""
        return tuple(self._listeners)

    def join(self, listener: Listener) -> None:
        """Tells `listener` of changes from now on."""
        self._listeners[listener] = None

    def leave(self, listener: Listener) -> None:
        """No longer."""
        self._listeners.pop(listener, None)

    async def want_resources(self) -> None:
        """A client is interested in the list of resources."""
        if not self._wanted:
            self._wanted = True
            if self.on_wanted is not None:
                await self.on_wanted()

    async def hold(self, context: Any, uri: str, client: str = "") -> str:
        """Begins a subscription of `client` to `uri`, for the call of `context`; its key.

        Raises ResourceNotFound where it may not be subscribed to, InvalidParams where the client has its share.
        """
        if self.on_subscribe is None:
            raise ResourceNotFound(uri)
        # Of a client that is gone no more of its many subscriptions are begun.
        await checkpoint_if_cancelled()
        # As many as are left for others: alone, one may have half of them, of two each a third, and so on. Who is not
        # one of several has them all.
        remaining = MAX_HELD - self._total
        if remaining <= 0 or (client and self._shares.get(client, 0) >= remaining):
            raise InvalidParams(
                f"the server keeps {remaining:,} more subscriptions for other clients; end some first"
            )
        self._shares[client] += 1
        self._total += 1
        with ExitStack() as undoing:
            undoing.callback(self._give_back, client)
            with CancelScope(shield=True):
                key = await self.on_subscribe(context, uri)
            undoing.pop_all()
        self._holders[key] += 1
        return key

    async def release(self, keys: Iterable[str], client: str = "") -> None:
        """Ends one subscription of `client` to each of `keys`, cancelled or not, and whatever the server's own code
        raises."""
        async with AsyncExitStack() as ending:
            # A stack: each of them is released, whatever the release of another one raises.
            for key in reversed(tuple(keys)):
                ending.push_async_callback(self._release, key, client)

    def _give_back(self, client: str) -> None:
        self._total -= 1
        self._shares[client] -= 1
        if not self._shares[client]:
            del self._shares[client]

    async def _release(self, key: str, client: str) -> None:
        self._give_back(client)
        self._holders[key] -= 1
        if self._holders[key] > 0:
            return
        del self._holders[key]
        if self.on_unsubscribe is not None:
            with CancelScope(shield=True):
                await self.on_unsubscribe(key)

    def is_held(self, key: str) -> bool:
        """Whether somebody subscribes to what is known under `key`."""
        return key in self._holders

    @property
    def held(self) -> int:
        """How many resources somebody subscribes to."""
        return len(self._holders)

    def heard(self, change: Change) -> None:
        """Something has changed, as another replica says."""
        if change.uri is None:
            self._tell(change)
            return
        keys = (change.uri,) if self.on_heard is None else self.on_heard(change)
        for key in keys:
            if key in self._holders:
                self._tell(Change("resource", key, change.part if key == change.uri else None))

    def look_again(self) -> None:
        """Anything may have changed."""
        # Nobody knows what was missed: a client that reads once too often is better than one that shows what is no
        # more.
        for name in LISTS:
            self._tell(Change(name))
        for key in tuple(self._holders):
            self._tell(Change("resource", key))

    def _publish(self, change: Change) -> None:
        self._tell_others(change)
        self._tell(change)

    def _tell_others(self, change: Change) -> None:
        if self.share is not None:
            self.share(change)

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener.changed(change)
