"""What the replicas of this server keep for each other for a time: answers of sites, and pages as they were read.

Where it can't be reached, or what it has can't be read, it has nothing: each replica can load a page by itself. The
store holds the sessions of all clients as well and gives nothing up for room, so each replica puts no more than so
many bytes there.
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

from servers.fetch.load.cache import Kept

T = TypeVar("T")

MOST_BYTES = 1024 * 1024
"""Of one entry, compressed: while Redis takes it in, nobody else is served."""
MOST_PLAIN = 8 * MOST_BYTES
"""Of one entry as it is: what is larger seldom becomes small enough, and takes long to try."""
ROOM = 16 * MOST_BYTES
"""Of all entries of one kind that one replica has put there."""
_ANSWER_SECONDS = 3_600.0
_MOMENT = 1.0
_BYTES_AS_TEXT = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class Blobs(Protocol):
    """Data by name, for a time: those of the package. Both raise OSError where they can't be reached."""

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` under a name."""

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name."""


class SharedEntries(Generic[T]):
    """Entries of one kind, by the words that name them."""

    def __init__(
        self,
        blobs: Blobs,
        kind: str,
        type_: type[T],
        seconds: float,
        *,
        room: int = ROOM,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Each is kept for `seconds`. Those that were put here first go before there are more than `room` bytes."""
        self._blobs = blobs
        self._kind = kind
        self._seconds = seconds
        self._room = room
        self._clock = clock
        self._put: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """What this replica has put: until when it is there, and its bytes; in the order in which it goes."""
        self._taken = 0
        # A record of several fields has no room for these settings, so it stands in a list.
        self._adapter: TypeAdapter[list[T]] = TypeAdapter(list[type_], config=_BYTES_AS_TEXT)  # type: ignore[valid-type]

    async def get(self, *words: str) -> T | None:
        """The entry of these words."""
        try:
            data = await self._blobs.get(self._name(words))
            if not data:
                return None
            entries = await to_thread.run_sync(lambda: self._adapter.validate_json(zlib.decompress(data)))
            return entries[0]
        except (OSError, ValueError, zlib.error):
            return None

    async def put(self, entry: T, size: int, *words: str) -> None:
        """Keeps the entry of these words in place of the one before; of about `size` bytes, where they are not too
        many. Else there is none of these words from then on."""
        data = b""
        if size <= MOST_PLAIN:
            data = await to_thread.run_sync(lambda: zlib.compress(self._adapter.dump_json([entry]), 1))
        if not data or len(data) > min(MOST_BYTES, self._room):
            await self.drop(*words)
            return
        name = self._name(words)
        self._forget(name)
        while self._put and (
            self._taken + len(data) > self._room or next(iter(self._put.values()))[0] < self._clock()
        ):
            await self._drop(next(iter(self._put)))
        self._put[name] = self._clock() + self._seconds, len(data)
        self._taken += len(data)
        with suppress(OSError):
            await self._blobs.put(data, self._seconds, name)

    async def drop(self, *words: str) -> None:
        """Has no entry of these words, whoever put it there."""
        await self._drop(self._name(words))

    async def _drop(self, name: str) -> None:
        self._forget(name)
        with suppress(OSError):
            await self._blobs.put(b"", _MOMENT, name)

    def _forget(self, name: str) -> None:
        self._taken -= self._put.pop(name, (0.0, 0))[1]

    def _name(self, words: tuple[str, ...]) -> str:
        return f"{self._kind}:{sha256(chr(0).join(words).encode('utf-8', 'surrogatepass')).hexdigest()}"


class SharedCache:
    """Answers by URL. Whether one is fresh, whoever finds it judges."""

    def __init__(self, blobs: Blobs, room: int = ROOM) -> None:
        self._entries = SharedEntries(blobs, "answer", Kept, _ANSWER_SECONDS, room=room)

    async def find(self, url: str, sent: Mapping[str, str]) -> Kept | None:
        """What is kept of `url` and fits such a request, fresh or not."""
        found = await self._entries.get(url)
        return found if found is not None and found.fits(sent) else None

    async def put(self, url: str, one: Kept) -> None:
        """Keeps `one` in place of what was kept of `url`, where it may be kept."""
        if one.is_storable():
            await self._entries.put(one, one.size(), url)
        else:
            await self.drop(url)

    async def drop(self, url: str) -> None:
        """Forgets `url`."""
        await self._entries.drop(url)
