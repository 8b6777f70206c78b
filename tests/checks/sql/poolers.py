"""Clients of ours and of others on the few connections of a pooler: none may see what another one has set.

`python -m tests.checks.sql.poolers STATEMENTS` runs as many as it is told, and says how many there were in a second,
and how long a query takes through it beside a direct connection.
"""

import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import anyio
import psycopg

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query
from servers.postgres.database import PostgresDatabase
from servers.postgres.engine.deadline import Limits
from servers.postgres.engine.target import parse_target
from tests.pgbouncer import PgBouncer, pooling
from tests.postgres_server import PostgresServer, short_folder
from tests.servers.postgres.databases import WRITER, Database, copy_sample, make_sample

__all__ = ["Mixture", "mix"]

_LIMITS = Limits(20, 5, 1_000_000)
_PAGE = AnswerLimits(10, 10_000, 1_000)
_NAMES = (
    *("standard_conforming_strings", "DateStyle", "IntervalStyle", "extra_float_digits", "bytea_output", "xmlbinary"),
    *("jit", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_read_only"),
    *("client_connection_check_interval", "search_path", "default_transaction_read_only"),
)
_SETTINGS = f"SELECT {', '.join(f'current_setting({name!r})' for name in _NAMES)}, (interval '36 hours')::text"
_LEFT = """
    SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
        (SELECT count(*) FROM pg_prepared_statements WHERE from_sql), (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_class WHERE relpersistence = 't')"""
_UPDATE = "UPDATE visit SET page = page WHERE false"
_ROUNDS, _READS = 31, 100


class Mixture(NamedTuple):
    """What clients saw."""

    ours: int
    """Statements of ours."""
    others: int
    lost: int
    """Statements of ours that had not all of our settings."""
    leaked: int
    """Statements of others that had one of ours, or failed."""
    seconds: float


class _Count:
    def __init__(self, statements: int) -> None:
        self.left = statements
        self.ours = self.others = self.lost = self.leaked = 0

    def take(self, statements: int = 1) -> bool:
        self.left -= statements
        return self.left >= 0


async def mix(pooler: PgBouncer, database: Database, statements: int, clients: int = 20) -> Mixture:
    """Runs so many statements, of as many clients of ours as of others."""
    count = _Count(statements)
    (defaults,) = database.run(_SETTINGS, user=WRITER)
    began = time.monotonic()
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        ours = [await stack.enter_async_context(_opened(pooler.url(database.name, WRITER))) for _ in range(clients)]
        wanted = (await _read(ours[0], _SETTINGS))[0]
        for one in ours:
            tasks.start_soon(_ask, one, wanted, count)
        for _ in range(clients):
            tasks.start_soon(_disturb, pooler.url(database.name, WRITER), defaults, count)
    assert wanted != defaults
    return Mixture(count.ours, count.others, count.lost, count.leaked, time.monotonic() - began)


@asynccontextmanager
async def _opened(url: str, is_shared: bool = True) -> AsyncIterator[PostgresDatabase]:
    database = PostgresDatabase(parse_target(url, False), _LIMITS, 1)
    await database.detect_sharing()
    assert database.is_shared == is_shared
    yield database
    await database.close()


async def _read(database: PostgresDatabase, sql: str) -> list[tuple[object, ...]]:
    found = await database.read(Query(sql, ()), _PAGE, "", None, None)
    return [tuple(row) for row in found.page.rows]


async def _ask(database: PostgresDatabase, wanted: tuple[object, ...], count: _Count) -> None:
    while count.take():
        count.ours += 1
        count.lost += await _read(database, _SETTINGS) != [wanted]


async def _disturb(url: str, defaults: object, count: _Count) -> None:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=None)
    async with connection:
        while count.take(3):
            count.others += 3
            try:
                await connection.execute(_UPDATE.encode())
                settings = await (await connection.execute(_SETTINGS.encode())).fetchone()
                left = await (await connection.execute(_LEFT.encode())).fetchone()
                count.leaked += settings != defaults or left != (0, 0, 0, 0)
            except psycopg.Error:
                count.leaked += 1


async def _compare(pooled: str, direct: str) -> float:
    """How many times as long a query of one row takes through the pooler: the median of pairs of rounds, in turns."""
    async with _opened(pooled) as ours, _opened(direct, is_shared=False) as other:
        pairs = [[await _time(database) for database in (ours, other)] for _ in range(_ROUNDS)]
    return statistics.median(through / beside for through, beside in pairs)


async def _time(database: PostgresDatabase) -> float:
    began = time.perf_counter()
    for _ in range(_READS):
        await _read(database, "SELECT 1")
    return time.perf_counter() - began


def main() -> None:
    """Runs them, and prints what came of it."""
    with short_folder() as folder:
        server = PostgresServer(folder)
        server.start()
        make_sample(server)
        database = copy_sample(server, "pooled")
        try:
            with pooling(server, "transaction", 4) as pooler:
                seen = anyio.run(mix, pooler, database, int(sys.argv[1]))
                ratio = anyio.run(_compare, pooler.url(database.name, WRITER), database.writer)
        finally:
            server.stop()
    print(f"{seen}; {(seen.ours + seen.others) / seen.seconds:,.0f} statements a second")
    print(f"one row takes {ratio:.2f} times as long as on a direct connection")


if __name__ == "__main__":
    main()
