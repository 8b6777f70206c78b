"""Data stored by name for a limited time, in the memory of one process."""

import secrets
import time


class MemoryBlobs:
    """`Blobs` in memory. Its methods never suspend."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, bytes]] = {}

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` for `seconds`. Return its name: `name`, or a new one that can't be guessed."""
        self._drop_expired()
        name = name or secrets.token_urlsafe(16)
        self._entries[name] = time.monotonic() + seconds, data
        return name

    async def get(self, name: str) -> bytes | None:
        """Return the data with this name; None if there is none, or no longer."""
        ends, data = self._entries.get(name, (0.0, b""))
        return data if ends > time.monotonic() else None

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim `name` for `seconds`. Return False if it is already claimed."""
        self._drop_expired()
        is_new = name not in self._entries
        if is_new:
            self._entries[name] = time.monotonic() + seconds, b""
        return is_new

    def _drop_expired(self) -> None:
        now = time.monotonic()
        self._entries = {name: entry for name, entry in self._entries.items() if entry[0] > now}
