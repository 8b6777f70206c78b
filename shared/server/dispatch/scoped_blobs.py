"""What the runs for one principal keep for each other at all replicas, apart from the runs for others."""

import secrets
from typing import TYPE_CHECKING, Any

from ...contracts import Blobs

if TYPE_CHECKING:
    from ..running import Running

__all__ = ["RunBlobs"]


class RunBlobs:
    """`Blobs` of one run. Runs that are narrowed to different principals do not see each other's: they may have been
    given other settings, as credentials."""

    def __init__(self, running: "Running[Any]", blobs: Blobs) -> None:
        self._running = running
        self._blobs = blobs

    async def put(self, data: bytes, seconds: float, name: str | None = None) -> str:
        """Keeps `data` for so long, under a `name` or one that can't be guessed, which this gives."""
        name = name or secrets.token_urlsafe(16)
        await self._blobs.put(data, seconds, self._whole(name))
        return name

    async def get(self, name: str) -> bytes | None:
        """What is kept under that name; None where nothing is."""
        return await self._blobs.get(self._whole(name))

    async def claim(self, name: str, seconds: float) -> bool:
        """Whether nobody has claimed that name before, which is claimed for so long from now on."""
        return await self._blobs.claim(self._whole(name), seconds)

    def _whole(self, name: str) -> str:
        # Not before it is needed: whom a run serves is said when it is open. A name has no NUL.
        return f"run:{self._running.run}\0{name}"
