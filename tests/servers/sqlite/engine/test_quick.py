"""Reads in the event loop: which statements qualify, what stops them, and that their answers are the same.

A read here takes fewer instructions than SQLite executes between two checks of the clock, so that a busy machine
stops none of them.
"""

import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, nullcontext
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query
from servers.sqlite.engine import quick
from servers.sqlite.engine.database import Database, Source, open_databases
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.quick_policy import QuickPolicy
from servers.sqlite.query.query import run_at_once
from shared.protocol.wire.jsonrpc import Request, Response
from shared.tracing import spans
from tests.descriptors import descriptors
from tests.servers.sqlite.malicious import BOMB, made
from tests.servers.sqlite.serving import inside
from tests.wire import PATIENCE, with_envelope

ROOM = AnswerLimits(10, 10_000, 1_000)
ROW = "SELECT n, name FROM numbers WHERE n = 7"
FOUND = [(7, "number 7")]
ENDLESS = "SELECT sum(a.n * b.n * c.n) FROM numbers a, numbers b, numbers c"
SOON = 0.5
"""Seconds: five hundred times the limit of a read, because a busy machine is late."""


@asynccontextmanager
async def opened(file: Path, *, writable: bool = False) -> AsyncIterator[Database]:
    async with open_databases([Source("data", file, writable)], Limits(), 2) as databases:
        yield databases.get("data")


async def learn(database: Database, *statements: str) -> None:
    for statement in statements:
        await database.learn(statement, [None] * statement.count("?"), 0.0)


async def read(database: Database, statement: str, *parameters: Any) -> list[tuple[Any, ...]] | None:
    """Returns the rows if the event loop reads them, in a new turn; else None."""
    await anyio.lowlevel.checkpoint()
    return read_now(database, statement, *parameters)


def read_now(database: Database, statement: str, *parameters: Any) -> list[tuple[Any, ...]] | None:
    """Returns the rows if the event loop reads them in this turn; else None."""
    answer = database.quick.run(statement, partial(run_at_once, Query(statement, parameters), ROOM))
    return None if answer is None else answer.page.rows


async def read_learned(file: Path, statement: str, *parameters: Any) -> list[tuple[Any, ...]] | None:
    """Learns the statement and returns its rows if the event loop reads them, even on a busy machine; else None."""
    async with opened(file) as database:
        database.quick._max_seconds = PATIENCE  # else the test would fail on a busy machine
        await learn(database, statement)
        return await read(database, statement, *parameters)


def spin(seconds: float, *_: object) -> str:
    """Uses the processor for that many seconds of its own time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return "done"


@pytest.fixture
def other(file: Path) -> Any:
    """A separate connection, which for SQLite is like another process."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


# Statements that run in the event loop


async def test_only_learned_statements_run_in_the_event_loop(file: Path) -> None:
    assert await read_learned(file, ROW) == FOUND
    async with opened(file) as database:
        await learn(database, "SELECT 1")
        assert await read(database, ROW) is None
    assert not [link for link in descriptors() if str(file) in link]


AT_ONCE = [
    "SELECT max(n), sum(n), typeof(name) FROM numbers WHERE n < 3",
    "SELECT upper(name) FROM numbers WHERE n < 4 AND name LIKE '%3'",
    "WITH few AS (SELECT n FROM numbers WHERE n < 4) SELECT a.n FROM few a JOIN few b USING (n)",
    "VALUES (1), (2)",
    "SELECT type, name FROM sqlite_schema",
    "SELECT * FROM few",
]
LATER = [
    "SELECT count(*) FROM numbers",
    "SELECT replace(name, 'n', 'm') FROM numbers WHERE n = 7",
    "SELECT group_concat(n) FROM numbers WHERE n < 7",
    "SELECT printf('%.*c', 9000, 'x')",
    "SELECT zeroblob(9000)",
    f"{BOMB} LIMIT 1",
    "SELECT value FROM json_each('[1]')",
    "SELECT name FROM pragma_table_info('numbers')",
    "SELECT * FROM words",
    "SELECT * FROM made",
    "SELECT x FROM counted",
    "PRAGMA user_version",
    "EXPLAIN QUERY PLAN DELETE FROM numbers",
    "INSERT INTO numbers VALUES (-1, 'x') RETURNING n",
    "BEGIN",
    "ATTACH 'other.db' AS other",
]


