"""A subscription on one connection: its notifications, and the changes that they report."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from ...concurrency import background
from ...errors import PeerError
from ...protocol.session.client_events import Notified
from ...protocol.wire.jsonrpc import Failure
from .connection import Connection, result_of
from .opening import OPENING_SECONDS

ChangeKind = Literal["resource", "tools", "prompts", "resources", "missed"]
"""The kind of a change: of one resource; of the list of tools, of prompts or of resources; or "missed", after a gap
in which any of them may have changed."""

MAX_URI_LENGTH = 8_192
"""The maximum length in characters of the URI in a change. A thousand changes may wait for a slow reader."""
UNSUBSCRIBE_SECONDS = 2.0
"""Seconds that the server has to answer the requests that end a subscription."""
_LISTS: tuple[ChangeKind, ...] = ("tools", "prompts", "resources")
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@dataclass(frozen=True, slots=True)
class Change:
    """A change on the server. The kind "missed" means that anything in the subscription may have changed."""

    kind: ChangeKind
    uri: str | None = None
    """The URI of the resource, which may be below a subscribed resource; None for other kinds."""


_LIST_CHANGES = {f"notifications/{name}/list_changed": Change(name) for name in _LISTS}


def change_of(notification: Notified) -> Change | None:
    """Return the change that a notification reports; None if it reports no change. A change of a resource whose URI
    is too long is reported as "missed"."""
    if notification.method != _UPDATED:
        return _LIST_CHANGES.get(notification.method)
    uri = notification.params.get("uri")
    if not isinstance(uri, str):
        return None
    return Change("resource", uri) if len(uri) <= MAX_URI_LENGTH else Change("missed")


@dataclass(eq=False, slots=True)
class Subscription:
    """Passes to `on_change` the changes of the resources `uris` and, with `lists`, of all lists."""

    uris: Sequence[str]
    on_change: Callable[[Change], None]
    lists: bool = True
    requested: list[str] = field(default_factory=list)
    """The resources to which it has subscribed with requests of their own, in the handshake era."""
    acknowledged_filter: dict[str, Any] | None = None
    """The filter that the server acknowledged, in the stateless era; None before that, and in the handshake era."""
    acknowledged: anyio.Event = field(default_factory=anyio.Event)

    def requested_filter(self) -> dict[str, Any]:
        """Return the `notifications` param of `subscriptions/listen`."""
        lists = {f"{name}ListChanged": True for name in _LISTS} if self.lists else {}
        return {**lists, "resourceSubscriptions": list(self.uris)} if self.uris else lists

    def refused_uris(self) -> tuple[str, ...]:
        """Return the URIs that are missing from the server's acknowledgement."""
        if self.acknowledged_filter is None:
            return ()
        accepted_uris = self.acknowledged_filter.get("resourceSubscriptions")
        return tuple(uri for uri in self.uris if not isinstance(accepted_uris, list) or uri not in accepted_uris)

    def on_stream_notification(self, notification: Notified) -> None:
        """Handle a notification on the listen stream of the subscription, in the stateless era."""
        if notification.method == _ACKNOWLEDGED:
            acknowledged_filter = notification.params.get("notifications")
            self.acknowledged_filter = acknowledged_filter if isinstance(acknowledged_filter, dict) else {}
            self.acknowledged.set()
        elif (change := change_of(notification)) is not None:
            self.on_change(change)

    def on_notification(self, notification: Notified) -> bool:
        """Handle a notification in the handshake era, in which it does not name its subscription. Returns False if it
        belongs to another subscription."""
        change = change_of(notification)
        if change is None:
            return False
        if change.uri is not None:
            # The URI may be a subscribed one, or one below it (2025-11-25, Resources).
            is_subscribed = any(
                change.uri == subscribed_uri or change.uri.startswith(subscribed_uri.rstrip("/") + "/")
                for subscribed_uri in self.uris
            )
        else:
            is_subscribed = self.lists
        if change.kind != "missed" and not is_subscribed:
            return False
        self.on_change(change)
        return True

    def on_gap(self) -> None:
        """Report that changes may have been missed."""
        self.on_change(Change("missed"))


@asynccontextmanager
async def subscribe(
    connection: Connection, subscription: Subscription
) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Subscribe to the changes of `subscription` during the block. Yields a function that waits until no more changes
    can arrive, because the server has ended the stream or disconnected; the function may raise ConnectionError.

    Raises PeerError if the server refuses, TimeoutError if it does not answer, and ConnectionError if the connection
    is lost.
    """
    connection.subscriptions.append(subscription)
    try:
        if connection.session.stateless:
            async with _listen(connection, subscription) as ended:
                yield ended
        else:
            for uri in subscription.uris:
                # Before the answer: if this is cancelled, the server may have subscribed nevertheless.
                subscription.requested.append(uri)
                await connection.call("resources/subscribe", {"uri": uri}, timeout_seconds=OPENING_SECONDS)
            yield connection.gone.wait
    finally:
        connection.subscriptions.remove(subscription)
        if subscription.requested and not connection.gone.is_set():
            await _unsubscribe(connection, subscription.requested)


@asynccontextmanager
async def _listen(
    connection: Connection, subscription: Subscription
) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    id_ = connection.session.request("subscriptions/listen", {"notifications": subscription.requested_filter()})
    with connection.send(id_, subscription.on_stream_notification) as waiter:
        waiter.is_stream = True
        with anyio.move_on_after(OPENING_SECONDS) as timeout_scope:

            async def raise_refusal() -> None:
                answer = await waiter.wait()
                if isinstance(answer, Failure):
                    result_of(answer)
                raise ConnectionError("the server ended the stream before it began")

            async with background() as tasks:
                tasks.start_soon(raise_refusal)
                await subscription.acknowledged.wait()
        if timeout_scope.cancelled_caught:
            raise TimeoutError(f"the server did not acknowledge the subscription within {OPENING_SECONDS:g} s")
        yield waiter.wait


async def _unsubscribe(connection: Connection, uris: Sequence[str]) -> None:
    """Cancel those subscriptions to `uris` that no other subscription needs. Missing answers are ignored."""

    async def cancel_on_close() -> None:
        await connection.closed.wait()
        tasks.cancel_scope.cancel()

    # A generator, so that each is checked just before its request: another subscription to it may have begun by then.
    unused = (uri for uri in uris if not any(uri in other.requested for other in connection.subscriptions))
    failures = (PeerError, ConnectionError, TimeoutError)
    with anyio.CancelScope(shield=True), anyio.move_on_after(UNSUBSCRIBE_SECONDS), suppress(*failures):
        async with background() as tasks:
            tasks.start_soon(cancel_on_close)
            for uri in unused:
                await connection.call("resources/unsubscribe", {"uri": uri}, timeout_seconds=None)
