"""Cursors of queries whose rows did not fit into one answer: the position of each, and for `KEPT` seconds the source
of its next rows, which occupies a connection.

The oldest source is released first. A query whose source is gone runs again from its position.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.handles import HeldNames

KEPT = 30.0
"""Seconds."""
KEPT_SHARE = 2
"""Of the connections of a database one in so many is kept at most: the others are for other queries."""
_MOST_POSITIONS = 1_000


class _Asked(Protocol):
    """A position in the rows of a query."""

    @property
    def asked(self) -> bytes:
        """The fingerprint of who asks what of which database."""


P = TypeVar("P", bound=_Asked)
K = TypeVar("K")


def fingerprint(*asked: object) -> bytes:
    """Return a digest of client and query: a cursor is valid for these alone."""
    return hashlib.sha256(repr(asked).encode("utf-8", "replace")).digest()


class Cursors(Generic[P, K]):
    """The cursors of one server. `run` must run meanwhile; `let_go` releases a source that is no longer kept."""

    def __init__(self, let_go: Callable[[K], Awaitable[None]], kept_seconds: float) -> None:
        self._let_go = let_go
        self._kept_seconds = kept_seconds
        self._names = HeldNames()
        self._positions: OrderedDict[str, P] = OrderedDict()
        self._kept: OrderedDict[str, tuple[K, float]] = OrderedDict()
        self._some = anyio.Event()

    async def run(self) -> None:
        """Lets go of what is kept when its time is over, until it is cancelled; then of all the rest."""
        try:
            while True:
                await self._some.wait()
                if not self._kept:
                    self._some = anyio.Event()
                    continue
                # All are kept for the same time, so the oldest expires first.
                cursor, (_, until) = next(iter(self._kept.items()))
                await anyio.sleep(max(until - time.monotonic(), 0))
                if cursor in self._kept:
                    await self._let_go(self._kept.pop(cursor)[0])
        finally:
            while self._kept:
                await self._let_go(self._kept.popitem()[1][0])

    def place(self, position: P, kept: K | None) -> str:
        """A cursor for what comes after `position`, with what is kept for it."""
        cursor = self._names.new()
        self._positions[cursor] = position
        if len(self._positions) > _MOST_POSITIONS:
            self._positions.popitem(last=False)
        if kept is not None:
            self._kept[cursor] = kept, time.monotonic() + self._kept_seconds
            self._some.set()
        return cursor

    def find(self, cursor: str, asked: bytes) -> P:
        """The position of a cursor.

        Raises SqlError, `bad_cursor` where it is none of this query and this client, or too many came after it,
        `elsewhere` where another process gave it.
        """
        position = self._positions.get(cursor)
        if position is None or position.asked != asked:
            self._names.check_here(cursor, "what comes after this cursor", "Run the query again without a cursor.")
            reason = "the cursor is not one that this query gave, or it is too old"
            raise SqlError("bad_cursor", reason, "Leave it out to begin at the first row.")
        return position

    def take(self, cursor: str) -> K | None:
        """What is kept for a cursor, which the caller has from now on; None where that is nothing any more."""
        kept = self._kept.pop(cursor, None)
        return None if kept is None else kept[0]

    def count(self, is_meant: Callable[[K], bool]) -> int:
        """How many are kept of those that are meant."""
        return sum(is_meant(kept) for kept, _ in self._kept.values())

    async def press(self, is_meant: Callable[[K], bool]) -> bool:
        """Lets go of what is kept longest of those that are meant; whether there was any."""
        for cursor, (kept, _) in self._kept.items():
            if is_meant(kept):
                del self._kept[cursor]
                await self._let_go(kept)
                return True
        return False
