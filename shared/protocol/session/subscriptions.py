"""The subscriptions of one peer, made with `resources/subscribe` or `subscriptions/listen`.

The client names a resource by a URI, which it may spell in several ways; the server identifies the resource by a key,
the same for all spellings. A change is matched by key, and reported with the client's spelling.

In the handshake era, every open session receives the changes of lists, and there is at most one subscription per URI.
From 2026-07-28 on, each stream of `subscriptions/listen` has a filter and receives its own notification of a change,
with its subscription id.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from ..records import record
from ..types.base import SUBSCRIPTION_ID
from ..wire.jsonrpc import Notification, RequestId
from .events import Change

LISTS = ("tools", "prompts", "resources")
"""The lists that may change, as they are called in `notifications/.../list_changed`."""


@record
class Listen:
    """One stream of `subscriptions/listen`, with its filter."""

    id: RequestId
    lists: frozenset[str] = frozenset()
    uris: dict[str, str] = field(default_factory=dict)
    """The keys of the resources, by the client's spelling."""
    others: dict[str, object] = field(default_factory=dict)
    """The fields of the filter that extensions handle."""

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
        """Mark a subscription to `uri` as being created during the block. Yield a function that returns False if the
        client has cancelled it in the meantime."""
        token = self._pending[uri] = object()
        try:
            yield lambda: self._pending.get(uri) is token
        finally:
            if self._pending.get(uri) is token:
                del self._pending[uri]

    def subscribe(self, uri: str, key: str) -> list[str]:
        """Add a subscription of the handshake era. Return a list with the key of the subscription that it replaces,
        which is empty if there was none."""
        # Two requests for the same URI may be in progress. One subscription remains; the caller ends the other.
        replaced = self.unsubscribe(uri)
        self._subscribed[uri] = key
        return replaced

    def unsubscribe(self, uri: str) -> list[str]:
        """Remove a subscription. Return a list with its key, which is empty if there was none."""
        self._pending.pop(uri, None)
        return [self._subscribed.pop(uri)] if uri in self._subscribed else []

    def listen(self, listen: Listen) -> None:
        """Add a stream of `subscriptions/listen`."""
        self._streams[listen.id] = listen

    def close(self, id: RequestId) -> Listen | None:
        """Remove and return the stream with that id; None if there is none."""
        return self._streams.pop(id, None)

    @property
    def subscribed(self) -> Mapping[str, str]:
        """The subscriptions of the handshake era: the keys of the resources, by the client's spelling."""
        return self._subscribed

    def notifications_for(
        self, change: Change, *, handshake_open: bool
    ) -> Iterator[tuple[Notification, RequestId | None]]:
        """Yield the notifications of `change`, each with the id of its `subscriptions/listen` stream, or None."""
        if change.uri is None:
            method = f"notifications/{change.kind}/list_changed"
            if handshake_open:
                # Before 2026-07-28 nobody subscribes to lists: every client receives their changes.
                yield Notification(method), None
            for listen in self._streams.values():
                if change.kind in listen.lists:
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
