"""What stays of a database whose writer is killed, has no room on its disk, or is not alone."""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from servers.sql.errors import SqlError
from servers.sql.pages import AnswerLimits
from servers.sql.query import Query
from servers.sql.write.consent import Figures
from servers.sqlite.engine.limits import Limits, StatementDeadline
from servers.sqlite.query.query import run_query
from servers.sqlite.write.session import Session, write
from tests.checks.faults.raw import Raw, call
from tests.checks.faults.test_writing import own_mounts
from tests.servers.sqlite.serving import served
from tests.servers.sqlite.writing import execute, opened
from tests.wire import PATIENCE, start_http, with_envelope

BATCH = 3_000
MODES = pytest.mark.parametrize("mode", ["wal", "delete"])
ENDLESS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n"


@contextmanager
def database(folder: Path, mode: str = "wal") -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "data.db", timeout=0, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE rows (batch INTEGER, n INTEGER)")
        connection.execute("CREATE TABLE counter AS SELECT 0 AS n")
        yield connection


# Killed

SETUP = """
import asyncio, contextlib, itertools, json, sys
from functools import partial
from pathlib import Path
from servers.sql.errors import SqlError
from servers.sqlite.write import importing
from servers.sqlite.write.backups import back_up
from servers.sql.write.consent import Consent
from servers.sql.write.csvs import CsvFormat, open_text
from servers.sql.write.imports import Import
from servers.sqlite.write.session import write
from tests.servers.sqlite.writing import execute, opened

folder = Path(sys.argv[1])
NUMBERS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {})"

def inserting(batch, count):
    return f"{NUMBERS.format(count)} INSERT INTO rows SELECT {batch}, n FROM n"

async def load(database, csv):
    wanted = Import("rows", open_text(csv), CsvFormat())
    return await write(database, partial(importing.import_csv, wanted, Consent()))

async def back(database):
    return await database.read(partial(back_up, folder / "files", "data"))
"""
WRITER = f"""
async def main():
    async with opened(folder / "data.db") as database:
        for batch in itertools.count(int(sys.argv[2]), 2):
            half = {BATCH // 2}
            await execute(database, inserting(batch, half), "UPDATE counter SET n = n + 1", inserting(batch, half))
            print(batch, flush=True)
            await load(database, "batch,n\\n" + "".join(f"{{batch + 1}},{{n}}\\n" for n in range({BATCH})))
            print(batch + 1, flush=True)
            await back(database)

asyncio.run(main())
"""


def kill_while_writing(folder: Path, first: int, acts: int) -> set[int]:
    """The batches that were acknowledged."""
    command = [sys.executable, "-c", SETUP + WRITER, str(folder), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        done = [process.stdout.readline() for _ in range(acts)]
        process.send_signal(signal.SIGKILL)
        done += process.stdout.readlines()
    return {int(line) for line in done}


def batches(path: Path) -> set[int]:
    """Those that a database holds, whole."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counts = dict(connection.execute("SELECT batch, count(*) FROM rows GROUP BY batch"))
        assert set(counts.values()) <= {BATCH}
        (written,) = connection.execute("SELECT n FROM counter").fetchone()
    assert written == sum(batch % 2 == 0 for batch in counts)
    return set(counts)


@MODES
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(4, marks=pytest.mark.slow), pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_a_killed_writer_leaves_whole_transactions_and_whole_backups(tmp_path: Path, mode: str, rounds: int) -> None:
    with database(tmp_path, mode):
        (tmp_path / "files").mkdir()
    chance, said = random.Random(rounds), set[int]()
    for number in range(rounds):
        said |= kill_while_writing(tmp_path, number * 1_000, chance.randint(1, 6))
        found = batches(tmp_path / "data.db")
        assert said <= found
    for copy in (tmp_path / "files").glob("*.db"):
        assert batches(copy) <= found
    left = {path.name.rpartition(".")[2] for path in (tmp_path / "files").iterdir()}
    assert left <= {"db", "part"}
    assert not (tmp_path / "data.db-journal").exists()


# A full disk

FULL = """
async def outcome(act):
    try:
        await act
    except SqlError as error:
        return error.code
    return "done"

def fill(path):
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))

