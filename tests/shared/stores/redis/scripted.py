"""Replicas that say themselves what they send to Redis, for the tests of its scripts."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha1
from typing import Any

from redis.asyncio import Redis

from shared.stores.redis.scripts import BATCH, JOIN, LEAVE
from tests.redis_server import RedisServer

__all__ = ["Scripted", "lasting", "scripted"]

ENTRY = 5
Operation = tuple[Any, ...]

LAST = {"numbers", "replicas"}
"""The keys that have no end: which number comes next, and who has one."""


class Scripted:
    """One replica."""

    def __init__(self, client: Redis, prefix: str) -> None:
        self.client = client
        self.prefix = prefix
        self.number, self.token, self.last = -1, secrets.token_hex(8), 0
        self._heard: list[list[bytes]] = []

    async def join(self, milliseconds: int = 60_000) -> int:
        self.number = await self._eval(JOIN, self.prefix, milliseconds, self.token)
        return self.number

    async def leave(self) -> int:
        left: int = await self._eval(LEAVE, self.prefix, self.number, self.token)
        return left

    async def send(self, batch: int, *operations: Operation) -> tuple[list[list[bytes]], list[Any]]:
        """The batch of that number: the entries of the inbox, and the replies."""
        words: list[Any] = []
        for name, *arguments in operations:
            words += (name, len(arguments), *arguments)
        await self.client.script_load(BATCH)
        digest = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
        answer: Any = self.client.evalsha(digest, 0, self.prefix, self.number, self.token, batch, *words)
        inbox, replies = await answer
        return [inbox[at : at + ENTRY] for at in range(0, len(inbox), ENTRY)], replies

    async def batch(self, *operations: Operation) -> list[Any]:
        """The replies to the next batch."""
        self.last += 1
        inbox, replies = await self.send(self.last, *operations)
        self._heard += inbox
        return replies

    async def do(self, name: str, *arguments: Any) -> Any:
        """The reply to one operation."""
        (reply,) = await self.batch((name, *arguments))
        return reply

    async def inbox(self) -> list[list[bytes]]:
        """What others have told it since it was asked last, without what is empty."""
        await self.batch(("look",))
        heard, self._heard = self._heard, []
        return [[one for one in entry if one] for entry in heard]

    async def die(self) -> None:
        """Its lease runs out."""
        await self.client.delete(f"{self.prefix}replica:{self.number}")

    async def key(self, name: str) -> dict[bytes, bytes]:
        """A hash, as it is."""
        found: Any = self.client.hgetall(f"{self.prefix}{name}")
        return dict(await found)

    async def left(self, name: str) -> int:
        """The milliseconds that a key is there; -1 where it has no end, -2 where it is not there."""
        return int(await self.client.pttl(f"{self.prefix}{name}"))

    async def expire(self, name: str) -> None:
        """A key is over."""
        assert await self.client.delete(f"{self.prefix}{name}")

    async def _eval(self, script: str, *arguments: Any) -> int:
        answer: Any = self.client.eval(script, 0, *arguments)
        return int(await answer)


async def lasting(client: Redis, prefix: str) -> set[str]:
    """The keys that have no end."""
    found = set()
    async for key in client.scan_iter(f"{prefix}*"):
        if await client.pttl(key) == -1:
            found.add(key.decode().removeprefix(prefix))
    return found


@asynccontextmanager
async def scripted(server: RedisServer, count: int = 1) -> AsyncIterator[list[Scripted]]:
    """So many replicas that have joined. Whatever they did, nothing of it may stay for good."""
    prefix = f"{secrets.token_hex(8)}:"
    async with Redis.from_url(server.url) as client:
        made = [Scripted(client, prefix) for _ in range(count)]
        for one in made:
            await one.join()
        yield made
        assert await lasting(client, prefix) <= LAST
