"""Data by name in the memory of one process, for a time."""

import secrets
import time
from collections.abc import Callable


class MemoryBlobs:
    """`Blobs` in memory. Its methods never suspend."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, bytes]] = {}

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` for so long, under a `name` or one that can't be guessed, which this gives."""
        self._drop_expired()
        name = name or secrets.token_urlsafe(16)
        self._kept[name] = self._clock() + seconds, data
        return name

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name; None where nothing is."""
        ends, data = self._kept.get(name, (0.0, b""))
        return data if ends > self._clock() else None

    async def claim(self, name: str, seconds: float) -> bool:
        """Whether nobody has claimed that name before, which is claimed for so long from now on."""
        self._drop_expired()
        is_new = name not in self._kept
        if is_new:
            self._kept[name] = self._clock() + seconds, b""
        return is_new

    def _drop_expired(self) -> None:
        now = self._clock()
        self._kept = {name: kept for name, kept in self._kept.items() if kept[0] > now}
