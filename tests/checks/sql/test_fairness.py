"""Queries of one client take neither all connections nor every turn to write."""

import sys
from pathlib import Path

import anyio

from tests.servers.crowds import busy, client_at, result_of
from tests.servers.sqlite.malicious import BOMB
from tests.wire import PATIENCE, start_http

ENDLESS = f"SELECT count(*) FROM ({BOMB})"


async def test_slow_queries_of_one_client_leave_a_connection_to_another(tmp_path: Path) -> None:
    options = ["--readers", "2", "--timeout", "120", "--max-seconds", "120", "--create", str(tmp_path / "data.db")]
    async with (
        start_http([sys.executable, "-m", "servers.sqlite", *options]) as url,
        client_at(url, "127.0.0.2") as greedy,
        client_at(url, "127.0.0.3") as modest,
        busy(greedy, 4, "read_query", query=ENDLESS),
    ):
        for _ in range(3):
            result = await result_of(modest, "read_query", query="SELECT 1")
            assert result["structuredContent"]["rows"] == [[1]]


async def test_slow_changes_of_one_client_do_not_delay_those_of_another(tmp_path: Path) -> None:
    """Each ends when its time is over, and the next one is another client's."""
    options = ["--allow-write", "--timeout", "0.5", "--max-seconds", "120", "--create", str(tmp_path / "data.db")]
    async with (
        start_http([sys.executable, "-m", "servers.sqlite", *options]) as url,
        client_at(url, "127.0.0.2") as greedy,
        client_at(url, "127.0.0.3") as modest,
    ):
        await result_of(modest, "write_query", query="CREATE TABLE notes (text)")
        ended = 0

        async def change() -> None:
            nonlocal ended
            await result_of(greedy, "write_query", query=f"INSERT INTO notes {ENDLESS}")
            ended += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(change)
            with anyio.fail_after(PATIENCE):
                while (await greedy.get("/healthz")).json()["streams"] < 4:
                    await anyio.lowlevel.checkpoint()
            result = await result_of(modest, "write_query", query="INSERT INTO notes VALUES ('mine')")
            assert "isError" not in result
            assert ended <= 2
            tasks.cancel_scope.cancel()
