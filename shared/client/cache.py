"""A cache of limited size for the results of servers (2026-07-28, Caching).

    track(key) ──▶ PendingRequest ──▶ store(result) ──▶ find(key) ──▶ CacheEntry
                          │                                 │
                expire() makes it stale          expire() ends its freshness

A result is fresh for its `ttlMs`, or until a notification reports a change. A stale result stays in the cache if it
has an etag, so that the server need not send it again if it is unchanged. A result that the server calls "public" is
shared by all clients of this cache that use the same server; any other result is used only by the client that
received it.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from ..protocol.types.resources import ETAG

CACHE_BYTES = 8 * 1024 * 1024
MAX_FRESH_SECONDS = 86_400
"""Maximum number of seconds for which a result is fresh, a day, even if the server allows more: it may fail to report
changes."""
ENTRY_BYTES = 512
"""The approximate size of an entry without its data."""
_MAX_ETAG_LENGTH = 256
"""The maximum length of an etag that is sent back; a longer one is ignored."""


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Identifies a cacheable request by its server, its client, its method and its `target`."""

    server: Hashable
    owner: Hashable
    """The client that sends the request; None for public results."""
    method: str
    target: str | None
    """The `cursor` of a list, or the `uri` of a read."""

    def as_public(self) -> "CacheKey":
        """Return the same key, for a public result."""
        return CacheKey(self.server, None, self.method, self.target)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cached result, stored as bytes so that it can't be changed and its size is known."""

    data: bytes
    fresh_until: float
    """The end of its freshness, on the clock of the cache."""
    etag: str | None
    key_length: int = 0
    """The length of the key's cursor or URI, which the server may have chosen."""

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return ENTRY_BYTES + self.key_length + len(self.data)

    def result(self) -> dict[str, Any]:
        """Return the result, as a new object each time."""
        result: dict[str, Any] = from_json(self.data)
        return result


class PendingRequest:
    """A request that has been sent and not yet answered."""

    def __init__(self, cache_key: CacheKey, store: Callable[[CacheKey, dict[str, Any]], None]) -> None:
        self.cache_key = cache_key
        self.is_stale = False
        """True if something has changed since the request was sent: the answer may be older than the change."""
        self._store = store

    def store(self, result: dict[str, Any]) -> None:
        """Cache the result, if it is reusable."""
        if not self.is_stale:
            self._store(self.cache_key, result)


class ResponseCache:
    """The cached results by key, with a total size of at most `max_bytes`. The least recently used results are
    evicted first. Clients in the same event loop may share a cache. `clock` returns seconds."""

    def __init__(self, max_bytes: int = CACHE_BYTES, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        """The current size in bytes."""
        self._clock = clock
        self._entries: OrderedDict[CacheKey, CacheEntry] = OrderedDict()
        self._pending: set[PendingRequest] = set()

    def find(self, cache_key: CacheKey) -> CacheEntry | None:
        """Return the cached result, fresh or stale: the client's own, or the public one; None if there is none."""
        stored_key = cache_key if cache_key in self._entries else cache_key.as_public()
        if stored_key not in self._entries:
            return None
        self._entries.move_to_end(stored_key)
        return self._entries[stored_key]

    def is_fresh(self, entry: CacheEntry) -> bool:
        """Return True if the result may be used without asking the server."""
        return self._clock() < entry.fresh_until

    @contextmanager
    def track(self, cache_key: CacheKey) -> Iterator[PendingRequest]:
        """Yield a pending request, which becomes stale if its result changes during the block."""
        pending = PendingRequest(cache_key, self._store)
        self._pending.add(pending)
        try:
            yield pending
        finally:
            self._pending.discard(pending)

    def expire(self, is_affected: Callable[[CacheKey], bool]) -> None:
        """Make the results that `is_affected` selects stale, including the results of pending requests."""
        for pending in self._pending:
            pending.is_stale = pending.is_stale or is_affected(pending.cache_key)
        for cache_key in [candidate for candidate in self._entries if is_affected(candidate)]:
            entry = self._entries[cache_key]
            if entry.etag is None:
                self._drop(cache_key)
            else:
                self._entries[cache_key] = replace(entry, fresh_until=float("-inf"))

    def forget(self, is_affected: Callable[[CacheKey], bool]) -> None:
        """Remove the results that `is_affected` selects, even if they have etags."""
        self.expire(is_affected)
        for cache_key in [candidate for candidate in self._entries if is_affected(candidate)]:
            self._drop(cache_key)

    def _store(self, cache_key: CacheKey, result: dict[str, Any]) -> None:
        public_key = cache_key.as_public()
        key = public_key if result.get("cacheScope") == "public" else cache_key
        self._drop(cache_key)
        self._drop(public_key)
        ttl, meta = result.get("ttlMs"), result.get("_meta")
        seconds = min(max(ttl, 0), MAX_FRESH_SECONDS * 1000) / 1000 if type(ttl) is int else 0.0
        etag = meta.get(ETAG) if isinstance(meta, dict) else None
        if not isinstance(etag, str) or len(etag) > _MAX_ETAG_LENGTH:
            etag = None
        is_complete = result.get("resultType", "complete") == "complete"
        if not is_complete or (seconds <= 0 and etag is None) or _min_size(result) > self.max_bytes:
            return
        try:
            entry = CacheEntry(
                to_json(result, inf_nan_mode="constants"), self._clock() + seconds, etag, len(cache_key.target or "")
            )
        except PydanticSerializationError:  # it contains a lone surrogate, which JSON in UTF-8 can't represent
            return
        if entry.size <= self.max_bytes:
            self._entries[key] = entry
            self.size += entry.size
        while self.size > self.max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, cache_key: CacheKey) -> None:
        entry = self._entries.pop(cache_key, None)
        self.size -= 0 if entry is None else entry.size


def _min_size(result: dict[str, Any]) -> int:
    """Return a lower bound of the size in bytes of a serialized read result, so that a result that is too large is
    not serialized in vain."""
    contents = result.get("contents")
    blocks = [block for block in contents if isinstance(block, dict)] if isinstance(contents, list) else []
    return sum(
        len(text) for block in blocks for text in (block.get("text"), block.get("blob")) if isinstance(text, str)
    )
