"""Data that the replicas of this server share for a limited time: sites' responses, and pages as they were read.

If the store is unreachable or its data unreadable, it counts as empty, since each replica can load a page itself. The
store also contains the sessions of all clients and evicts nothing, so each replica limits the number of bytes that it
stores in it.
"""

import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

from anyio import to_thread
from pydantic import ConfigDict, TypeAdapter

from .cache import StoredAnswer

T = TypeVar("T")

MAX_COMPRESSED_BYTES = 1024 * 1024
"""Maximum compressed size of an entry in bytes. Redis serves no other requests while it stores an entry."""
MAX_UNCOMPRESSED_BYTES = 8 * MAX_COMPRESSED_BYTES
"""Maximum uncompressed size of an entry in bytes. Larger ones rarely compress enough, and the attempt takes long."""
MAX_TOTAL_BYTES = 16 * MAX_COMPRESSED_BYTES
"""Maximum total size in bytes of all entries of one kind that one replica stores."""
_ANSWER_SECONDS = 3_600.0
"""Seconds for which a response is stored."""
_DELETE_SECONDS = 1.0
"""Seconds until an empty entry expires. The store can't delete an entry, so an empty one replaces it."""
_BYTES_AS_TEXT = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class Blobs(Protocol):
    """Data stored by name for a limited time, in the namespace of this package. Both methods raise OSError if the
    store can't be reached."""

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` under a name."""

    async def get(self, name: str) -> bytes | None:
        """Return the data stored under that name."""


class SharedEntries(Generic[T]):
    """Entries of one kind. A key is a sequence of words."""

    def __init__(
        self,
        blobs: Blobs,
        kind: str,
        type_: type[T],
        seconds: float,
        *,
        room: int = MAX_TOTAL_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a store whose entries last `seconds`. To stay within `room` bytes, the oldest entries of this
        replica are dropped.
        """
        self._blobs = blobs
        self._kind = kind
        self._seconds = seconds
        self._room = room
        self._clock = clock
        self._own_entries: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """The entries that this replica has stored, oldest first: when each expires, and its size in bytes."""
        self._used_bytes = 0
        # A named tuple accepts no such configuration, so it is wrapped in a list.
        self._adapter: TypeAdapter[list[T]] = TypeAdapter(list[type_], config=_BYTES_AS_TEXT)  # type: ignore[valid-type]

    async def get(self, *words: str) -> T | None:
        """Return the entry with this key."""
        try:
            data = await self._blobs.get(self._make_name(words))
            if not data:
                return None
            entries = await to_thread.run_sync(lambda: self._adapter.validate_json(zlib.decompress(data)))
            return entries[0]
        except (OSError, ValueError, zlib.error):
            return None

    async def put(self, entry: T, size: int, *words: str) -> None:
        """Replace the entry with this key by `entry`, whose approximate size is `size` bytes. If `entry` is too
        large, only delete the old one.
        """
        data = b""
        if size <= MAX_UNCOMPRESSED_BYTES:
            data = await to_thread.run_sync(lambda: zlib.compress(self._adapter.dump_json([entry]), 1))
        if not data or len(data) > min(MAX_COMPRESSED_BYTES, self._room):
            await self.drop(*words)
            return
        name = self._make_name(words)
        self._forget(name)
        while self._own_entries and (
            self._used_bytes + len(data) > self._room or next(iter(self._own_entries.values()))[0] < self._clock()
        ):
            await self._drop(next(iter(self._own_entries)))
        self._forget(name)  # another call may have stored it in the meantime
        self._own_entries[name] = self._clock() + self._seconds, len(data)
        self._used_bytes += len(data)
        with suppress(OSError):
            await self._blobs.put(data, self._seconds, name)

    async def drop(self, *words: str) -> None:
        """Delete the entry with this key, whichever replica stored it."""
        await self._drop(self._make_name(words))

    async def _drop(self, name: str) -> None:
        self._forget(name)
        with suppress(OSError):
            await self._blobs.put(b"", _DELETE_SECONDS, name)

    def _forget(self, name: str) -> None:
        self._used_bytes -= self._own_entries.pop(name, (0.0, 0))[1]

    def _make_name(self, words: tuple[str, ...]) -> str:
        return f"{self._kind}:{sha256(chr(0).join(words).encode('utf-8', 'surrogatepass')).hexdigest()}"


class SharedCache:
    """Responses by URL. The replica that reads an entry decides whether it is fresh."""

    def __init__(self, blobs: Blobs, room: int = MAX_TOTAL_BYTES) -> None:
        self._entries = SharedEntries(blobs, "answer", StoredAnswer, _ANSWER_SECONDS, room=room)

    async def find(self, url: str, sent: Mapping[str, str]) -> StoredAnswer | None:
        """Return the stored response for `url` that matches a request with these headers, fresh or not."""
        stored = await self._entries.get(url)
        return stored if stored is not None and stored.matches(sent) else None

    async def put(self, url: str, answer: StoredAnswer) -> None:
        """Replace the stored response for `url` with `answer`, if it may be stored."""
        if answer.is_storable():
            await self._entries.put(answer, answer.size(), url)
        else:
            await self.drop(url)

    async def drop(self, url: str) -> None:
        """Remove the stored response for `url`."""
        await self._entries.drop(url)
