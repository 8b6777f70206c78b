"""Breakable connections between replicas and Redis, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from redis import Redis as PlainRedis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shared.contracts import ReplicaWatcher
from shared.stores.redis.stores import RedisReplica, Stores
from tests.redis_server import RedisServer

__all__ = ["BATCH", "Proxy", "Watching", "connecting", "fresh", "plain", "proxied", "until"]

BATCH = b"EVALSHA"
PATIENCE = 30.0


async def until(holds: Callable[[], object]) -> None:
    """Waits until `holds()` is true."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.001)


def connecting(url: str) -> Callable[[], Redis]:
    """Returns a factory of clients as made for `--store`, without retries."""
    return lambda: Redis.from_url(url, retry=Retry(NoBackoff(), 0), socket_timeout=2.0, protocol=2)


def fresh(server: RedisServer, url: str | None = None, *, lease_seconds: float = 3_000.0) -> Stores:
    """Makes stores with a prefix of their own."""
    server.used += 1
    return Stores(connecting(url or server.url), f"{server.used}:", lease_seconds, b"secret")


def plain(server: RedisServer) -> PlainRedis:
    """Makes a client that blocks the event loop while it waits."""
    return PlainRedis(unix_socket_path=str(server.socket))


class Watching(ReplicaWatcher):
    """Records the losses and returns of a replica, with its numbers."""

    def __init__(self, replica: RedisReplica) -> None:
        self.heard: list[tuple[str, int]] = []
        self._replica = replica
        replica.watch(self)

    def on_lost(self) -> None:
        self.heard.append(("lost", self._replica.number))

    def on_return(self) -> None:
        self.heard.append(("returned", self._replica.number))

    def on_departure(self) -> None:
        """Ignores the departure of other replicas."""


class Proxy:
    """Forwards bytes between clients and Redis, but breaks the next batches. Each entry of `to_break` names what one
    batch loses: its "request" or its "reply"; a "late" one is sent only by `deliver`."""

    def __init__(self, server: RedisServer) -> None:
        self.url = ""
        self.to_break: list[str] = []
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: list[tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        answers, redis = await asyncio.open_unix_connection(self._server.socket)
        back = asyncio.create_task(self._pass_on(answers, writer))
        self._tasks |= {back, *filter(None, [asyncio.current_task()])}
        is_late = False
        try:
            while data := await reader.read(1_048_576):
                how = self.to_break.pop(0) if self.to_break and BATCH in data else ""
                if how in {"late", "reply"}:
                    back.cancel()
                    await asyncio.wait([back])
                if how == "late":
                    self._late.append((data, answers, redis))
                    is_late = True
                elif how != "request":
                    redis.write(data)
                if how == "reply":
                    await answers.readexactly(1)
                if how:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            back.cancel()
            writer.close()
            if not is_late:
                redis.close()

    async def close(self) -> None:
        """Ends all connections."""
        while self._late:
            self._late.pop()[2].close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def deliver_all(self) -> None:
        """Sends all late batches to Redis."""
        while self._late:
            await self.deliver()

    async def deliver(self) -> bytes:
        """Sends the late batch to Redis; returns the reply."""
        data, answers, redis = self._late.pop()
        redis.write(data)
        reply = await answers.read(1_000)
        redis.close()
        return reply

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1_048_576):
                writer.write(data)
        writer.close()


@asynccontextmanager
async def proxied(server: RedisServer) -> AsyncIterator[Proxy]:
    """Runs a proxy to that server on a port of its own."""
    proxy = Proxy(server)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"redis://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0"
    try:
        yield proxy
    finally:
        listening.close()
        await proxy.close()
