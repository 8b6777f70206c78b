"""Creates cursors for queries whose rows did not fit into one result.

A cursor contains its position in the query. The source of a cursor is the unfinished statement that returns the next
rows. It is kept for `SOURCE_SECONDS` seconds, and occupies a connection. The oldest source is released first. If the
source was released, or is at another replica, the query is run again, and the rows before the position are skipped.
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

from ..errors import SqlError

SOURCE_SECONDS = 30.0
"""Seconds for which the source of a cursor is kept."""
POOL_DIVISOR = 2
"""At most one in this many connections to a database is kept for cursors. The rest are for other queries."""
_DIGEST_BYTES, _SECRET_BYTES = 8, 6
"""Sizes in bytes of a fingerprint, and of the part of a cursor that can't be guessed."""
_LAYOUT = struct.Struct(f">{_SECRET_BYTES}s{_DIGEST_BYTES}s{_DIGEST_BYTES}sQ")
"""The contents of a cursor: a secret, and the position: its fingerprints `request` and `state`, and twice its offset,
plus 1 if `changed`."""
_MAX_OFFSET = 2**31 - 1
"""The largest row count that PostgreSQL accepts."""

K = TypeVar("K")


class Position(NamedTuple):
    """The position of a cursor in its query."""

    request: bytes
    """The fingerprint of the client, the query and the database."""
    offset: int
    """Number of rows returned so far."""
    state: bytes
    """The fingerprint of the state of the database that the query saw. If it differs later, the database may have
    been changed."""
    changed: bool
    """True if the database may already have been changed before these rows."""


def fingerprint(*facts: object) -> bytes:
    """Return a digest of values, such as the client and the query, to compare them later."""
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).digest()[:_DIGEST_BYTES]


class Cursors(Generic[K]):
    """Creates the cursors of one server, and keeps their sources. The method `run` must run in a task.

    `release` is called for each source that is no longer kept, after `kept_seconds` at the latest.
    """

    def __init__(self, release: Callable[[K], Awaitable[None]], kept_seconds: float) -> None:
        self._release = release
        self._kept_seconds = kept_seconds
        self._sources: OrderedDict[str, tuple[K, float]] = OrderedDict()
        self._has_sources = anyio.Event()

    async def run(self) -> None:
        """Release each source when it expires. When cancelled, release all the rest."""
        try:
            while True:
                await self._has_sources.wait()
                if not self._sources:
                    self._has_sources = anyio.Event()
                    continue
                # All sources are kept for the same time, so the oldest one expires first.
                cursor, (_, expires_at) = next(iter(self._sources.items()))
                await anyio.sleep(max(expires_at - time.monotonic(), 0))
                if cursor in self._sources:
                    await self._release(self._sources.pop(cursor)[0])
        finally:
            while self._sources:
                await self._release(self._sources.popitem()[1][0])

    def make_cursor(self, position: Position, source: K | None) -> str:
        """Return a cursor for the rows after `position`, and keep the source for it."""
        packed_offset = 2 * position.offset + position.changed
        # This does the same as `secrets.token_bytes`, but importing `secrets` would load OpenSSL.
        packed = _LAYOUT.pack(os.urandom(_SECRET_BYTES), position.request, position.state, packed_offset)
        cursor = urlsafe_b64encode(packed).decode()
        if source is not None:
            self._sources[cursor] = source, time.monotonic() + self._kept_seconds
            self._has_sources.set()
        return cursor

    def find(self, cursor: str, requested: bytes) -> Position:
        """Return the position in a cursor. Any replica may have created it.

        Raises SqlError with code `bad_cursor` if the cursor belongs to another query or client.
        """
        position = _parse(cursor)
        if position is None or position.request != requested:
            reason = "the cursor did not come from this query"
            raise SqlError("bad_cursor", reason, "Omit it to start from the first row.")
        return position

    def take(self, cursor: str) -> K | None:
        """Remove and return the source of a cursor; None if it was released. The caller must release it later."""
        entry = self._sources.pop(cursor, None)
        return None if entry is None else entry[0]

    def count(self, predicate: Callable[[K], bool]) -> int:
        """Count the kept sources that `predicate` accepts."""
        return sum(predicate(source) for source, _ in self._sources.values())

    async def release_oldest(self, predicate: Callable[[K], bool]) -> bool:
        """Release the oldest kept source that `predicate` accepts; return True if there was one."""
        for cursor, (source, _) in self._sources.items():
            if predicate(source):
                del self._sources[cursor]
                await self._release(source)
                return True
        return False


def _parse(cursor: str) -> Position | None:
    """Return the position in a cursor; None if it is invalid."""
    try:
        _, requested, state, packed_offset = _LAYOUT.unpack(urlsafe_b64decode(cursor.encode()))
    except (ValueError, struct.error):
        return None
    offset, changed = divmod(packed_offset, 2)
    return Position(requested, offset, state, bool(changed)) if offset <= _MAX_OFFSET else None
