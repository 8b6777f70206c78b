"""Replicas with operations chosen by the test, for the tests of the Redis scripts."""

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
"""The keys without expiry: the next number, and the numbers in use."""


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
        """Sends a batch under that number; returns the inbox entries and the replies."""
        words: list[Any] = []
        for name, *arguments in operations:
            words += (name, len(arguments), *arguments)
        await self.client.script_load(BATCH)
        digest = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
        answer: Any = self.client.evalsha(digest, 0, self.prefix, self.number, self.token, batch, *words)
        inbox, replies = await answer
        return [inbox[at : at + ENTRY] for at in range(0, len(inbox), ENTRY)], replies

    async def batch(self, *operations: Operation) -> list[Any]:
        """Sends the next batch; returns its replies."""
        self.last += 1
        inbox, replies = await self.send(self.last, *operations)
        self._heard += inbox
        return replies

    async def do(self, name: str, *arguments: Any) -> Any:
        """Runs one operation; returns its reply."""
        (reply,) = await self.batch((name, *arguments))
        return reply

    async def inbox(self) -> list[list[bytes]]:
        """Returns the news since the last call, without empty fields."""
        await self.batch(("look",))
        heard, self._heard = self._heard, []
        return [[one for one in entry if one] for entry in heard]

    async def die(self) -> None:
        """Ends the lease."""
        await self.client.delete(f"{self.prefix}replica:{self.number}")

    async def key(self, name: str) -> dict[bytes, bytes]:
        """Returns a hash."""
        found: Any = self.client.hgetall(f"{self.prefix}{name}")
        return dict(await found)

    async def ttl(self, name: str) -> int:
        """Returns the milliseconds until a key expires; -1 if it has no expiry, -2 if it does not exist."""
        return int(await self.client.pttl(f"{self.prefix}{name}"))

    async def expire(self, name: str) -> None:
        """Deletes a key, as its expiry would."""
        assert await self.client.delete(f"{self.prefix}{name}")

    async def _eval(self, script: str, *arguments: Any) -> int:
        answer: Any = self.client.eval(script, 0, *arguments)
        return int(await answer)


async def lasting(client: Redis, prefix: str) -> set[str]:
    """Returns the keys without expiry."""
    found = set()
    async for key in client.scan_iter(f"{prefix}*"):
        if await client.pttl(key) == -1:
            found.add(key.decode().removeprefix(prefix))
    return found


@asynccontextmanager
async def scripted(server: RedisServer, count: int = 1) -> AsyncIterator[list[Scripted]]:
    """Yields so many joined replicas. All keys that they leave must expire."""
    prefix = f"{secrets.token_hex(8)}:"
    async with Redis.from_url(server.url) as client:
        made = [Scripted(client, prefix) for _ in range(count)]
        for one in made:
            await one.join()
        yield made
        assert await lasting(client, prefix) <= LAST
