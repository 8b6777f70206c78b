"""What clients see of PostgreSQL in hard times, in figures.

python -m tests.checks.benchmarks.postgres_strain [--rows N]

They are this machine's, and no assertions, but for wrong answers and what is missing, which end it.
"""

import argparse
import statistics
import sys
from functools import partial

import anyio

from tests.checks.benchmarks.machine import peak, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.pipes import Pipes, sample, start_ms
from tests.checks.sql.strain import AT_ONCE, Seen, cluster, crowd, fail_over, hold_lock, page_through, under_load
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import command, served

ROWS = 10_000_000
STARTS, WARM = 5, 50
ONE_ROW = {"query": "SELECT id, name, email FROM customer WHERE id = 77"}


def main() -> int:
    """Runs all of it; 0 when that could be done."""
    parser = argparse.ArgumentParser(prog="python -m tests.checks.benchmarks.postgres_strain")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the long table")
    rows = parser.parse_args().rows
    with cluster() as database:
        _measure_speed(database)
        anyio.run(_hold_lock, database)
        anyio.run(_gather, database)
        anyio.run(_restart, database)
        anyio.run(_page, database, rows)
    with cluster("first") as first, cluster("second") as second:
        anyio.run(_fail_over, first, second)
    return 0


def _measure_speed(database: Database) -> None:
    words = command(database.reader)
    _say("start", f"{statistics.median(start_ms(words) for _ in range(STARTS)):.0f} ms to the answer to initialize")
    with Pipes(words) as server:
        server.greet()
        before = resident(server.pid)
        ask = Ask("tools/call", {"name": "read_query", "arguments": ONE_ROW}, b"c77@example.org")
        server.one_at_a_time(ask, WARM)
        one, piped = sample(partial(server.one_at_a_time, ask)), sample(partial(server.pipelined, ask))
        _say("one row", f"{one:.0f}/s one at a time, {piped:.0f}/s pipelined")
        _say(
            "resident",
            f"{before:.0f} MiB, {resident(server.pid):.0f} MiB after these, {peak(server.pid):.0f} at most",
        )


async def _hold_lock(database: Database) -> None:
    locked, free = await hold_lock(database, 1, 5)
    _say("lock", f"of the locked table: {_describe(locked)}; of others: {_describe(free)}")


async def _gather(database: Database) -> None:
    seen = await crowd(database, 100, 50, 5)
    _say(
        "100 clients on 5 connections", f"{(seen.good + seen.codes.total()) / seen.seconds:.0f}/s; {_describe(seen)}"
    )


async def _restart(database: Database) -> None:
    async with served(database.reader) as peer:
        seen = await under_load(peer, partial(database.server.restart, kill=True))
    _say(f"killed and restarted, {AT_ONCE} calls at once", f"{_describe(seen)}; answers {seen.back:.2f} s after it")


async def _page(database: Database, rows: int) -> None:
    found = await page_through(database, rows)
    rate = f"{found.pages} pages, {found.seconds:.0f} s, {found.rows / found.seconds:,.0f} rows/s"
    _say(f"{found.rows:,} rows in pages", f"{rate}; {found.before:.0f} MiB before, {found.most:.0f} MiB at most")


async def _fail_over(first: Database, second: Database) -> None:
    seen = await fail_over(first, second)
    _say("failover to the second host", f"{_describe(seen)}; answers {seen.back:.2f} s after it")


def _describe(seen: Seen) -> str:
    if seen.wrong:
        raise ValueError(f"{seen.wrong} answers were wrong")
    failed = ", ".join(f"{count} {code}" for code, count in seen.codes.items()) or "none"
    return f"{seen.good} good, failed: {failed}, longest {seen.longest:.2f} s"


def _say(what: str, figures: str) -> None:
    print(f"{what}: {figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
