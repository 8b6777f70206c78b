"""Hard times for a server, and what its clients see of them: counted, so that tests can check it and a benchmark can
print it.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from tests.checks.benchmarks.machine import peak, resident
from tests.postgres_server import SUPERUSER, PostgresServer, short_folder
from tests.servers.crowds import client_at, result_of
from tests.servers.postgres.databases import READER, SAMPLE, Database, make_sample
from tests.servers.postgres.serving import Peer, command, served
from tests.wire import PATIENCE, Json, start_http

__all__ = ["AT_ONCE", "Seen", "cluster", "crowd", "fail_over", "hold_lock", "page_through", "under_load"]

_ROWS = "SELECT n, n * n FROM generate_series($1::bigint, $1::bigint + 9) AS n"
AT_ONCE = 8
"""Calls under way while something happens."""


@dataclass
class Seen:
    """What became of calls."""

    good: int = 0
    wrong: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """Of the errors, each how often."""
    longest: float = 0
    """Seconds that a call took."""
    seconds: float = 0
    """What all took together."""
    back: float = 0
    """Seconds from the moment when the database was there again to the next good answer."""

    def add(self, result: Json, expected: object) -> bool:
        """Whether that is a good one."""
        if result.get("isError"):
            self.codes[result["content"][0]["text"].partition(":")[0]] += 1
            return False
        is_right = result["structuredContent"]["rows"] == expected
        self.good += is_right
        self.wrong += not is_right
        return is_right


async def under_load(peer: Peer, disturb: Callable[[], None]) -> Seen:
    """Calls one after the other, some at once, while `disturb` runs in a thread, and until there is an answer after
    it. Each answer has other rows."""
    seen, began, ready = Seen(), time.monotonic(), 0.0
    sent: dict[int, float] = {}

    async def send(number: int) -> None:
        sent[number] = time.monotonic()
        params = {"name": "read_query", "arguments": {"query": _ROWS, "parameters": [number]}}
        await peer.wire.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    async def run() -> None:
        nonlocal ready
        await to_thread.run_sync(disturb)
        ready = time.monotonic()

    async with anyio.create_task_group() as tasks:
        number = 10_000
        for _ in range(AT_ONCE):
            await send(number := number + 1)
        tasks.start_soon(run)
        while sent:
            answer = await peer.wire.receive()
            id_ = answer["id"]
            started, now = sent.pop(id_), time.monotonic()
            seen.longest = max(seen.longest, now - started)
            good = seen.add(answer["result"], [[n, n * n] for n in range(id_, id_ + 10)])
            if good and ready and started >= ready and not seen.back:
                seen.back = now - ready
            if not seen.back:
                await send(number := number + 1)
    seen.seconds = time.monotonic() - began
    return seen


@contextmanager
def cluster(name: str = "") -> Iterator[Database]:
    """The sample in a PostgreSQL of its own, which may be killed."""
    with ExitStack() as ending:
        folder = ending.enter_context(short_folder())
        server = PostgresServer(folder, f"cluster_name={name}")
        server.start()
        ending.callback(server.stop)
        make_sample(server)
        yield Database(server, SAMPLE)


async def fail_over(first: Database, second: Database) -> Seen:
    """What calls see while the first of two hosts is killed. Raises ValueError where the other one has not taken
    over."""
    hosts = f"{first.server.folder},{second.server.folder}"
    name = {"query": "SELECT current_setting('cluster_name')"}
    async with served(f"postgresql://{READER}@/{SAMPLE}?host={hosts}&target_session_attrs=any") as peer:
        before = (await peer.data("read_query", **name))["rows"]
        seen = await under_load(peer, partial(first.server.stop, kill=True))
        after = (await peer.data("read_query", **name))["rows"]
    if (before, after) != ([["first"]], [["second"]]):
        raise ValueError(f"{before} was followed by {after}")
    return seen


async def hold_lock(database: Database, busy_seconds: float, calls: int) -> tuple[Seen, Seen]:
    """What calls see of a table that another session has locked, and calls of another table meanwhile."""
    locked, free = Seen(), Seen()
    async with served("--busy-timeout", str(busy_seconds), database.reader) as peer:
        with database.server.connect(database.name) as other:
            other.execute("BEGIN; LOCK TABLE customer")
            for _ in range(calls):
                for seen, query, expected in (
                    (locked, "SELECT count(*) FROM customer", [[100]]),
                    (free, "SELECT count(*) FROM product", [[200]]),
                ):
                    await _time(seen, peer.call("read_query", query=query), expected)
            other.execute("ROLLBACK")
        await _time(free, peer.call("read_query", query="SELECT count(*) FROM customer"), [[100]])
    return locked, free


async def crowd(database: Database, clients: int, calls: int, readers: int) -> Seen:
    """So many clients at once over HTTP, each with an address of its own, that make so many calls each."""
    seen = Seen()

    async def visit(url: str, number: int) -> None:
        address = f"127.0.{1 + number // 200}.{1 + number % 200}"
        async with client_at(url, address) as client:
            for call in range(calls):
                first = number * 1_000 + call
                arguments: dict[str, Any] = {"query": _ROWS, "parameters": [first]}
                expected = [[n, n * n] for n in range(first, first + 10)]
                await _time(seen, result_of(client, "read_query", **arguments), expected)

    async with start_http(command("--readers", str(readers), database.reader)) as url:
        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            for number in range(clients):
                tasks.start_soon(visit, url, number)
        seen.seconds = time.monotonic() - began
    return seen


async def _time(seen: Seen, call: Awaitable[Json], expected: object) -> None:
    began = time.monotonic()
    with anyio.fail_after(2 * PATIENCE):
        seen.add(await call, expected)
    seen.longest = max(seen.longest, time.monotonic() - began)


@dataclass
class Paged:
    """A table that was read to its end."""

    rows: int = 0
    pages: int = 0
    seconds: float = 0
    before: float = 0
    """MiB that the server held, and the most that it did later."""
    most: float = 0


async def page_through(database: Database, rows: int) -> Paged:
    """Reads a table of so many rows to its end, and sees that all are there, in order."""
    make = f"CREATE UNLOGGED TABLE strained AS SELECT n, n * 3 AS m FROM generate_series(1::int8, {rows}) n"
    database.run(f"{make}; GRANT SELECT ON strained TO PUBLIC", user=SUPERUSER)
    found, cursor = Paged(), None
    options = ("--max-page", "900000", "--max-rows", "1000000", "--timeout", "600")
    async with served(*options, database.reader) as peer:
        peer.wire.check = False  # the schema's validator would take most of the time
        await peer.call("read_query", query="SELECT 1")
        found.before, began = resident(peer.wire.pid), time.monotonic()
        while found.pages == 0 or cursor is not None:
            more = {} if cursor is None else {"cursor": cursor}
            data = await peer.data("read_query", query="SELECT n, m FROM strained", **more)
            page = data["rows"]
            assert not data["changed"]
            assert page == [[n, 3 * n] for n in range(found.rows + 1, found.rows + len(page) + 1)]
            found.rows, found.pages, cursor = found.rows + len(page), found.pages + 1, data["next_cursor"]
        found.seconds, found.most = time.monotonic() - began, peak(peer.wire.pid)
    return found
