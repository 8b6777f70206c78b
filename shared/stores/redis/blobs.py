"""Data that replicas store for each other for a limited time, in Redis: see `scripts/blobs.lua`."""

import secrets

from .link import Link


class RedisBlobs:
    """`Blobs` in Redis. The methods raise OSError while Redis can't be reached."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Store `data` for `seconds`. Return its name: `name`, or a new one that can't be guessed."""
        name = name or secrets.token_urlsafe(16)
        await self._link.ask("put_blob", name, data, max(1, round(seconds * 1000)))
        return name

    async def get(self, name: str) -> bytes | None:
        """Return the data with this name; None if there is none, or no longer."""
        reply = await self._link.ask("get_blob", name)
        return None if reply is None else reply[0]

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim `name` for `seconds`. Return False if it is already claimed."""
        return bool(await self._link.ask("claim", name, max(1, round(seconds * 1000))))
