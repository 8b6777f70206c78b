"""Data that replicas keep for each other for a time, in Redis: see `scripts/blobs.lua`."""

import secrets

from .link import Link


class RedisBlobs:
    """`Blobs` in Redis. They raise OSError where Redis is away."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` for so long, under a `name` or one that can't be guessed, which this gives."""
        name = name or secrets.token_urlsafe(16)
        await self._link.ask("put_blob", name, data, max(1, round(seconds * 1000)))
        return name

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name; None where nothing is."""
        reply = await self._link.ask("get_blob", name)
        return None if reply is None else reply[0]

    async def claim(self, name: str, seconds: float) -> bool:
        """Whether nobody has claimed that name before, which is claimed for so long from now on."""
        return bool(await self._link.ask("claim", name, max(1, round(seconds * 1000))))
