"""Hard times, in small: a database that is killed, a lock, many clients, a long table."""

from functools import partial

import anyio

from tests.checks.sql.strain import cluster, crowd, fail_over, hold_lock, page_through, under_load
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import served
from tests.wire import PATIENCE

MOST_GROWTH = 150
"""MiB. A page of 900,000 bytes is held several times over."""


async def test_a_database_that_is_killed_and_started_again_costs_a_few_calls_and_no_wrong_answer() -> None:
    with cluster() as database:
        async with served(database.reader) as peer:
            seen = await under_load(peer, partial(database.server.restart, kill=True))
    assert seen.good > 0
    assert seen.wrong == 0
    assert set(seen.codes) <= {"unavailable"}
    assert seen.back < 10


async def test_the_second_of_two_hosts_takes_over_from_one_that_is_killed() -> None:
    with cluster("first") as first, cluster("second") as second:
        seen = await fail_over(first, second)
    assert (seen.wrong, set(seen.codes) <= {"unavailable"}) == (0, True)
    assert seen.back < 10


async def test_what_runs_for_a_server_that_is_killed_ends_soon(database: Database) -> None:
    every = "WITH RECURSIVE every(n) AS (VALUES (1::bigint) UNION ALL SELECT n + 1 FROM every)"
    count = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database()"
    with database.server.connect(database.name) as other:

        async def until(running: int) -> None:
            # The question itself is one of them.
            while other.execute(count).fetchone() != (running + 1,):
                await anyio.sleep(0.05)

        async with served("--timeout", "600", database.reader) as peer:
            params = {"name": "read_query", "arguments": {"query": f"{every} SELECT count(*) FROM every"}}
            await peer.wire.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
            with anyio.fail_after(PATIENCE):
                await until(1)
                peer.wire.kill()
                await until(0)


async def test_a_lock_fails_those_who_need_it_and_nobody_else(database: Database) -> None:
    locked, free = await hold_lock(database, 0.2, 3)
    assert (locked.codes, locked.good) == ({"busy": 3}, 0)
    assert (free.codes, free.good, free.wrong) == ({}, 4, 0)


async def test_a_hundred_clients_share_five_connections(database: Database) -> None:
    seen = await crowd(database, 100, 3, 5)
    assert (seen.good, seen.wrong, seen.codes) == (300, 0, {})


async def test_a_long_table_is_paged_to_its_end_in_bounded_memory(database: Database) -> None:
    found = await page_through(database, 100_000)
    assert found.rows == 100_000
    assert found.most - found.before < MOST_GROWTH