async def test_only_quick_statements_run_in_the_event_loop(file: Path, other: sqlite3.Connection) -> None:
    other.execute("CREATE VIEW few AS SELECT name FROM numbers WHERE n < 3")
    other.execute("CREATE VIRTUAL TABLE words USING fts5 (a)")
    other.execute("CREATE TABLE made (a, b AS (replace(a, 'n', 'm')))")
    other.execute("CREATE VIEW counted AS SELECT count(*) AS x FROM numbers")
    results = {statement: await read_learned(file, statement) for statement in (*AT_ONCE, *LATER)}
    assert results == {one: other.execute(one).fetchall() for one in AT_ONCE} | dict.fromkeys(LATER)
    assert other.execute("SELECT count(*) FROM numbers").fetchone() == (1_000,)


async def test_a_statement_that_is_slow_to_compile_is_not_learned(tmp_path: Path) -> None:
    views = [f"CREATE VIEW v{n} AS SELECT a.x FROM v{n - 1} a, v{n - 1} b;" for n in range(1, 10)]
    async with opened(made(tmp_path, f"CREATE VIEW v0 AS SELECT 1 AS x; {''.join(views)}")) as database:
        await learn(database, "SELECT x FROM v9", "SELECT x FROM v1")
        assert [database.quick.can_run(f"SELECT x FROM v{n}") for n in (9, 1)] == [False, True]


def test_a_statement_of_more_than_500_parts_is_denied() -> None:
    policy = QuickPolicy((), ())
    verdicts = [policy(sqlite3.SQLITE_SELECT, None, None, None, None) for _ in range(501)]
    assert verdicts == [sqlite3.SQLITE_OK] * 500 + [sqlite3.SQLITE_DENY]


async def test_a_database_with_a_long_schema_learns_no_statement(tmp_path: Path) -> None:
    async with opened(made(tmp_path, f"CREATE TABLE t (a /* {'x' * 100_000} */);")) as database:
        await learn(database, "SELECT 1")
        assert not database.quick.can_run("SELECT 1")


async def test_a_slow_or_long_statement_is_not_learned(file: Path) -> None:
    long = f"SELECT 1 -- {'x' * 10_000}"
    async with opened(file) as database:
        for seconds in (1.0, 0.0):
            await database.learn(ROW, [], seconds)
        await learn(database, long)
        assert (database.quick.can_run(ROW), database.quick.can_run(long)) == (False, False)


async def test_a_hundred_statements_are_learned_and_the_least_used_is_dropped(file: Path) -> None:
    statements = [f"SELECT {number}" for number in range(101)]
    async with opened(file) as database:
        await learn(database, *statements)
        assert [database.quick.can_run(one) for one in statements] == [False, *[True] * 100]
        await read(database, statements[1])
        await learn(database, ROW)
        assert (database.quick.can_run(statements[1]), database.quick.can_run(statements[2])) == (True, False)


