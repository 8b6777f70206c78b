"""What the replicas of this server keep for each other for a time: answers of sites, and pages as they were read.

Where it can't be reached, or what it has can't be read, it has nothing: each replica can load a page by itself.
"""

import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

from pydantic import ConfigDict, TypeAdapter

from servers.fetch.load.cache import Kept

T = TypeVar("T")

MOST_BYTES = 1024 * 1024
"""Of one entry, compressed: while Redis takes it in, nobody else is served."""
_ANSWER_SECONDS = 3_600.0
_BYTES_AS_TEXT = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class Blobs(Protocol):
    """Data by name, for a time: those of the package. Both raise OSError where they can't be reached."""

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` under a name."""

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name."""


class SharedEntries(Generic[T]):
    """Entries of one kind, by the words that name them."""

    def __init__(self, blobs: Blobs, kind: str, type_: type[T], seconds: float) -> None:
        self._blobs = blobs
        self._kind = kind
        self._seconds = seconds
        # A record of several fields has no room for these settings, so it stands in a list.
        self._adapter: TypeAdapter[list[T]] = TypeAdapter(list[type_], config=_BYTES_AS_TEXT)  # type: ignore[valid-type]

    async def get(self, *words: str) -> T | None:
        """The entry of these words."""
        try:
            data = await self._blobs.get(self._name(words))
            return None if data is None else self._adapter.validate_json(zlib.decompress(data))[0]
        except (OSError, ValueError, zlib.error):
            return None

    async def put(self, entry: T, *words: str) -> None:
        """Keeps the entry of these words, where it is not too large."""
        data = zlib.compress(self._adapter.dump_json([entry]), 1)
        if len(data) > MOST_BYTES:
            return
        try:
            await self._blobs.put(data, self._seconds, self._name(words))
        except OSError:
            return

    def _name(self, words: tuple[str, ...]) -> str:
        return f"{self._kind}:{sha256(chr(0).join(words).encode('utf-8', 'surrogatepass')).hexdigest()}"


class SharedCache:
    """Answers by URL. Whether one is fresh, whoever finds it judges."""

    def __init__(self, blobs: Blobs) -> None:
        self._entries = SharedEntries(blobs, "answer", Kept, _ANSWER_SECONDS)

    async def find(self, url: str, sent: Mapping[str, str]) -> Kept | None:
        """What is kept of `url` and fits such a request, fresh or not."""
        found = await self._entries.get(url)
        return found if found is not None and found.fits(sent) else None

    async def put(self, url: str, one: Kept) -> None:
        """Keeps `one` where it may be kept."""
        if one.is_storable():
            await self._entries.put(one, url)
