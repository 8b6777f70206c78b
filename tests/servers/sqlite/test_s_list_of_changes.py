"""S4, S13 and S14 with the tools that change a database, and with subscriptions."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers.sqlite.malicious import BOMB, made
from tests.servers.sqlite.serving import Peer, served
from tests.servers.sqlite.test_s_list import hashed
from tests.wire import PATIENCE

pytestmark = pytest.mark.slow

ENDLESS = f"INSERT INTO account SELECT x + 10, 'x', 0 FROM ({BOMB})"
ACCOUNTS = [(1, 100), (2, 200)]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return made(tmp_path, "")


def accounts(database: Path) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT id, sum FROM account ORDER BY id").fetchall()


# S4: what may not even be done where writing is allowed

NEVER = (
    "ATTACH '{folder}/other.db' AS other",
    "ATTACH 'file:{folder}/other.db?mode=rwc' AS other",
    "DETACH main",
    "VACUUM INTO '{folder}/copy.db'",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = off",
    "PRAGMA trusted_schema = ON",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA temp_store_directory = '/'",
    "SELECT load_extension('x')",
    "SELECT writefile('{folder}/x', 'y')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')",
    "CREATE VIRTUAL TABLE x USING dbstat",
    "CREATE VIRTUAL TABLE x USING sqlite_dbpage",
    "CREATE TEMP TABLE x (y)",
    "CREATE TEMP TRIGGER x AFTER INSERT ON account BEGIN DELETE FROM account; END",
    "UPDATE sqlite_schema SET sql = 'CREATE TABLE account (x)'",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "SAVEPOINT x",
    "DELETE FROM account; DROP TABLE account",
)


@pytest.mark.parametrize("tool", ["write_query", "create_table"])
async def test_s4_who_may_write_can_still_do_none_of_this(tool: str, database: Path, tmp_path: Path) -> None:
    before = hashed(database)
    async with served("--allow-write", database) as peer:
        for query in NEVER:
            result = await peer.call(tool, query=query.format(folder=tmp_path))
            assert result.get("isError"), query
        assert (await peer.data("read_query", query="SELECT count(*) FROM account"))["rows"] == [[2]]
    assert hashed(database) == before
    assert [file.name for file in tmp_path.iterdir()] == ["data.db"]


# S13: what is done is all done, or nothing


async def test_s13_of_a_list_that_fails_nothing_is_done(database: Path) -> None:
    both = ["UPDATE account SET sum = 0", "INSERT INTO account VALUES (2, 'again', 1)"]
    async with served("--allow-write", database) as peer:
        assert (await peer.error("write_query", query=both)).startswith("constraint: ")
        assert accounts(database) == ACCOUNTS
        await peer.data("write_query", query=[both[0], "INSERT INTO account VALUES (3, 'new', 1)"])
    assert accounts(database) == [(1, 0), (2, 0), (3, 1)]


async def test_s13_of_a_dry_run_nothing_is_done(database: Path) -> None:
    before = hashed(database)
    async with served("--allow-write", database) as peer:
        data = await peer.data("write_query", query=["DELETE FROM account", "DROP TABLE account"], dry_run=True)
    assert not data["committed"]
    assert hashed(database) == before


async def test_s13_a_change_that_takes_too_long_is_taken_back(database: Path) -> None:
    async with served("--allow-write", "--timeout", "0.5", database) as peer:
        both = ["UPDATE account SET sum = 0", ENDLESS]
        assert (await peer.error("write_query", query=both)).startswith("timeout: ")
        assert accounts(database) == ACCOUNTS
        await peer.data("write_query", query="UPDATE account SET sum = 1")
    assert accounts(database) == [(1, 1), (2, 1)]


SLOW_ENDS = [pytest.param(end, marks=pytest.mark.slow) for end in ("close", "terminate")]


@pytest.mark.parametrize("end", ["cancel", *SLOW_ENDS])
async def test_s13_a_change_that_nobody_waits_for_is_taken_back(end: str, database: Path) -> None:
    params = {"name": "write_query", "arguments": {"query": ["UPDATE account SET sum = 0", ENDLESS]}}
    async with served("--allow-write", database) as peer:
        await peer.wire.send({"jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": params})
        await _changed_meanwhile(peer, database)
        match end:
            case "cancel":
                await peer.wire.notify("notifications/cancelled", {"requestId": 1_000})
                # The one writer is free again.
                await peer.data("write_query", query="UPDATE account SET owner = 'Eve' WHERE id = 9")
            case "close":
                await peer.wire.close_stdin()
                await peer.wire.wait(PATIENCE)
            case _:
                peer.wire.terminate()
                await peer.wire.wait(PATIENCE)
    assert accounts(database) == ACCOUNTS


async def _changed_meanwhile(peer: Peer, database: Path) -> None:
    """Waits until the transaction holds its lock."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as other:
        while True:
            assert "result" in await peer.request("ping")
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return
            other.execute("ROLLBACK")


# S14: other processes


@pytest.mark.parametrize(
    ("uri", "statement"),
    [
        ("sqlite:///data/account", "UPDATE account SET sum = 300 WHERE id = 2"),
        ("sqlite:///data/schema", "CREATE TABLE more (x)"),
    ],
)
async def test_s14_a_burst_of_another_process_is_told_once(database: Path, uri: str, statement: str) -> None:
    async with served(database) as peer:
        assert "result" in await peer.request("resources/subscribe", uri=uri)
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN")
            for number in range(20):
                other.execute(statement.replace("more", f"more{number}"))
            other.execute("COMMIT")
        message = await peer.wire.receive()
        assert message["method"] == "notifications/resources/updated"
        assert message["params"]["uri"] == uri
        pings = [await peer.request("ping") for _ in range(20)]
    assert all("result" in ping for ping in pings)
    assert not [one for one in peer.wire.notifications if one["method"] == "notifications/resources/updated"]
