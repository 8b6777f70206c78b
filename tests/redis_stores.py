"""Stores in a real Redis, for tests: isolated from each other, and with a clock that can be set ahead."""

import secrets

from redis.asyncio import Redis

from shared.stores.redis.stores import Stores
from tests.clock import forward
from tests.quiet import quiet
from tests.redis_server import RedisServer

__all__ = ["InRedis"]


class InRedis(Stores):
    def __init__(self, server: RedisServer, lease_seconds: float = 3_000.0) -> None:
        self.prefix = f"{secrets.token_hex(8)}:"
        self.server = server
        super().__init__(lambda: Redis.from_url(server.url), self.prefix, lease_seconds, b"secret")

    async def let_pass(self, seconds: float) -> None:
        """Shortens every expiry by `seconds`, except those of leases, which are renewed."""
        async with Redis.from_url(self.server.url) as client:
            async for key in client.scan_iter(f"{self.prefix}*"):
                left = await client.pttl(key)
                if left > 0 and b":replica:" not in key:
                    await client.pexpire(key, max(left - round(seconds * 1000), 0))
        forward(seconds)
        await quiet()
