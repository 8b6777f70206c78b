"""Who may send a request now: so many in all, so many to one host, and none to a host that asked to wait."""

import math
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import anyio

from servers.fetch.errors import Answered, FetchError

__all__ = ["Pauses", "Slots"]

QUEUE = 4
"""How many may wait for each that is at work."""
LONGEST_PAUSE = 3_600.0
"""Seconds that a host is left alone at most, whatever it asks for."""
HOSTS = 1_000
"""Hosts that are remembered."""


class Slots:
    """At most `total` requests at once, `per_host` of them to one host. The others wait, up to a number."""

    def __init__(self, total: int, per_host: int) -> None:
        self._all = anyio.Semaphore(total)
        self._per_host = per_host
        self._hosts: dict[str, tuple[anyio.Semaphore, list[None]]] = {}
        self._present = 0
        self._most = total * (1 + QUEUE)

    @asynccontextmanager
    async def held(self, host: str) -> AsyncIterator[None]:
        """A place for the time of the block. Raises FetchError `busy` where too many wait already."""
        if self._present >= self._most:
            raise FetchError("busy", "too many pages are being fetched already", "Try again when some have come.")
        semaphore, users = self._hosts.setdefault(host, (anyio.Semaphore(self._per_host), []))
        users.append(None)
        self._present += 1
        try:
            # The place of the host first: those that wait for a slow host take no place from the others.
            async with semaphore, self._all:
                yield
        finally:
            self._present -= 1
            users.pop()
            if not users:
                self._hosts.pop(host, None)


class Pauses:
    """Hosts that answered 429 or 503 and named a time to wait."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def add(self, host: str, status: int, seconds: float) -> None:
        """Remembers that `host` wants to be left alone."""
        self._until[host] = (monotonic() + min(seconds, LONGEST_PAUSE), status)
        self._until.move_to_end(host)
        if len(self._until) > HOSTS:
            self._until.popitem(last=False)

    def check(self, host: str) -> None:
        """Raises FetchError `status` while `host` is to be left alone."""
        until, status = self._until.get(host, (0.0, 0))
        left = until - monotonic()
        if left <= 0:
            self._until.pop(host, None)
            return
        reason = f"{host} answered {status} before and asked to wait, which is over in {math.ceil(left)} s"
        raise FetchError("status", reason, "Try again then.", Answered(status, float(math.ceil(left))))
