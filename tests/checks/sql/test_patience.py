"""Long statements over HTTP end in time, and other clients are answered meanwhile.

SQLite checks the clock between two instructions of its machine, and not while it prepares a statement. Each
query here prevents that for longer than its limit, except the first ones, which are many instructions.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from tests.servers.crowds import client_at, result_of
from tests.servers.sqlite.malicious import BOMB, made, views_that_double
from tests.wire import PATIENCE, Json, start_http

SECONDS = 1
LATE = 0.5
"""Seconds beyond the limit in which an answer has to come, on a machine that does nothing else."""

EIGHT_MB = "replace(hex(zeroblob(4000000)), '0', 'a')"
ONE_MB = "replace(hex(zeroblob(500000)), '0', 'a')"
CROSS = "number a, number b, number c"

# The last ones are one instruction each, which takes seconds.
LONG = {
    "endless": f"SELECT count(*) FROM ({BOMB})",
    "cross join": f"SELECT sum(a.n * b.n * c.n) FROM {CROSS}",
    "sorted cross join": f"SELECT a.n FROM {CROSS} ORDER BY a.n * b.n % 7, c.n LIMIT 10",
    "large values": f"SELECT count(*) FROM ({BOMB}) WHERE length(randomblob(10000000)) = 1",
    "group_concat": f"SELECT length(group_concat(x)) FROM ({BOMB})",
    "distinct": f"SELECT count(DISTINCT hex(x)) FROM ({BOMB})",
    "instr": f"SELECT instr({ONE_MB}, substr({ONE_MB}, 1, 200000) || 'b')",
    "replace": f"SELECT length(replace({ONE_MB}, substr({ONE_MB}, 1, 200000) || 'b', 'c'))",
    "trim": f"SELECT length(trim({EIGHT_MB}, printf('%.*c', 200, 'b') || 'a'))",
    "like": f"SELECT {EIGHT_MB} LIKE '%' || substr({EIGHT_MB}, 1, 300) || 'b%'",
    "printf": "SELECT length(printf('%.*c', 1000000000, 'x'))",
}


@asynccontextmanager
async def over_http(database: Path) -> AsyncIterator[httpx.AsyncClient]:
    command = [sys.executable, "-m", "servers.sqlite", "--timeout", str(SECONDS), str(database)]
    async with start_http(command) as url, client_at(url, "127.0.0.1") as client:
        yield client


async def others_are_answered(client: httpx.AsyncClient, sql: str) -> Json:
    """Returns the result of `sql`, after a check that other clients are answered meanwhile."""
    results = []

    async def ask() -> None:
        with anyio.fail_after(SECONDS + 10 * LATE):
            results.append(await result_of(client, "read_query", query=sql))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        for _ in range(10):
            with anyio.fail_after(PATIENCE):
                assert (await client.get("/healthz")).is_success
                result = await result_of(client, "read_query", query="SELECT 1")
                assert result["structuredContent"]["rows"] == [[1]]
    return results[0]


@pytest.mark.parametrize("name", LONG)
async def test_a_long_query_times_out_while_others_are_answered(name: str, tmp_path: Path) -> None:
    count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) SELECT * FROM c"
    database = made(tmp_path, f"CREATE TABLE number (n INTEGER PRIMARY KEY); INSERT INTO number {count};")
    async with over_http(database) as client:
        result = await others_are_answered(client, LONG[name])
    assert result["isError"]
    assert result["content"][0]["text"].startswith(("timeout: ", "too_large: "))


async def test_a_statement_with_a_long_preparation_times_out(tmp_path: Path) -> None:
    async with over_http(views_that_double(tmp_path)) as client:
        result = await others_are_answered(client, "SELECT * FROM hostile")
    assert result["isError"]
    assert result["content"][0]["text"].startswith("timeout: ")
