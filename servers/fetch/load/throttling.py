"""What goes on at once: so many requests, none to a host that asked to wait, and so many bytes of pages.

However many pages are loaded and read, the large ones have a budget of bytes. A page takes a little without asking.
One that turns out to be larger takes all that it may come to need in one step, behind those that came before, and
gives back what it did not need: so none waits for room that another holds while that one waits, too. A stopwatch has
how long the site of a page takes: what is left of the page's time without that which it waits for here.
"""

import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from weakref import WeakValueDictionary

import anyio
from anyio import CancelScope

from servers.fetch.errors import Answered, FetchError

QUEUE = 4
"""How many may wait for each that is at work."""
LONGEST_PAUSE = 3_600.0
"""Seconds that a host is left alone at most, whatever it asks for."""
HOSTS = 1_000
"""Hosts that are remembered."""
LITTLE = 1_000_000
"""Bytes that a page takes without asking."""


class Stopwatch:
    """Counts the seconds in which it runs, by the clock of the event loop."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts the time of the block, however it ends."""
        begun = anyio.current_time()
        try:
            yield
        finally:
            self.seconds += anyio.current_time() - begun

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves the time of the block out, within one that counts."""
        begun = anyio.current_time()
        try:
            yield
        finally:
            self.seconds -= anyio.current_time() - begun


class Slots:
    """At most `total` requests at once, `per_host` of them to one host. The others wait, up to a number."""

    def __init__(self, total: int, per_host: int) -> None:
        self._all = anyio.Semaphore(total)
        self._per_host = per_host
        self._hosts: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._present = 0
        self._most = total * (1 + QUEUE)

    @asynccontextmanager
    async def held(self, host: str) -> AsyncIterator[None]:
        """A place for the time of the block. Raises FetchError `busy` where too many wait already."""
        if self._present >= self._most:
            raise FetchError("busy", "too many pages are being fetched already", "Try again when some have come.")
        semaphore = self._hosts.setdefault(host, anyio.Semaphore(self._per_host))
        self._present += 1
        try:
            # The place of the host first: those that wait for a slow host take no place from the others.
            async with semaphore, self._all:
                yield
        finally:
            self._present -= 1


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


class ByteBudget:
    """At most `total` bytes for the pages that have more than a little. One page alone may have more."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._waiting: deque[tuple[int, anyio.Event]] = deque()
        self.held = 0
        """Bytes that large pages have now, or may come to have."""

    @contextmanager
    def share(self, site: Stopwatch | None = None) -> Iterator["Share"]:
        """What one page takes, until the end of the block; `site` counts what its site takes."""
        share = Share(self, site or Stopwatch())
        try:
            yield share
        finally:
            share.keep(0)

    async def take(self, size: int) -> None:
        """Takes so many bytes, when it is this page's turn and there is room for them."""
        turn = (size, anyio.Event())
        self._waiting.append(turn)
        self.give(0)
        came = False
        try:
            await turn[1].wait()
            came = True
        finally:
            if not came and turn[1].is_set():
                self.give(size)
            elif not came:
                self._waiting.remove(turn)
                self.give(0)

    def give(self, size: int) -> None:
        """Gives so many bytes back, and lets those take theirs whose turn it is."""
        self.held -= size
        while self._waiting and (not self.held or self.held + self._waiting[0][0] <= self._total):
            wanted, turn = self._waiting.popleft()
            self.held += wanted
            turn.set()


class Share:
    """What one page has of the budget."""

    def __init__(self, budget: ByteBudget, site: Stopwatch) -> None:
        self._budget = budget
        self.site = site
        """Counts the time of the site. It is stopped while the page waits here."""
        self._size = 0
        self.limit: CancelScope | None = None
        """What ends the load. Its deadline is put off by the time that is waited here."""

    async def need(self, size: int, most: int) -> None:
        """Sees to it that there is room for `size` bytes. Where that is more than a little, takes `most` at once."""
        if size <= max(LITTLE, self._size):
            return
        self.keep(0)
        with self.site.paused():
            # A load without a limit gets one here that never ends it.
            limit = self.limit or CancelScope()
            left, limit.deadline = limit.deadline - anyio.current_time(), math.inf
            try:
                await self._budget.take(most)
            finally:
                limit.deadline = anyio.current_time() + left
        self._size = most

    def keep(self, size: int) -> None:
        """Gives back all but `size` bytes."""
        if size < self._size:
            given, self._size = self._size - size, size
            self._budget.give(given)
