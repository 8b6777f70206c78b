"""Subscriptions to resources of the joined servers.

Each subscription of a client is made at the owner, the server that has the resource, so that the owner may refuse it.
If the owner returns the same key as for an earlier subscription, the clients share that one until the last of them
unsubscribes. If the owner closes, subscriptions remain, and are renewed when it opens again.
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
from .server import JoinedServer

log = logging.getLogger("shared.gateway")


@dataclass(slots=True, eq=False)
class _Subscription:
    """A subscription at its owner: the owner, its run, its key, the URI there, and the context of its first call."""

    server: JoinedServer
    run: Run[Any]
    key: str
    uri: str
    context: Context[Any]


class Subscriptions:
    """The subscriptions at the owners. Each has a key of the gateway, besides the key that its owner uses."""

    def __init__(self, owners: Owners, notify: Callable[[str, str | None], None]) -> None:
        """`notify` is called with the gateway's key for a changed resource, and, if known, the URI of the
        sub-resource that changed."""
        self._owners = owners
        self._notify = notify
        self._subscriptions: dict[str, _Subscription] = {}
        self._gateway_keys: dict[tuple[JoinedServer, str], set[str]] = {}
        """The gateway's keys, by server and the server's key. There may be several, because a server may reuse a key
        for another resource after it was reopened."""

    async def begin(self, context: Context[Any], uri: str) -> str:
        """Begin a subscription for the call of `context`, and return the gateway's key. Raises the same errors as
        `Owners.first_result`."""

        async def subscribe(server: JoinedServer, uri_at_server: str) -> tuple[JoinedServer, str, Run[Any], str]:
            return server, uri_at_server, *await server.subscribe(context, uri_at_server)

        server, uri_at_server, run, key = await self._owners.first_result(context, uri, subscribe)
        for gateway_key in self._gateway_keys.get((server, key), ()):
            subscription = self._subscriptions[gateway_key]
            if subscription.run is run:
                await run.changes.unsubscribe([key])
                return gateway_key
            # This subscription is from an earlier run of the server, which may have used the key for another URI.
            if subscription.uri == uri_at_server:
                self._move(gateway_key, subscription, run, key)
                return gateway_key
        # A renewed subscription may have a new key at the owner, but keeps the gateway's key. So the preferred key
        # may be in use although the owner's key is new.
        preferred_key = f"{server.name} {key}"
        keys = chain((preferred_key,), (f"{preferred_key} {number}" for number in count(2)))
        gateway_key = next(key for key in keys if key not in self._subscriptions)
        self._add(gateway_key, _Subscription(server, run, key, uri_at_server, context))
        return gateway_key

    async def end(self, gateway_key: str) -> None:
        """End the subscription with the gateway's key `gateway_key`, which no client uses anymore."""
        subscription = self._subscriptions.get(gateway_key)
        if subscription is None:
            return
        del self._subscriptions[gateway_key]
        self._remove(gateway_key, subscription)
        await _release(subscription.server, subscription.run, subscription.key)

    def handle_change(self, server: JoinedServer, key: str, part_uri: str | None) -> None:
        """Notify clients that the resource with `key` at `server` has changed; `part_uri` is the URI of the
        sub-resource that changed, if known."""
        for gateway_key in self._gateway_keys.get((server, key), ()):
            self._notify(gateway_key, part_uri)

    async def renew(self, server: JoinedServer) -> None:
        """Renew the subscriptions at `server` after it was reopened, and report each resource as changed, since it
        may have changed in the meantime."""
        for gateway_key, subscription in list(self._subscriptions.items()):
            if subscription.server is not server:
                continue
            try:
                run, key = await server.subscribe(subscription.context, subscription.uri)
            except (McpError, InputRequired) as error:
                log.info("%s: a subscription ended with the server: %s", server.name, error)
            else:
                # In the meantime, the last client may have left, or a new one may have renewed the subscription.
                if self._subscriptions.get(gateway_key) is subscription and subscription.run is not run:
                    self._move(gateway_key, subscription, run, key)
                else:
                    await _release(subscription.server, run, key)
            self._notify(gateway_key, None)

    def _move(self, gateway_key: str, subscription: _Subscription, run: Run[Any], key: str) -> None:
        self._remove(gateway_key, subscription)
        subscription.run, subscription.key = run, key
        self._add(gateway_key, subscription)

    def _add(self, gateway_key: str, subscription: _Subscription) -> None:
        self._subscriptions[gateway_key] = subscription
        self._gateway_keys.setdefault((subscription.server, subscription.key), set()).add(gateway_key)

    def _remove(self, gateway_key: str, subscription: _Subscription) -> None:
        sharing = self._gateway_keys[subscription.server, subscription.key]
        sharing.discard(gateway_key)
        if not sharing:
            del self._gateway_keys[subscription.server, subscription.key]


async def _release(server: JoinedServer, run: Run[Any], key: str) -> None:
    """End a subscription at its owner, unless the run in which it was made has ended."""
    if server.running is run:
        await run.changes.unsubscribe([key])
