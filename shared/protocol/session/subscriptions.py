"""The subscriptions of one peer: one table, filled by `resources/subscribe` and by `subscriptions/listen`.

The server identifies a resource by a key, the client by the URI it wrote; several spellings may share a key. A change
is matched by key and reported with the client's own spelling.

In the handshake era list changes go to every open session, and there is one subscription per URI. From 2026-07-28 on,
each listen stream has its own filter and gets its own copy, marked with its subscription id.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from ..records import record
from ..types.base import SUBSCRIPTION_ID
from ..wire.jsonrpc import Notification, RequestId
from .events import Change

LISTS = ("tools", "prompts", "resources")
"""The lists that may change, under the names of their `list_changed` notifications."""


@record
class Listen:
    """One acknowledged `subscriptions/listen` stream."""

    id: RequestId
    lists: frozenset[str] = frozenset()
    uris: dict[str, str] = field(default_factory=dict)
    """Maps the client's spelling of each resource to its key."""
    others: dict[str, object] = field(default_factory=dict)
    """The part of the filter that extensions handle."""

    def acknowledged_filter(self) -> dict[str, object]:
        """Return the supported part of the filter, for the acknowledgement."""
        filter_: dict[str, object] = {f"{name}ListChanged": True for name in LISTS if name in self.lists}
        if self.uris:
            filter_["resourceSubscriptions"] = list(self.uris)
        return {**filter_, **self.others}


class Subscriptions:
    """The subscriptions of one peer."""

    __slots__ = ("_pending", "_streams", "_subscribed")

    def __init__(self) -> None:
        self._subscribed: dict[str, str] = {}
        self._pending: dict[str, object] = {}
        self._streams: dict[RequestId, Listen] = {}

    @contextmanager
    def begin_subscription(self, uri: str) -> Iterator[Callable[[], bool]]:
        """Mark a subscription as being created. Yield a function that returns False if an unsubscription has
        overtaken it."""
        token = self._pending[uri] = object()
        try:
            yield lambda: self._pending.get(uri) is token
        finally:
            if self._pending.get(uri) is token:
                del self._pending[uri]

    def subscribe(self, uri: str, key: str) -> list[str]:
        """Add a subscription of the handshake era, and return the key of the one that it replaces."""
        # If two requests overtake each other, one subscription remains, and the key of the other is returned.
        replaced = self.unsubscribe(uri)
        self._subscribed[uri] = key
        return replaced

    def unsubscribe(self, uri: str) -> list[str]:
        """Remove a subscription. Return a list with its key, which is empty if there was none."""
        self._pending.pop(uri, None)
        return [self._subscribed.pop(uri)] if uri in self._subscribed else []

    def listen(self, listen: Listen) -> None:
        """Add a stream."""
        self._streams[listen.id] = listen

    def close(self, id: RequestId) -> Listen | None:
        """Remove a stream."""
        return self._streams.pop(id, None)

    @property
    def subscribed(self) -> Mapping[str, str]:
        """The subscriptions of the handshake era, from the client's spelling of each resource to its key."""
        return self._subscribed

    def notifications_for(
        self, change: Change, *, handshake_open: bool
    ) -> Iterator[tuple[Notification, RequestId | None]]:
        """Iterate over the notifications of `change`, each with its listen stream."""
        if change.uri is None:
            method = f"notifications/{change.what}/list_changed"
            if handshake_open:
                # Before 2026-07-28 there are no subscriptions to lists, since `listChanged` promises notifications to
                # all.
                yield Notification(method), None
            for listen in self._streams.values():
                if change.what in listen.lists:
                    yield Notification(method, {"_meta": {SUBSCRIPTION_ID: listen.id}}), listen.id
            return
        method = "notifications/resources/updated"
        for uri, key in self._subscribed.items():
            if key == change.uri:
                yield Notification(method, {"uri": change.part or uri}), None
        for listen in self._streams.values():
            for uri, key in listen.uris.items():
                if key == change.uri:
                    params = {"_meta": {SUBSCRIPTION_ID: listen.id}, "uri": change.part or uri}
                    yield Notification(method, params), listen.id
