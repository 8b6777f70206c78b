"""How many bytes of large pages a process holds at once, however many are loaded and read.

A page takes a little without asking. One that turns out to be larger takes all that it may come to need in one step,
behind those that came before, and gives back what it did not need: so none waits for room that another holds while
that one waits, too.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio import CancelScope

__all__ = ["Budget", "Share"]

LITTLE = 1_000_000
"""Bytes that a page takes without asking."""


class Budget:
    """At most `total` bytes for the pages that have more than a little. One page alone may have more."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._waiting: deque[tuple[int, anyio.Event]] = deque()
        self.held = 0
        """Bytes that large pages have now, or may come to have."""

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """What one page takes, until the end of the block."""
        share = Share(self)
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
            if not came:
                self._leave(turn)

    def _leave(self, turn: tuple[int, anyio.Event]) -> None:
        size, called = turn
        if called.is_set():
            self.give(size)
        else:
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

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._size = 0
        self.limit: CancelScope | None = None
        """What ends the load. Its deadline is put off by the time that is waited here."""

    async def need(self, size: int, most: int) -> None:
        """Sees to it that there is room for `size` bytes. Where that is more than a little, takes `most` at once."""
        if size <= max(LITTLE, self._size):
            return
        self.keep(0)
        if self.limit is None:
            await self._budget.take(most)
        else:
            await self._take_within(self.limit, most)
        self._size = most

    async def _take_within(self, limit: CancelScope, size: int) -> None:
        left = limit.deadline - anyio.current_time()
        limit.deadline = float("inf")
        try:
            await self._budget.take(size)
        finally:
            limit.deadline = anyio.current_time() + left

    def keep(self, size: int) -> None:
        """Gives back all but `size` bytes."""
        if size < self._size:
            given, self._size = self._size - size, size
            self._budget.give(given)
