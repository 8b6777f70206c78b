"""Limits the number of requests and the memory for pages, and pauses requests to hosts that ask for it.

All large pages that are being loaded or read share a byte budget. A page may use a small amount freely. A page that
turns out to be larger reserves all that it may still need at once, in order of arrival, and returns what it does not
use. So no page waits for bytes of another page that is itself waiting. A stopwatch measures the site's time: the time
to load a page without the time spent waiting for the budget.
"""

import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from weakref import WeakValueDictionary

import anyio
from anyio import CancelScope

from ..errors import ErrorResponse, FetchError

MAX_QUEUE_FACTOR = 4
"""Maximum number of waiting requests for each running one."""
MAX_PAUSE_SECONDS = 3_600.0
"""Maximum pause for a host in seconds, even if the host requests a longer one."""
MAX_HOSTS = 1_000
"""Maximum number of hosts whose pauses are remembered."""
FREE_BYTES = 1_000_000
"""Number of bytes that a page may use without reserving them."""


class Stopwatch:
    """Counts the seconds during which it runs, by the event loop's clock."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count the time of the block, even if it raises."""
        start = anyio.current_time()
        try:
            yield
        finally:
            self.seconds += anyio.current_time() - start

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Exclude the time of the block, inside a block that is counted."""
        start = anyio.current_time()
        try:
            yield
        finally:
            self.seconds -= anyio.current_time() - start


class Slots:
    """At most `total` requests at once, and `per_host` to one host. A limited number of others wait."""

    def __init__(self, total: int, per_host: int) -> None:
        self._all = anyio.Semaphore(total)
        self._per_host = per_host
        self._hosts: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._request_count = 0
        self._max_requests = total * (1 + MAX_QUEUE_FACTOR)

    @asynccontextmanager
    async def occupy(self, host: str) -> AsyncIterator[None]:
        """Occupy a slot for the duration of the block. Raises FetchError with code `busy` if too many requests are
        already waiting."""
        if self._request_count >= self._max_requests:
            raise FetchError("busy", "too many pages are being fetched already", "Try again when some have finished.")
        semaphore = self._hosts.setdefault(host, anyio.Semaphore(self._per_host))
        self._request_count += 1
        try:
            # A request waits for a slot of its host first, so that requests to a slow host take no slots from others.
            async with semaphore, self._all:
                yield
        finally:
            self._request_count -= 1


class Pauses:
    """Hosts that responded 429 or 503 with a time to wait."""

    def __init__(self) -> None:
        self._pauses: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def add(self, host: str, status: int, seconds: float) -> None:
        """Remember that `host` requested a pause."""
        self._pauses[host] = (monotonic() + min(seconds, MAX_PAUSE_SECONDS), status)
        self._pauses.move_to_end(host)
        if len(self._pauses) > MAX_HOSTS:
            self._pauses.popitem(last=False)

    def check(self, host: str) -> None:
        """Raise FetchError with code `status` during the pause of `host`."""
        end, status = self._pauses.get(host, (0.0, 0))
        remaining = end - monotonic()
        if remaining <= 0:
            self._pauses.pop(host, None)
            return
        reason = f"{host} answered {status} earlier and asked for a pause, which ends in {math.ceil(remaining)} s"
        raise FetchError("status", reason, "Try again then.", ErrorResponse(status, float(math.ceil(remaining))))


class ByteBudget:
    """At most `total` bytes for the pages that reserve bytes. If no other page has any, a page may have more."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._waiting: deque[tuple[int, anyio.Event]] = deque()
        self.in_use = 0
        """Number of bytes that large pages use now, or may still need."""

    @contextmanager
    def share(self, site: Stopwatch | None = None) -> Iterator["Share"]:
        """Open one page's share until the end of the block. `site` counts the site's time."""
        share = Share(self, site or Stopwatch())
        try:
            yield share
        finally:
            share.shrink_to(0)

    async def reserve(self, size: int) -> None:
        """Take `size` bytes, after waiting for the caller's turn and until they are available."""
        turn = (size, anyio.Event())
        self._waiting.append(turn)
        self.release(0)
        granted = False
        try:
            await turn[1].wait()
            granted = True
        finally:
            if not granted and turn[1].is_set():
                self.release(size)
            elif not granted:
                self._waiting.remove(turn)
                self.release(0)

    def release(self, size: int) -> None:
        """Return `size` bytes, and let the next pages take theirs."""
        self.in_use -= size
        while self._waiting and (not self.in_use or self.in_use + self._waiting[0][0] <= self._total):
            requested, turn = self._waiting.popleft()
            self.in_use += requested
            turn.set()


class Share:
    """One page's share of the budget."""

    def __init__(self, budget: ByteBudget, site: Stopwatch) -> None:
        self._budget = budget
        self.site = site
        """Measures the time that the site takes. It is paused while the page waits for bytes."""
        self._size = 0
        self.limit: CancelScope | None = None
        """The time limit of the load. Its deadline is extended by the time spent waiting for bytes."""

    async def ensure(self, size: int, maximum: int) -> None:
        """Ensure that the page may use `size` bytes. If that exceeds the free amount, reserve `maximum` at once."""
        if size <= max(FREE_BYTES, self._size):
            return
        self.shrink_to(0)
        with self.site.pause():
            # A load without a time limit gets one that never expires.
            limit = self.limit or CancelScope()
            remaining, limit.deadline = limit.deadline - anyio.current_time(), math.inf
            try:
                await self._budget.reserve(maximum)
            finally:
                limit.deadline = anyio.current_time() + remaining
        self._size = maximum

    def shrink_to(self, size: int) -> None:
        """Return all but `size` bytes."""
        if size < self._size:
            returned, self._size = self._size - size, size
            self._budget.release(returned)