async def main():
    (folder / "files").mkdir()
    async with opened(folder / "made.db") as database:
        await execute(database, "CREATE TABLE rows (batch INTEGER, n INTEGER)", inserting(1, 1000))
        codes = {
            "write": await outcome(execute(database, "DELETE FROM rows", inserting(2, 30_000))),
            "import": await outcome(load(database, "batch,n\\n" + "3,text text text\\n" * 20_000)),
        }
        fill(folder / "filler")
        codes["backup"] = await outcome(back(database))
        left = [path.name for path in (folder / "files").iterdir()]
        (folder / "filler").unlink()
        seen = await execute(database, "SELECT batch, count(*) FROM rows GROUP BY batch", "PRAGMA integrity_check")
        rows = [one["rows"] for one in seen["statements"]]
        print(json.dumps([codes, rows, left, await outcome(execute(database, inserting(4, 1)))]))

asyncio.run(main())
"""


@MODES
@pytest.mark.slow
def test_a_full_disk_loses_nothing(tmp_path: Path, mode: str) -> None:
    prefix = own_mounts(tmp_path)
    if not prefix and not (os.environ.get("CI") == "true" and os.geteuid() == 0):
        pytest.skip("no small disk can be mounted here: that takes root, or a user namespace of one's own")
    make = f"""
import sqlite3
with sqlite3.connect(folder / "made.db") as connection:
    connection.execute("PRAGMA journal_mode = {mode}")
connection.close()
"""
    command = [*prefix, sys.executable, "-c", SETUP + make + FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    codes, rows, left, afterwards = json.loads(done.stdout)
    assert codes == dict.fromkeys(["write", "import", "backup"], "no_space")
    assert (rows, left, afterwards) == ([[[1, 1_000]], [["ok"]]], [], "done")


# Not alone


@MODES
async def test_changes_by_two_writers_are_all_made(tmp_path: Path, mode: str) -> None:
    async def count(path: Path) -> None:
        # With a rollback journal one may have to wait until the other is done with all.
        async with opened(path, Limits(busy_seconds=30)) as mine:
            for _ in range(30):
                await execute(mine, "UPDATE counter SET n = n + 1", "INSERT INTO rows SELECT 1, n FROM counter")

    with database(tmp_path, mode) as db:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count, tmp_path / "data.db")
            tasks.start_soon(count, tmp_path / "data.db")
        assert db.execute("SELECT n FROM rows ORDER BY n").fetchall() == [(n,) for n in range(1, 61)]


@pytest.mark.slow
async def test_thirty_parallel_writes_over_http_are_all_made(tmp_path: Path) -> None:
    async def count(client: httpx.AsyncClient, number: int) -> None:
        arguments = {"query": ["UPDATE counter SET n = n + 1", "INSERT INTO rows SELECT 1, n FROM counter"]}
        params = with_envelope({"name": "write_query", "arguments": arguments})
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "write_query",
        }
        answer = await client.post("/mcp", json=message, headers=headers)
        assert answer.json()["result"]["structuredContent"]["committed"], answer.text

    command = [sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / "data.db")]
    with database(tmp_path) as db:
        async with (
            start_http(command) as url,
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE) as client,
            anyio.create_task_group() as tasks,
        ):
            for number in range(30):
                tasks.start_soon(count, client, number)
        assert db.execute("SELECT n FROM rows ORDER BY n").fetchall() == [(n,) for n in range(1, 31)]


@MODES
@pytest.mark.parametrize("act", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
async def test_s9_a_lock_that_others_keep_is_told_in_time(tmp_path: Path, mode: str, act: str) -> None:
    with database(tmp_path, mode) as db:
        async with opened(tmp_path / "data.db", Limits(busy_seconds=0.2)) as mine:
            db.execute(act)
            with anyio.fail_after(4), pytest.raises(SqlError) as raised:
                await execute(mine, "DELETE FROM rows")
            db.execute("ROLLBACK")
            await execute(mine, "DELETE FROM rows")
    assert raised.value.code == "busy"


async def test_s9_a_lock_that_others_let_go_of_is_waited_for(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        async with opened(tmp_path / "data.db") as mine, anyio.create_task_group() as tasks:
            db.execute("BEGIN IMMEDIATE")
            tasks.start_soon(execute, mine, "UPDATE counter SET n = 5")
            seen = await mine.read(lambda connection, _: connection.execute("SELECT n FROM counter").fetchone())
            db.execute("COMMIT")
        assert (seen, db.execute("SELECT n FROM counter").fetchone()) == ((0,), (5,))


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Set once somebody waits for a lock, and to be set once that is free."""
    waits, free, plain = threading.Event(), threading.Event(), StatementDeadline.pause

    def pause(self: StatementDeadline) -> bool:
        waits.set()
        return free.wait(PATIENCE) and plain(self)

    monkeypatch.setattr(StatementDeadline, "pause", pause)
    return waits, free


