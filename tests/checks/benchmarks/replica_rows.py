"""What it costs that several processes serve one server together, over a Redis on this machine.

It writes down what it is told once a second.

The load, the server and Redis share the cores of this machine, so a second worker has none of its own where there are
two: that is why CPU time is compared, and the rates are there to be looked at.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest.mock import patch

import aiohttp

from tests.checks.benchmarks import messages, targets
from tests.checks.benchmarks.machine import busy_seconds, family, resident
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import Web, in_session
from tests.checks.benchmarks.wrk import SECONDS, load
from tests.checks.replicas.clients import SessionClient
from tests.checks.replicas.cluster import COUNTING, KEY, Replicas
from tests.checks.replicas.failures import Failed
from tests.npm import Unavailable
from tests.ports import free_port
from tests.redis_server import RedisServer

TURNS = 3
AT_ONCE = 32
SESSIONS = 10_000
BEFORE = 200
"""Sessions opened before memory is looked at: the first ones pay for what all of them share."""
KIB = 1_024

Figures = Iterator[tuple[Measure, float]]


@dataclass(frozen=True)
class Loaded:
    """A server under load: answers a second, and milliseconds of CPU time that each took of its processes."""

    rate: float
    cost: float


def store_rows(peer: Peer, folder: Path) -> Figures:
    """Requests in sessions, in memory and over Redis. Raises Unavailable."""
    with (
        redis_alone() as redis,
        _served(peer, folder) as memory,
        _served(peer, folder, *store_options(redis)) as shared,
    ):
        turns = {
            count: [(_loaded(memory, folder, count), _loaded(shared, folder, count)) for _ in range(TURNS)]
            for count in (AT_ONCE, 1)
        }
    for count, (alone, together, times) in ((AT_ONCE, targets.STORE_32), (1, targets.STORE_1)):
        yield alone, median(one.rate for one, _ in turns[count])
        yield together, median(one.rate for _, one in turns[count])
        yield times, median(other.cost / one.cost for one, other in turns[count])


def worker_rows(peer: Peer, folder: Path) -> Figures:
    """Requests in sessions, of one worker and of two. Raises Unavailable."""
    with (
        redis_alone() as redis,
        _served(peer, folder, *store_options(redis)) as one,
        _served(peer, folder, *store_options(redis, "two:"), "--workers", "2") as two,
    ):
        turns = [(_loaded(one, folder, AT_ONCE), _loaded(two, folder, AT_ONCE)) for _ in range(TURNS)]
    yield targets.ONE_WORKER, median(one.rate for one, _ in turns)
    yield targets.TWO_WORKERS, median(two.rate for _, two in turns)
    yield targets.WORKERS_TIMES, median(two.cost / one.cost for one, two in turns)


def session_rows(_peer: Peer, _folder: Path) -> Figures:
    """What sessions take of three replicas and of Redis, and how long it takes until the others answer what one owed
    that was killed. Raises Unavailable."""
    with redis_alone() as redis:
        yield from zip(targets.REPLICA_SESSIONS, asyncio.run(_sessions(redis)), strict=True)


@contextmanager
def redis_alone() -> Iterator[RedisServer]:
    """A Redis for one row. Raises Unavailable."""
    if shutil.which("redis-server") is None:
        raise Unavailable("redis-server is not installed (Debian and Ubuntu: apt install redis-server)")
    with tempfile.TemporaryDirectory() as folder:
        redis = RedisServer(Path(folder), "--appendonly", "yes", "--appendfsync", "everysec")
        redis.start()
        try:
            yield redis
        finally:
            redis.stop()


def store_options(redis: RedisServer, prefix: str = "mcp:") -> list[str]:
    """The options of a replica that uses `redis`."""
    return ["--store", redis.url, "--store-prefix", prefix]


@contextmanager
def _served(peer: Peer, folder: Path, *options: str) -> Iterator[Web]:
    port = free_port()
    assert peer.http is not None
    with ExitStack() as stack:
        with patch.dict(os.environ, {"MCP_STATE_KEY": KEY}):
            web = stack.enter_context(Web([*peer.http(folder, port), *options], port))
        yield web


def _loaded(web: Web, folder: Path, connections: int) -> Loaded:
    """The server under so many requests at once, each in a session of its own."""
    sessions = [in_session(web.open_session()) for _ in range(connections)]
    before = sum(map(busy_seconds, family(web.pid)))
    rate = load(web, messages.read(folder / messages.FILE), sessions, connections)
    took = sum(map(busy_seconds, family(web.pid))) - before
    return Loaded(rate, 1_000 * took / (rate * SECONDS))


# Many sessions


async def _sessions(redis: RedisServer) -> Sequence[float]:
    """KiB that a session takes of the replica where it was opened, of all three when all have served it, of Redis.
    The last is how many milliseconds it takes until what one owed is answered that was killed."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--folder", folder, "--max-sessions", str(4 * SESSIONS)]
        replicas = Replicas([*COUNTING, *options], 3, Path(folder), redis=redis)
        connector = aiohttp.TCPConnector(limit=AT_ONCE)
        async with replicas.running(), aiohttp.ClientSession(connector=connector) as http:
            await _use(replicas, await _opened(http, replicas, BEFORE))
            empty, kept = _held(replicas), redis.used_bytes()
            clients = await _opened(http, replicas, SESSIONS)
            at_one, in_redis = _held(replicas) - empty, redis.used_bytes() - kept
            await _use(replicas, clients)
            at_all = _held(replicas) - empty
            return (
                at_one * KIB / SESSIONS,
                at_all * KIB / SESSIONS,
                in_redis / KIB / SESSIONS,
                1_000 * await _taken_over(http, replicas),
            )


def _held(replicas: Replicas) -> float:
    return sum(resident(one.pid) for one in replicas.all)


async def _opened(http: aiohttp.ClientSession, replicas: Replicas, count: int) -> list[SessionClient]:
    """So many clients, each with a session at one of the replicas."""
    clients = [SessionClient(http, replicas[number % 3].url) for number in range(count)]
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(client.open() for client in clients[first : first + AT_ONCE]))
    return clients


async def _use(replicas: Replicas, clients: list[SessionClient]) -> None:
    """Has each session used at every replica."""
    for one in replicas.all:
        for client in clients:
            client.link.base_url = one.url
        for first in range(0, len(clients), AT_ONCE):
            await asyncio.gather(*(client.request("ping") for client in clients[first : first + AT_ONCE]))


async def _taken_over(http: aiohttp.ClientSession, replicas: Replicas) -> float:
    """Seconds from the death of a replica to the answer that another one gives in its place."""
    client = SessionClient(http, replicas[0].url)
    await client.open()
    call = client.new_call()
    asking = asyncio.ensure_future(client.tool("count", call, n=1_000_000, pause_ms=50))
    while not call.logs:
        await asyncio.sleep(0.01)
    client.link.base_url = replicas[1].url
    replicas[0].kill()
    died = time.perf_counter()
    try:
        await asking
    except Failed:
        return time.perf_counter() - died
    raise ValueError("a replica that is gone has answered")
