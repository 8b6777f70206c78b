"""Subscriptions to resources of the joined servers. An owner is the server that has the resource; one subscription
there serves all clients with the same key.

Each client's subscription is made at the owner, which accepts or refuses it; the first client's is kept until the
last one ends. If the owner closes, they remain, and are renewed when it returns.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from shared.errors import InputRequired, McpError
from shared.server.dispatch.context import Context
from shared.server.run import Run

from .owners import Owners
from .server import Part

log = logging.getLogger("shared.gateway")


@dataclass(slots=True, eq=False)
class _Subscription:
    """A subscription at its owner: its run, its key, and the call that made it."""

    part: Part
    running: Run[Any]
    key: str
    uri: str
    context: Context[Any]


class Subscriptions:
    """The subscriptions at the owners, by the gateway's own keys."""

    def __init__(self, owners: Owners, notify: Callable[[str, str | None], None]) -> None:
        """`notify` is called with the key of a changed resource, and the URI of the changed part, if known."""
        self._owners = owners
        self._notify = notify
        self._subscriptions: dict[str, _Subscription] = {}
        self._own_keys: dict[tuple[Part, str], set[str]] = {}
        """The gateway's keys by server and the server's own key. Several share one if the server reused a key after
        it was reopened."""

    async def begin(self, context: Context[Any], uri: str) -> str:
        """Begin a subscription for the call of `context`, and return the gateway's key. Raises the same errors as
        `Owners.first_result`."""

        async def subscribe(part: Part, own: str) -> tuple[Part, str, Run[Any], str]:
            return part, own, *await part.subscribe(context, own)

        part, own, running, key = await self._owners.first_result(context, uri, subscribe)
        for own_key in self._own_keys.get((part, key), ()):
            subscription = self._subscriptions[own_key]
            if subscription.running is running:
                await running.changes.unsubscribe([key])
                return own_key
            # A run may reuse the key of an earlier one for another resource.
            if subscription.uri == own:
                self._move(own_key, subscription, running, key)
                return own_key
        # A subscription keeps the gateway's key when its key at the owner changes, so that a key may be in use.
        first_result = f"{part.name} {key}"
        keys = chain((first_result,), (f"{first_result} {number}" for number in count(2)))
        own_key = next(key for key in keys if key not in self._subscriptions)
        self._add(own_key, _Subscription(part, running, key, own, context))
        return own_key

    async def end(self, own_key: str) -> None:
        """End the subscription with the gateway's key `own_key`, which no client uses anymore."""
        subscription = self._subscriptions.get(own_key)
        if subscription is None:
            return
        del self._subscriptions[own_key]
        self._remove(own_key, subscription)
        await _release(subscription.part, subscription.running, subscription.key)

    def handle_change(self, part: Part, key: str, part_uri: str | None) -> None:
        """Notify clients that the resource with `key` at `part` has changed; `part_uri` is the URI of the changed
        part, if known."""
        for own_key in self._own_keys.get((part, key), ()):
            self._notify(own_key, part_uri)

    async def renew(self, part: Part) -> None:
        """Subscribe again at `part` after it was reopened, and notify all clients of a change, since something may
        have changed in the meantime."""
        for own_key, subscription in list(self._subscriptions.items()):
            if subscription.part is not part:
                continue
            try:
                running, key = await part.subscribe(subscription.context, subscription.uri)
            except (McpError, InputRequired) as error:
                log.info("%s: a subscription ended with the server: %s", part.name, error)
            else:
                # Meanwhile it may have ended, or a new client may have begun another.
                if self._subscriptions.get(own_key) is subscription and subscription.running is not running:
                    self._move(own_key, subscription, running, key)
                else:
                    await _release(subscription.part, running, key)
            self._notify(own_key, None)

    def _move(self, own_key: str, subscription: _Subscription, running: Run[Any], key: str) -> None:
        self._remove(own_key, subscription)
        subscription.running, subscription.key = running, key
        self._add(own_key, subscription)

    def _add(self, own_key: str, subscription: _Subscription) -> None:
        self._subscriptions[own_key] = subscription
        self._own_keys.setdefault((subscription.part, subscription.key), set()).add(own_key)

    def _remove(self, own_key: str, subscription: _Subscription) -> None:
        sharing = self._own_keys[subscription.part, subscription.key]
        sharing.discard(own_key)
        if not sharing:
            del self._own_keys[subscription.part, subscription.key]


async def _release(part: Part, running: Run[Any], key: str) -> None:
    """End a subscription at its owner, unless the owner has closed since."""
    if part.running is running:
        await running.changes.unsubscribe([key])
