"""Cursors of queries whose rows did not fit into one answer: each has its position in it, and for `KEPT` seconds the
source of its next rows is kept, which occupies a connection.

The oldest source is released first. A query whose source is gone, or is in another replica, runs again from its
position.
"""

import hashlib
import os
import struct
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

import anyio

from servers.common.sql.errors import SqlError

KEPT = 30.0
"""Seconds."""
KEPT_SHARE = 2
"""Of the connections of a database one in so many is kept at most: the others are for other queries."""
_DIGEST_BYTES, _SECRET_BYTES = 8, 6
_LAYOUT = struct.Struct(f">{_SECRET_BYTES}s{_DIGEST_BYTES}s{_DIGEST_BYTES}sQ")
"""A secret, then both digests of the position, then twice its offset, plus one where it is `changed`."""
_MOST_OFFSET = 2**31 - 1
"""What PostgreSQL takes as a count of rows."""

K = TypeVar("K")


class Position(NamedTuple):
    """How far a query has come."""

    asked: bytes
    """The fingerprint of who asks what of which database."""
    offset: int
    """Rows that were given."""
    state: bytes
    """The fingerprint of what the query saw: another one says that the database may have been changed."""
    changed: bool
    """Whether it may have been changed before these rows already."""


def fingerprint(*facts: object) -> bytes:
    """Return a digest of facts, such as client and query: a cursor is valid for these alone."""
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).digest()[:_DIGEST_BYTES]


class Cursors(Generic[K]):
    """The cursors of one server. `run` must run meanwhile; `let_go` releases a source that is no longer kept."""

    def __init__(self, let_go: Callable[[K], Awaitable[None]], kept_seconds: float) -> None:
        self._let_go = let_go
        self._kept_seconds = kept_seconds
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

    def place(self, position: Position, kept: K | None) -> str:
        """A cursor for what comes after `position`, with what is kept for it."""
        number = 2 * position.offset + position.changed
        # What `secrets` would give, which loads OpenSSL.
        packed = _LAYOUT.pack(os.urandom(_SECRET_BYTES), position.asked, position.state, number)
        cursor = urlsafe_b64encode(packed).decode()
        if kept is not None:
            self._kept[cursor] = kept, time.monotonic() + self._kept_seconds
            self._some.set()
        return cursor

    def find(self, cursor: str, asked: bytes) -> Position:
        """The position of a cursor, whichever replica gave it.

        Raises SqlError `bad_cursor` where it is none of this query and this client.
        """
        position = _parse(cursor)
        if position is None or position.asked != asked:
            reason = "the cursor is not one that this query gave"
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


def _parse(cursor: str) -> Position | None:
    """The position in a cursor; None where it is no text of ours."""
    try:
        _, asked, state, number = _LAYOUT.unpack(urlsafe_b64decode(cursor.encode()))
    except (ValueError, struct.error):
        return None
    offset, changed = divmod(number, 2)
    return Position(asked, offset, state, bool(changed)) if offset <= _MOST_OFFSET else None
