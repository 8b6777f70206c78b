"""The change bus: what changed, told to whoever asked, at most once per pause.

Changes that come close together are one: a change that is already waiting to be told is not added again. A
peer that is slow to read holds up nobody, and what waits for it is bounded by what it subscribed to.

Resources are watched while somebody subscribes to them: `on_subscribe` is called for each subscription and
says under which key changes of the resource are published; `on_unsubscribe` when the last one of a key ends.
`on_wanted` is called once, when a client first lists resources or listens to that list: from then on somebody
may be interested in its changes.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any, Protocol

from anyio import CancelScope

from ..errors import ResourceNotFound
from ..protocol.events import Change

__all__ = ["Changes", "Listener"]

Subscribed = Callable[[Any, str], Awaitable[str]]
Wanted = Callable[[], Awaitable[None]]
Unsubscribed = Callable[[str], Awaitable[None]]


class Listener(Protocol):
    """A connection as the bus sees it."""

    def changed(self, change: Change) -> None:
        """Takes note of `change`; never waits."""


class Changes:
    """Connects what changes to who wants to know."""

    def __init__(self) -> None:
        self.on_subscribe: Subscribed | None = None
        self.on_unsubscribe: Unsubscribed | None = None
        self.on_wanted: Wanted | None = None
        self._wanted = False
        self._listeners: dict[Listener, None] = {}
        self._holders: Counter[str] = Counter()

    def tools(self) -> None:
        """The list of tools changed."""
        self._publish(Change("tools"))

    def prompts(self) -> None:
        """The list of prompts changed."""
        self._publish(Change("prompts"))

    def resources(self) -> None:
        """The list of resources changed."""
        self._publish(Change("resources"))

    def resource(self, key: str) -> None:
        """The resource known under `key` changed; what a read gives is new from now on."""
        if key in self._holders:
            self._publish(Change("resource", key))

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

    async def hold(self, context: Any, uri: str) -> str:
        """Begins a subscription to `uri`, for the call of `context`; its key.

        Raises ResourceNotFound where it may not be subscribed to.
        """
        if self.on_subscribe is None:
            raise ResourceNotFound(uri)
        with CancelScope(shield=True):
            key = await self.on_subscribe(context, uri)
        self._holders[key] += 1
        return key

    async def release(self, keys: Iterable[str]) -> None:
        """Ends one subscription to each of `keys`, cancelled or not, and whatever the server's own code raises."""
        async with AsyncExitStack() as ending:
            for key in reversed(tuple(keys)):
                ending.push_async_callback(self._release, key)

    async def _release(self, key: str) -> None:
        self._holders[key] -= 1
        if self._holders[key] > 0:
            return
        del self._holders[key]
        if self.on_unsubscribe is not None:
            with CancelScope(shield=True):
                await self.on_unsubscribe(key)

    @property
    def held(self) -> int:
        """How many resources somebody subscribes to."""
        return len(self._holders)

    def _publish(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener.changed(change)