async def change(path: Path) -> None:
    """A change by a connection that is only opened for it."""
    async with opened(path) as mine:
        await execute(mine, "UPDATE counter SET n = 5")


async def read(path: Path) -> None:
    """A query by a connection that is only opened for it."""
    async with opened(path) as mine:
        answer = await mine.read(
            partial(run_query, Query("SELECT n FROM counter", ()), AnswerLimits(10, 10_000, 1_000))
        )
    assert list(answer.page.rows) == [(0,)]


@pytest.mark.parametrize("act", [change, read])
async def test_s9_who_comes_while_the_database_is_locked_waits(
    tmp_path: Path, waiting: tuple[threading.Event, threading.Event], act: Callable[[Path], Awaitable[None]]
) -> None:
    waits, free = waiting
    with database(tmp_path, "delete") as db:
        db.execute("BEGIN EXCLUSIVE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act, tmp_path / "data.db")
            assert await anyio.to_thread.run_sync(waits.wait, PATIENCE)
            db.execute("COMMIT")
            free.set()


@pytest.mark.parametrize("act", ["write", "read"])
async def test_s9_who_is_there_while_the_database_is_locked_waits(
    tmp_path: Path, waiting: tuple[threading.Event, threading.Event], act: str
) -> None:
    waits, free = waiting
    with database(tmp_path, "delete") as db:
        async with opened(tmp_path / "data.db") as mine, anyio.create_task_group() as tasks:
            await execute(mine, "DELETE FROM rows")
            db.execute("BEGIN EXCLUSIVE")
            if act == "write":
                tasks.start_soon(execute, mine, "UPDATE counter SET n = 5")
            else:
                work = partial(run_query, Query("SELECT n FROM counter", ()), AnswerLimits(10, 10_000, 1_000))
                tasks.start_soon(mine.read, work)
            assert await anyio.to_thread.run_sync(waits.wait, PATIENCE)
            db.execute("COMMIT")
            free.set()


async def test_a_commit_waits_for_a_reader_where_it_must(tmp_path: Path) -> None:
    def refused() -> bool:
        with closing(sqlite3.connect(tmp_path / "data.db", timeout=0)) as connection:
            try:
                connection.execute("SELECT n FROM counter").fetchall()
            except sqlite3.OperationalError:
                return True
        return False

    with database(tmp_path, "delete") as db:
        db.execute("INSERT INTO rows VALUES (1, 1), (1, 2)")
        reading = db.execute("SELECT * FROM rows")
        async with opened(tmp_path / "data.db") as mine, anyio.create_task_group() as tasks:
            tasks.start_soon(execute, mine, "DELETE FROM rows")
            # Once a commit waits, nobody begins to read.
            with anyio.fail_after(PATIENCE):
                while not refused():
                    await anyio.sleep(0)
            assert len(reading.fetchall()) == 2
        assert db.execute("SELECT count(*) FROM rows").fetchone() == (0,)


async def test_s9_a_commit_that_a_reader_holds_up_is_rolled_back_in_time(tmp_path: Path) -> None:
    with database(tmp_path, "delete") as db:
        db.execute("INSERT INTO rows VALUES (1, 1), (1, 2)")
        reading = db.execute("SELECT * FROM rows")
        async with opened(tmp_path / "data.db", Limits(busy_seconds=0.2)) as mine:
            with pytest.raises(SqlError) as raised:
                await execute(mine, "DELETE FROM rows")
            reading.close()
            await execute(mine, "UPDATE counter SET n = 5")
        assert raised.value.code == "busy"
        assert db.execute("SELECT count(*), (SELECT n FROM counter) FROM rows").fetchone() == (2, 5)


async def test_readers_see_the_last_commit_while_a_change_is_made(tmp_path: Path) -> None:
    changed, seen = threading.Event(), threading.Event()

    def change(session: Session) -> None:
        with session.transaction():
            session.connection.execute("UPDATE counter SET n = 5")
            changed.set()
            assert seen.wait(PATIENCE)
            session.commit(Figures(1, (1,), ("numbers",), False))

    with database(tmp_path):
        async with opened(tmp_path / "data.db") as mine, anyio.create_task_group() as tasks:
            tasks.start_soon(write, mine, change)
            await anyio.to_thread.run_sync(partial(changed.wait, PATIENCE))
            rows = [
                await mine.read(lambda connection, _: connection.execute("SELECT n FROM counter").fetchone())
                for _ in range(20)
            ]
            seen.set()
    assert rows == [(0,)] * 20


async def test_where_the_time_is_over_in_a_commit_it_is_said_that_nobody_knows(tmp_path: Path) -> None:
    over = threading.Event()

    def commit(session: Session) -> None:
        with session.deadline.committing():
            assert over.wait(PATIENCE)

    with database(tmp_path):
        async with opened(tmp_path / "data.db", Limits(seconds=1)) as mine:
            with pytest.raises(SqlError) as raised:
                await write(mine, commit)
            over.set()
    assert (raised.value.code, raised.value.suggestion) == ("timeout", "Look whether they are there.")


# Gone


async def until_locked(db: sqlite3.Connection, locked: bool) -> None:
    """Waits until another connection holds the write lock, or lets go of it."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
                held = False
            except sqlite3.OperationalError:
                held = True
            if held == locked:
                return
            await anyio.sleep(0)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["cancel", pytest.param("close", marks=pytest.mark.slow)])
async def test_s13_changes_are_rolled_back_where_the_client_goes(tmp_path: Path, end: str) -> None:
    params = {"name": "write_query", "arguments": {"query": ["UPDATE counter SET n = 5", ENDLESS]}}
    with database(tmp_path) as db:
        async with served("--allow-write", tmp_path / "data.db") as peer:
            await peer.wire.send({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params})
            await until_locked(db, True)
            if end == "cancel":
                await peer.wire.notify("notifications/cancelled", {"requestId": "long"})
            else:
                await peer.wire.close_stdin()
            await until_locked(db, False)
            assert db.execute("SELECT n FROM counter").fetchone() == (0,)
            if end == "cancel":
                await peer.data("write_query", query="UPDATE counter SET n = 6")


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["pipes", "sockets"])
async def test_s13_a_change_that_would_end_is_rolled_back_where_its_client_is_killed(
    tmp_path: Path, streams: str
) -> None:
    # All of it would be done before the time that a server gives calls at the end of its input.
    a_moment = ENDLESS.replace("FROM n)", "FROM n LIMIT 2000000)")
    command = [sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / "data.db")]
    with database(tmp_path) as db, _client(streams, command) as client:
        client.open().send(call("write", "write_query", query=["UPDATE counter SET n = 5", a_moment]))
        await until_locked(db, True)
        # As the system does with a killed process: the one descriptor after the other.
        for descriptor in {client.fd_in, client.fd_out}:
            os.close(descriptor)
        assert client.wait() == 0
        assert db.execute("SELECT n FROM counter").fetchone() == (0,)


def _client(streams: str, command: list[str]) -> Raw:
    if streams == "pipes":
        client = Raw(command)
        assert client.process.stdin is not None
        assert client.process.stdout is not None
        client.fd_in, client.fd_out = os.dup(client.fd_in), os.dup(client.fd_out)
        client.process.stdin.close()
        client.process.stdout.close()
        return client
    # Node gives its children sockets.
    (ours_in, theirs_in), (ours_out, theirs_out) = socket.socketpair(), socket.socketpair()
    with theirs_in, theirs_out:
        client = Raw(command, stdin=theirs_in, stdout=theirs_out)
    client.fd_in, client.fd_out = ours_in.detach(), ours_out.detach()
    return client


@pytest.mark.slow
async def test_s13_changes_are_rolled_back_where_a_client_over_http_goes(tmp_path: Path) -> None:
    arguments: Any = {"query": ["UPDATE counter SET n = 5", ENDLESS]}
    params = with_envelope({"name": "write_query", "arguments": arguments})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "write_query",
    }
    command = [sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / "data.db")]
    with database(tmp_path) as db:
        async with start_http(command) as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(client.post, "/mcp", json=message, headers=headers))
                await until_locked(db, True)
                tasks.cancel_scope.cancel()
            await until_locked(db, False)
        assert db.execute("SELECT n FROM counter").fetchone() == (0,)
