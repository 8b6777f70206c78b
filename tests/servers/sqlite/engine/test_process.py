"""Uninterruptible statements, which run in a process that is killed on timeout or cancellation."""

import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path

import anyio
import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.sqlite.engine.connection import Connection
from servers.sqlite.engine.database import Source, open_databases
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.process import WorkerProcess
from tests.clock import forward
from tests.quiet import quiet
from tests.servers.sqlite.serving import inside, served
from tests.servers.sqlite.writing import ask, dry_run, execute, opened
from tests.wire import PATIENCE

# One instruction that compares millions of bytes at each of millions of places, and takes hours.
HOURS = "instr(zeroblob(16000000), zeroblob(8000000) || x'01')"
INSERT = "INSERT INTO t (a) VALUES (1)"
MORE = ("replace(name, 'n', 'm')", "instr(name, 'm')", "json_patch('{}', '{}')")
CALLS = ["trim(name)", *(pytest.param(one, marks=pytest.mark.slow) for one in MORE)]


def find_worker_pid(connection: Connection) -> int | None:
    """Returns the process ID of a connection's worker, which no public name shows."""
    return connection._worker.pid


def is_alive(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        # A zombie counts as dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False


@asynccontextmanager
async def connected(file: Path, mode: str = "ro", **limits: float) -> AsyncIterator[Connection]:
    connection = Connection(file, mode, Limits(**limits), recovers=True)  # type: ignore[arg-type]
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize("call", CALLS)
async def test_only_uninterruptible_calls_run_in_a_process(file: Path, call: str) -> None:
    with closing(sqlite3.connect(file)) as plain:
        expected = plain.execute(f"SELECT {call} FROM numbers").fetchone()
    async with connected(file) as connection:
        for query in ("SELECT * FROM numbers WHERE name LIKE '%7%' ORDER BY name", "SELECT upper(name) FROM numbers"):
            await connection.run(partial(ask, query))
        assert find_worker_pid(connection) is None
        assert await connection.run(partial(ask, f"SELECT {call} FROM numbers")) == expected
        pid = find_worker_pid(connection)
        assert pid is not None
        assert await connection.run(partial(ask, f"SELECT {call} FROM numbers")) == expected
        assert find_worker_pid(connection) == pid
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_the_opening_number_changes_with_the_process(file: Path) -> None:
    openings = []
    async with connected(file) as connection:
        for kills in (False, False, True, False):
            if kills:
                os.kill(find_worker_pid(connection) or 0, signal.SIGKILL)
                await connection._worker.end()  # until it has ended
            await connection.run(partial(ask, "SELECT trim('a')"))
            openings.append(connection.opening_number)
    assert openings[0] == openings[1] != openings[2] == openings[3]


async def test_the_process_ends_when_it_was_idle_for_long_since_its_last_statement(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[WorkerProcess] = []
    monkeypatch.setattr(WorkerProcess, "_end_idle_process", lambda process: ended.append(process))
    async with connected(file) as connection:
        for seconds, number in ((30, 0), (30, 0), (20, 1)):
            if number == 0:
                await connection.run(partial(ask, "SELECT trim('a')"))
            forward(seconds)
            await quiet()
            assert len(ended) == number


@pytest.mark.slow
@pytest.mark.parametrize("job", [pytest.param(None, id="a statement"), pytest.param(Job(3_600), id="a task")])
async def test_the_process_is_killed_on_timeout(file: Path, job: Job | None) -> None:
    async with connected(file, timeout=1) as connection:
        await connection.run(partial(ask, "SELECT trim('a')"))
        pid = find_worker_pid(connection)
        assert pid is not None
        with anyio.fail_after(PATIENCE), pytest.raises(SqlError) as raised:
            await connection.run(partial(ask, f"SELECT {HOURS}"), job=job)
        assert raised.value.code == "timeout"
        assert not is_alive(pid)
        assert await connection.run(partial(ask, "SELECT trim(' a')")) == ("a",)


@pytest.mark.slow
async def test_the_process_is_killed_on_cancellation(file: Path) -> None:
    async with connected(file) as connection:
        await connection.run(partial(ask, "SELECT trim('a')"))
        pid = find_worker_pid(connection)
        assert pid is not None
        # On a busy machine, it takes a while until the process gets the statement, and until it ends.
        with anyio.move_on_after(0.5):
            await connection.run(partial(ask, f"SELECT {HOURS}"))
        with anyio.fail_after(PATIENCE):
            while is_alive(pid):
                await anyio.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("hindrance", ["a lock", "a pipe"])
async def test_a_failing_recovery_does_not_hide_the_timeout(hindrance: str, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        async with connected(file, "rw", timeout=1, busy_timeout=0) as connection:
            await connection.run(partial(ask, "SELECT trim('a')"))
            if hindrance == "a lock":
                other.execute("BEGIN EXCLUSIVE")
            else:
                os.mkfifo(f"{file}-journal")
            with anyio.fail_after(PATIENCE), pytest.raises(SqlError) as raised:
                await connection.run(partial(ask, f"SELECT {HOURS}"))
    assert raised.value.code == "timeout"


HIDDEN = ("view", "trigger", "generated", "check", "index")


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
async def test_uninterruptible_calls_within_the_schema_are_detected(tmp_path: Path, where: str) -> None:
    path = tmp_path / "hidden.db"
    script = {
        "view": "CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT {} FROM t",
        "trigger": "CREATE TABLE t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT {}; END",
        # An INSERT would compute the column.
        "generated": "CREATE TABLE t (a, b AS ('x')); INSERT INTO t VALUES (1); PRAGMA writable_schema = ON; "
        "UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a, b AS ({}))'",
        "check": "CREATE TABLE t (a CHECK ({} IS NULL))",
        "index": "CREATE TABLE t (a); CREATE INDEX i ON t ({})",
    }[where]
    reads = {"view": "SELECT * FROM v", "generated": "SELECT b FROM t"}
    call = "instr(zeroblob(a * 16000000), zeroblob(8000000) || char(1))"
    with closing(sqlite3.connect(path)) as plain:
        plain.executescript(script.format(call.replace("a *", "new.a *") if where == "trigger" else call))
    async with opened(path, Limits(timeout=1)) as database:
        read, insert = partial(database.read, partial(ask, reads.get(where, ""))), partial(execute, database, INSERT)
        with anyio.fail_after(PATIENCE), pytest.raises(SqlError) as raised:
            await (read if where in reads else insert)()
        assert raised.value.code == "timeout"
        # No thread runs it either, which only the connections show.
        assert {connection._deadline for pool in database.pools for connection in pool._connections} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_a_change_in_a_killed_process_is_rolled_back(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as plain:
        plain.executescript(f"PRAGMA journal_mode = {mode}; CREATE TABLE t (a TEXT, b)")
    async with opened(path, Limits(timeout=1)) as database:
        await execute(database, "INSERT INTO t VALUES (trim(' 1'), zeroblob(12000000))")
        with pytest.raises(SqlError) as raised:
            await execute(database, "UPDATE t SET a = 2, b = zeroblob(12000001)", f"UPDATE t SET a = {HOURS}")
        assert raised.value.code == "timeout"
        # Another program has nothing to recover first.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as other:
            assert other.execute("SELECT a FROM t").fetchall() == [("1",)]
        assert await database.read(partial(ask, "SELECT a FROM t")) == ("1",)
        await execute(database, "UPDATE t SET a = 3")
        shown = await dry_run(database, "UPDATE t SET a = replace(a, '3', '4')")
        assert shown["changes"][0]["counts"]["updated"] == 1
        assert await database.read(partial(ask, "SELECT a FROM t")) == ("3",)


@pytest.mark.slow
async def test_errors_in_the_process_read_as_those_in_the_server(file: Path) -> None:
    async with served("--allow-write", file) as peer:
        wrong = await peer.error("read_query", query="SELECT trim(missing) FROM numbers")
        second = await peer.error("write_query", query=["SELECT trim('a')", "INSERT INTO numbers VALUES (1, 'a')"])
        refused = await peer.error("read_query", query="SELECT trim(load_extension('a'))")
    assert "no such column: missing" in wrong.splitlines()
    assert second.startswith("constraint: statement 2: ")
    assert refused.startswith("refused: ")


@pytest.mark.slow
async def test_a_cursor_continues_in_the_same_snapshot(file: Path) -> None:
    query = "SELECT replace(name, 'number', 'n') AS name FROM numbers ORDER BY n"
    async with inside("--allow-write", file) as peer:
        first = await peer.data("read_query", query=query, max_rows=2)
        await peer.data("write_query", query="DELETE FROM numbers")
        second = await peer.data("read_query", query=query, max_rows=900, cursor=first["next_cursor"])
        third = await peer.data("read_query", query=query, cursor=second["next_cursor"])
    assert [*first["rows"], *second["rows"], *third["rows"]] == [[f"n {n}"] for n in range(1_000)]
    assert (second["changed"], third["changed"], third["next_cursor"]) == (False, False, None)


@pytest.mark.slow
async def test_imports_and_exports_run_in_a_process(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as plain:
        plain.executescript("CREATE TABLE t (a, b AS (trim(a)))")
    async with inside("--allow-write", path) as peer:
        assert "isError" not in await peer.call("import_csv", table="t", csv="a\n  x \n")
        link = (await peer.call("export", query="SELECT b FROM t"))["content"][0]
        (contents,) = (await peer.request("resources/read", uri=link["uri"]))["result"]["contents"]
    assert contents["text"] == "b\r\nx\r\n"


@pytest.mark.slow
async def test_an_export_in_a_killed_process_leaves_no_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = file.parent / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    async with served("--timeout", "1", file) as peer:
        assert (await peer.error("export", query=f"SELECT 1 UNION ALL SELECT {HOURS}")).startswith("timeout: ")
        assert list(folder.rglob("*.csv")) == []


@pytest.mark.slow
async def test_a_killed_server_leaves_no_process(file: Path) -> None:
    async with served(file) as peer:
        call = {"name": "read_query", "arguments": {"query": f"SELECT {HOURS}"}}
        await peer.data("read_query", query="SELECT trim('a')")
        children = Path(f"/proc/{peer.wire.pid}/task/{peer.wire.pid}/children")
        (pid,) = [int(one) for one in children.read_text().split()]
        await peer.wire.send({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": call})
        await peer.data("read_query", query="SELECT 1")
        os.kill(peer.wire.pid, signal.SIGKILL)
        with anyio.fail_after(PATIENCE):
            while is_alive(pid):
                await anyio.sleep(0.01)


@pytest.mark.slow
async def test_at_most_two_processes_work_at_once(file: Path) -> None:
    async with open_databases([Source("data", file, False)], Limits(timeout=0.5), 8) as databases:
        database, codes = databases.get(None), []

        async def run() -> None:
            with pytest.raises(SqlError) as raised:
                await database.read(partial(ask, f"SELECT {HOURS}"))
            codes.append(raised.value.code)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(run)
    # A waiting statement may still take a place that becomes free just before its timeout.
    assert (min(codes), sorted(codes)[3:]) == ("busy", ["timeout", "timeout"])