# Limits that stop or unlearn a statement


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops reads only by the count of instructions, never by the clock."""
    monkeypatch.setattr(quick, "_LATE_SECONDS", PATIENCE)
    monkeypatch.setattr(quick, "_SLOW_SECONDS", PATIENCE)
    monkeypatch.setattr(quick, "_count_waits", count().__next__)


@pytest.mark.usefixtures("unhurried")
async def test_a_statement_stopped_three_times_in_a_row_is_not_learned_again(file: Path) -> None:
    async with opened(file) as database:
        await learn(database, ENDLESS)
        known = []
        for _ in range(3):
            known.append(database.quick.can_run(ENDLESS))
            assert await read(database, ENDLESS) is None
        await learn(database, ENDLESS)
        assert (known, database.quick.can_run(ENDLESS)) == ([True] * 3, False)


async def test_a_statement_late_by_the_clock_is_learned_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_RELEARN_SECONDS", 0.0)
    async with opened(file) as database:
        for seconds in (1.0, 0.0):
            await database.learn(ROW, [], seconds)
        assert database.quick.can_run(ROW)


@pytest.mark.usefixtures("unhurried")
async def test_a_completed_run_resets_the_count_of_stops(file: Path) -> None:
    statement = "SELECT sum(a.n * b.n * c.n) FROM numbers a, numbers b, numbers c WHERE a.n < ?"
    async with opened(file) as database:
        await learn(database, statement)
        for most in (1_000, 1_000, 0, 1_000, 1_000):
            assert await read(database, statement, most) == (None if most else [(None,)])
        assert database.quick.can_run(statement)


async def test_many_rows_long_rows_and_long_patterns_run_in_a_thread(file: Path) -> None:
    assert await read_learned(file, "SELECT n FROM numbers LIMIT 10") == [(n,) for n in range(10)]
    assert await read_learned(file, "SELECT n FROM numbers LIMIT 11") is None
    names = ", ".join(f"'{'x' * 900}'" for _ in range(900))
    assert await read_learned(file, f"SELECT {names[:9_000].rpartition(',')[0]}") is None
    pattern = "SELECT n FROM numbers WHERE n = 7 AND name LIKE ?"
    assert await read_learned(file, pattern, f"n{'%' * 40}7") == [(7,)]
    assert await read_learned(file, pattern, f"n{'%' * 50}7") is None


async def test_a_large_value_is_read_in_a_thread(file: Path, other: sqlite3.Connection) -> None:
    other.execute("INSERT INTO numbers VALUES (-1, hex(zeroblob(8000))), (-2, hex(zeroblob(8200)))")
    statement = "SELECT upper(name) < 'a' FROM numbers WHERE n = ?"
    async with opened(file) as database:
        await learn(database, statement)
        assert (await read(database, statement, -1), await read(database, statement, -2)) == ([(1,)], None)


async def test_invalid_parameters_do_not_count_as_stops(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statement = "SELECT ? + 1"
    for name in ("_SLOW_SECONDS", "_LATE_SECONDS"):
        monkeypatch.setattr(quick, name, PATIENCE)  # else a busy machine would pause the reads
    async with opened(file) as database:
        database.quick._max_seconds = PATIENCE
        await learn(database, statement)
        for parameters in ([], [1, 2], [1 << 64], ["\ud800"]):
            assert await read(database, statement, *parameters) is None
        assert await read(database, statement, 1) == [(2,)]


async def test_a_statement_that_took_milliseconds_is_forgotten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_LATE_SECONDS", PATIENCE)  # else a busy machine would pause the reads
    monkeypatch.setattr(quick, "_count_waits", count().__next__)
    async with opened(file) as database:
        await learn(database, ROW, "SELECT 1")
        assert database.quick.run("SELECT 1", partial(spin, 0.006)) == "done"
        assert (database.quick.can_run("SELECT 1"), database.quick.can_run(ROW)) == (False, True)


async def test_a_late_read_pauses_reads_in_the_event_loop(file: Path) -> None:
    async with opened(file) as database:
        await learn(database, ROW, "SELECT 1")
        assert database.quick.run("SELECT 1", partial(spin, 0.06)) == "done"
        assert (await read(database, ROW), database.quick.should_learn("SELECT 2", 0.0)) == (None, False)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the sleeps of a thread")
async def test_a_read_that_waited_for_the_processor_is_not_a_failure(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "_LATE_SECONDS", 0.0)
    async with opened(file) as database:
        await learn(database, ROW)
        database.quick._max_seconds = PATIENCE
        assert database.quick.run(ROW, lambda *_: time.sleep(0.002)) is None
        slept, database.quick._paused_until = database.quick._paused_until, 0.0
        monkeypatch.setattr(quick, "_count_waits", lambda: 7)
        await anyio.lowlevel.checkpoint()
        assert database.quick.run(ROW, lambda *_: time.sleep(0.002)) is None
        assert (slept > 0, database.quick._paused_until) == (True, 0.0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the sleeps of a thread")
async def test_a_read_stopped_while_waiting_for_the_processor_is_repeated_once(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "_LATE_SECONDS", PATIENCE)
    monkeypatch.setattr(quick, "_SLOW_SECONDS", PATIENCE)
    monkeypatch.setattr(quick, "_count_waits", lambda: 7)
    answers = [None, "done", None, None, "done"]
    async with opened(file) as database:
        await learn(database, ROW)
        database.quick._max_seconds = PATIENCE
        results = [database.quick.run(ROW, lambda *_: time.sleep(0.002) or answers.pop(0)) for _ in range(2)]
    assert (results, answers) == (["done", None], ["done"])


async def test_repeated_late_reads_prolong_the_pause(file: Path) -> None:
    rests = []
    async with opened(file) as database:
        await learn(database, ROW, "SELECT 1", "SELECT 2")
        for statement in ("SELECT 1", "SELECT 2"):
            await anyio.lowlevel.checkpoint()
            began = time.monotonic()
            assert database.quick.run(statement, partial(spin, 0.06)) == "done"
            ended = time.monotonic()
            rests.append((database.quick._paused_until - ended) / (ended - began))
            database.quick._paused_until = 0.0
            assert not database.quick.can_run(statement)
        assert rests[1] > 1.5 * rests[0]
        assert await read(database, ROW) == FOUND


async def test_a_column_behind_a_large_value_is_read_in_a_thread_from_the_second_time(
    file: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "_LATE_SECONDS", 0.002)
    other.execute("CREATE TABLE wide (id INTEGER PRIMARY KEY, large BLOB, small TEXT)")
    other.execute("INSERT INTO wide VALUES (1, NULL, 'a'), (2, zeroblob(50000000), 'b')")
    statement = "SELECT small FROM wide WHERE id = ?"
    async with opened(file) as database:
        await learn(database, statement)
        await read(database, statement, 2)
        assert not database.quick.can_run(statement)


async def test_reads_take_at_most_50_milliseconds_of_an_event_loop_turn(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "_LATE_SECONDS", PATIENCE)  # as above
    monkeypatch.setattr(quick, "_SLOW_SECONDS", PATIENCE)
    async with opened(file) as database:
        database.quick._max_seconds = PATIENCE
        await learn(database, ROW, "SELECT 1")
        assert database.quick.run("SELECT 1", partial(spin, 0.06)) == "done"
        assert (read_now(database, ROW), await read(database, ROW)) == (None, FOUND)


# Equal answers in thread and event loop


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
async def test_a_commit_by_another_process_is_read_and_not_blocked(
    file: Path, other: sqlite3.Connection, mode: str
) -> None:
    other.execute(f"PRAGMA journal_mode = {mode}")
    async with opened(file) as database:
        await learn(database, ROW)
        before = await read(database, ROW)
        for statement in ("BEGIN EXCLUSIVE", "UPDATE numbers SET name = 'another' WHERE n = 7", "COMMIT"):
            other.execute(statement)
        assert (before, await read(database, ROW)) == (FOUND, [(7, "another")])


async def test_a_locked_database_is_read_in_a_thread(file: Path, other: sqlite3.Connection) -> None:
    other.execute("PRAGMA journal_mode = DELETE")
    async with opened(file) as database:
        await learn(database, ROW)
        other.execute("BEGIN EXCLUSIVE")
        locked = [await read(database, ROW) for _ in range(4)]
        other.execute("COMMIT")
        assert (locked, await read(database, ROW)) == ([None] * 4, FOUND)


async def test_a_schema_change_is_noticed_by_every_learned_statement(file: Path, other: sqlite3.Connection) -> None:
    statement = "SELECT * FROM numbers WHERE n = 7"
    async with opened(file) as database:
        await learn(database, statement, ROW)
        assert await read(database, statement) == FOUND
        other.execute("ALTER TABLE numbers ADD COLUMN more DEFAULT 'x'")
        for one in (statement, ROW):
            assert (await read(database, one), database.quick.can_run(one)) == (None, False)
        await learn(database, statement)
        assert await read(database, statement) == [(*FOUND[0], "x")]


async def test_a_statement_recompiled_for_other_parameters_stays_learned(
    file: Path, other: sqlite3.Connection
) -> None:
    """SQLite recompiles it because the pattern decides if an index can be used."""
    statement = "SELECT n FROM numbers WHERE name LIKE ?"
    other.execute("CREATE INDEX by_name ON numbers (name COLLATE NOCASE)")
    async with opened(file) as database:
        database.quick._max_seconds = PATIENCE  # as above
        await learn(database, statement)
        for number in (7, 8, 9):
            assert await read(database, statement, f"number {number}") == [(number,)]


async def test_a_schema_change_during_compilation_is_noticed(file: Path, other: sqlite3.Connection) -> None:
    def work(connection: sqlite3.Connection, _: int) -> list[tuple[Any, ...]]:
        other.execute("CREATE TABLE another (a)")
        return connection.execute(ROW).fetchall()

    async with opened(file) as database:
        await learn(database, ROW)
        assert database.quick.run(ROW, work) is None
        assert not database.quick.can_run(ROW)


async def test_declared_types_follow_a_schema_change(file: Path, other: sqlite3.Connection) -> None:
    async with inside(file) as peer:
        types = [(await peer.data("read_query", query=ROW))["declared"] for _ in range(2)]
        other.execute("ALTER TABLE numbers RENAME TO old")
        other.execute("CREATE TABLE numbers (n TEXT, name BLOB)")
        types += [(await peer.data("read_query", query=ROW))["declared"] for _ in range(2)]
    assert types == [["INTEGER", "VARCHAR(20)"]] * 2 + [["TEXT", "BLOB"]] * 2


async def test_a_replacement_of_the_file_is_noticed(file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    with closing(sqlite3.connect(new)) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT 7 AS n, 'new' AS name")
    async with opened(file) as database:
        await learn(database, ROW)
        assert await read(database, ROW) == FOUND
        new.replace(file)
        assert await read(database, ROW) is None
        await learn(database, ROW)
        assert await read(database, ROW) == [(7, "new")]


async def test_each_read_has_a_span_a_cursor_and_the_errors_of_a_thread(
    file: Path, other: sqlite3.Connection
) -> None:
    few, named = "SELECT n FROM numbers WHERE n < 5", []

    def collect(name: str, _: object, kind: str) -> Any:
        named.append((name, kind))
        return nullcontext()

    other.execute("PRAGMA journal_mode = DELETE")
    async with inside("--busy-timeout", "0.05", file) as peer:
        spans.set_tracer(collect)
        try:
            for query in (ROW, ROW, few):
                await peer.data("read_query", query=query)
        finally:
            spans.set_tracer(None)
        first = await peer.data("read_query", query=few, max_rows=2)
        rest = await peer.data("read_query", query=few, cursor=first["next_cursor"])
        other.execute("BEGIN EXCLUSIVE")
        locked = await peer.error("read_query", query=ROW)
        other.execute("COMMIT")
        file.unlink()
        gone = await peer.error("read_query", query=ROW)
    assert named.count(("SELECT data", "client")) == 3
    assert (first["rows"], rest["rows"]) == ([[0], [1]], [[2], [3], [4]])
    assert (locked.partition(":")[0], gone.partition(":")[0]) == ("busy", "not_found")


async def test_a_file_that_cannot_be_opened_pauses_learning(file: Path) -> None:
    async with opened(file) as database:
        file.unlink()
        await learn(database, ROW)
        assert not database.quick.can_run(ROW)
        assert not database.quick.should_learn(ROW, 0.0)


async def test_writes_by_the_server_are_read() -> None:
    rows = []
    async with inside("--allow-write", ":memory:") as peer:
        await peer.call("write_query", query="CREATE TABLE t (a)")
        for number in range(3):
            await peer.call("write_query", query=f"INSERT INTO t VALUES ({number})")
            rows.append((await peer.data("read_query", query="SELECT a FROM t"))["rows"])
    assert rows == [[[0]], [[0], [1]], [[0], [1], [2]]]


ANSWERED = [
    "SELECT 1 AS a, 2.5 AS a, NULL AS b, x'00ff' AS c, 'ä' AS d",
    "SELECT 9007199254740993 AS big, 9e999 AS infinite, CAST(x'61ff' AS TEXT) AS broken",
    "SELECT n, name FROM numbers WHERE n < 3",
    "SELECT n FROM numbers WHERE n < 0",
    "SELECT name || name || name || name || name || name || name || name AS long FROM numbers WHERE n = 7",
]


async def test_thread_and_event_loop_give_the_same_answer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_MAX_THREAD_SECONDS", "_LATE_SECONDS", "_READ_SECONDS", "_SLOW_SECONDS"):
        monkeypatch.setattr(quick, limit, PATIENCE)  # else nothing would be learned on a busy machine
    async with inside("--max-cell", "100", file) as peer:
        for query in ANSWERED:
            both = [await peer.call("read_query", query=query) for _ in range(2)]
            assert peer.running.state.databases.get(None)._database.quick.can_run(
                query
            )  # no answer shows where it was read
            for one in both:
                one["structuredContent"].pop("elapsed_ms")
                one["content"] = one["content"][0]["text"].splitlines()[2:-1]
            assert both[0] == both[1]


async def test_a_read_in_the_event_loop_is_answered_without_a_turn(file: Path) -> None:
    async with inside(file) as peer:
        await peer.data("read_query", query=ROW)
        connection = peer.running.connect(None, lambda: None)
        params = with_envelope({"name": "read_query", "arguments": {"query": ROW}})
        connection.receive(Request(1, "tools/call", params))
        (answer,) = connection.outgoing()
        await connection.close()
    assert isinstance(answer.message, Response)
    assert answer.message.result["structuredContent"]["rows"] == [list(row) for row in FOUND]
