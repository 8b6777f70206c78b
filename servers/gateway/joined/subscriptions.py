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
from .part import Part

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

    def __init__(self, owners: Owners, tell: Callable[[str, str | None], None]) -> None:
        """`tell` is called with the key of a changed resource, and the URI of the changed part, if known."""
        self._owners = owners
        self._tell = tell
        self._subscriptions: dict[str, _Subscription] = {}
        self._ours: dict[tuple[Part, str], set[str]] = {}
        """The gateway's keys by server and the server's own key. Several share one if the server reused a key after
        it was reopened."""

    async def begin(self, context: Context[Any], uri: str) -> str:
        """Begin a subscription for the call of `context`, and return the gateway's key. Raises the same errors as
        `Owners.first`."""

        async def hold(part: Part, own: str) -> tuple[Part, str, Run[Any], str]:
            return part, own, *await part.hold(context, own)

        part, own, running, key = await self._owners.first(context, uri, hold)
        for ours in self._ours.get((part, key), ()):
            subscription = self._subscriptions[ours]
            if subscription.running is running:
                await running.changes.release([key])
                return ours
            # A run may reuse the key of an earlier one for another resource.
            if subscription.uri == own:
                self._move(ours, subscription, running, key)
                return ours
        # A subscription keeps the gateway's key when its key at the owner changes, so that a key may be in use.
        first = f"{part.name} {key}"
        keys = chain((first,), (f"{first} {number}" for number in count(2)))
        ours = next(key for key in keys if key not in self._subscriptions)
        self._add(ours, _Subscription(part, running, key, own, context))
        return ours

    async def end(self, ours: str) -> None:
        """End the subscription with the gateway's key `ours`, which no client uses anymore."""
        subscription = self._subscriptions.get(ours)
        if subscription is None:
            return
        del self._subscriptions[ours]
        self._remove(ours, subscription)
        await _release(subscription.part, subscription.running, subscription.key)

    def changed(self, part: Part, key: str, of: str | None) -> None:
        """Notify clients that the resource with `key` at `part` has changed; `of` is the URI of the changed part, if
        known."""
        for ours in self._ours.get((part, key), ()):
            self._tell(ours, of)

    async def renew(self, part: Part) -> None:
        """Subscribe again at `part` after it was reopened, and notify all clients of a change, since something may
        have changed in the meantime."""
        for ours, subscription in list(self._subscriptions.items()):
            if subscription.part is not part:
                continue
            try:
                running, key = await part.hold(subscription.context, subscription.uri)
            except (McpError, InputRequired) as error:
                log.info("%s: a subscription ended with the server: %s", part.name, error)
            else:
                # Meanwhile it may have ended, or a new client may have begun another.
                if self._subscriptions.get(ours) is subscription and subscription.running is not running:
                    self._move(ours, subscription, running, key)
                else:
                    await _release(subscription.part, running, key)
            self._tell(ours, None)

    def _move(self, ours: str, subscription: _Subscription, running: Run[Any], key: str) -> None:
        self._remove(ours, subscription)
        subscription.running, subscription.key = running, key
        self._add(ours, subscription)

    def _add(self, ours: str, subscription: _Subscription) -> None:
        self._subscriptions[ours] = subscription
        self._ours.setdefault((subscription.part, subscription.key), set()).add(ours)

    def _remove(self, ours: str, subscription: _Subscription) -> None:
        sharing = self._ours[subscription.part, subscription.key]
        sharing.discard(ours)
        if not sharing:
            del self._ours[subscription.part, subscription.key]


async def _release(part: Part, running: Run[Any], key: str) -> None:
    """End a subscription at its owner, unless the owner has closed since."""
    if part.running is running:
        await running.changes.release([key])
