"""`--confirm-rows`: the user is asked before the schema or many rows change, and consent is to what was asked."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.servers.peers import FORMS, AskedPeer
from tests.servers.sqlite.writing import SCHEMA
from tests.wire import STATELESS, Wire

every_era = pytest.mark.parametrize(
    "era", [pytest.param("2025-06-18", marks=pytest.mark.slow), "2025-11-25", STATELESS]
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return path


def count(path: Path, table: str = "t") -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return found


@asynccontextmanager
async def served(
    path: Path, era: str, rows: int, actions: str = "", meanwhile: Callable[[], None] = lambda: None
) -> AsyncIterator[AskedPeer]:
    options = ["--allow-write", "--busy-timeout", "0", "--confirm-rows", str(rows), str(path)]
    async with Wire([sys.executable, "-m", "servers.sqlite", *options]) as wire:
        peer = AskedPeer(wire, era, actions, meanwhile)
        wire.answers["elicitation/create"] = peer.answer
        if era != STATELESS:
            await wire.initialize(era, FORMS)
        yield peer


@every_era
async def test_the_user_is_asked_before_many_rows_or_the_schema_change(path: Path, era: str) -> None:
    async with served(path, era, 3, "accept accept accept") as peer:
        assert (await peer.text("write_query", query="UPDATE t SET b = a")).startswith("committed; ")
        assert peer.questions == []
        assert (await peer.text("write_query", query="DELETE FROM t")).startswith("committed; ")
        assert (await peer.text("write_query", query="DROP TABLE child")).startswith("committed; ")
        assert (await peer.text("create_table", query="CREATE TABLE new (a)")).startswith("committed; ")
    assert peer.questions == [
        "Change data? 4 rows change (child, t):\nDELETE FROM t",
        "Change data? the schema changes:\nDROP TABLE child",
        "Change data? the schema changes:\nCREATE TABLE new (a)",
    ]
    assert (count(path), count(path, "new")) == (0, 0)


@every_era
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_nothing_changes_where_the_user_does_not_agree(path: Path, era: str, action: str) -> None:
    async with served(path, era, 0, action) as peer:
        assert (await peer.text("write_query", query="DELETE FROM t")).startswith("declined: ")
    assert peer.questions == ["Change data? 4 rows change (child, t):\nDELETE FROM t"]
    assert count(path) == 2


@every_era
async def test_the_database_is_not_locked_while_the_user_thinks(path: Path, era: str) -> None:
    def write() -> None:
        with closing(sqlite3.connect(path, timeout=0)) as connection, connection:
            connection.execute("INSERT INTO log VALUES ('theirs')")

    async with served(path, era, 0, "accept", write) as peer:
        assert (await peer.text("write_query", query="DELETE FROM t")).startswith("committed; ")
    assert (count(path), count(path, "log")) == (0, 1)


@every_era
async def test_consent_is_to_the_changes_that_were_asked_for(path: Path, era: str) -> None:
    def write() -> None:
        with closing(sqlite3.connect(path, timeout=0)) as connection, connection:
            connection.execute("INSERT OR IGNORE INTO t VALUES (3, 'theirs')")

    async with served(path, era, 0, "accept decline", write) as peer:
        text = await peer.text("write_query", query="DELETE FROM t")
    if era == STATELESS:  # the user is asked again
        assert text.startswith("declined: ")
        assert peer.questions[-1] == "Change data? 5 rows change (child, t):\nDELETE FROM t"
    else:
        assert text.startswith("changed: the database was changed since the user was asked")
        assert text.splitlines()[2:4] == ["asked: 4 rows change (child, t)", "now: 5 rows change (child, t)"]
    assert count(path) == 3


@every_era
async def test_the_user_sees_the_values_of_parameters(path: Path, era: str) -> None:
    async with served(path, era, 0, "accept") as peer:
        await peer.text("write_query", query="DELETE FROM t WHERE a = ?", parameters=[2])
    assert peer.questions == ["Change data? 1 row changes (child, t):\nDELETE FROM t WHERE a = ? -- [2]"]


@every_era
async def test_the_user_is_asked_before_many_rows_are_imported(path: Path, era: str) -> None:
    async with served(path, era, 1, "accept accept") as peer:
        await peer.text("import_csv", table="log", csv="said\nx\n")
        assert peer.questions == []
        await peer.text("import_csv", table="log", csv="said\nx\ny\n")
        await peer.text("import_csv", table="new", csv="a\n1\n")
    assert peer.questions == [
        "Change data? 2 rows change (log):\nimport a CSV into log",
        "Change data? the schema changes and 1 row changes (new):\nimport a CSV into new",
    ]
    assert (count(path, "log"), count(path, "new")) == (3, 1)


async def test_a_dry_run_is_not_asked_for(path: Path) -> None:
    async with served(path, "2025-11-25", 0) as peer:
        assert (await peer.text("write_query", query="DROP TABLE t", dry_run=True)).startswith("dry run: ")
    assert peer.questions == []


async def test_what_fails_is_not_asked_for(path: Path) -> None:
    async with served(path, "2025-11-25", 0) as peer:
        text = await peer.text("write_query", query=["DROP TABLE child", "INSERT INTO t VALUES (1, 'x')"])
    assert (text.split(":")[0], peer.questions) == ("constraint", [])


@pytest.mark.parametrize("era", ["2024-11-05", "2025-11-25", STATELESS])
async def test_where_the_client_can_not_ask_it_is_refused(path: Path, era: str) -> None:
    params = {"name": "write_query", "arguments": {"query": "DELETE FROM t"}}
    async with Wire([sys.executable, "-m", "servers.sqlite", "--allow-write", "--confirm", str(path)]) as wire:
        if era == STATELESS:
            answer = await wire.stateless("tools/call", params)
        else:
            await wire.initialize(era)
            answer = await wire.request("tools/call", params)
    assert answer["result"]["content"][0]["text"].startswith("cannot_confirm: this server asks the user ")
    assert count(path) == 2
