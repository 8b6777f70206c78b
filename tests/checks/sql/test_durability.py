"""SQLite databases after a killed writer, a full disk, or a lost client."""

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from tests.checks.faults.test_writing import killed_writers, own_mounts
from tests.raw import Raw, call
from tests.servers.crowds import client_at, result_of
from tests.servers.sqlite.serving import served
from tests.servers.sqlite.writing import counting as database
from tests.wire import PATIENCE, start_http

BATCH = 3_000
MODES = pytest.mark.parametrize("mode", ["wal", "delete"])
ENDLESS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n"


# Killed writers

SETUP = """
import asyncio, contextlib, itertools, json, os, sys
from functools import partial
from pathlib import Path
from servers.common.sql.errors import SqlError
from servers.sqlite.write import importing
from servers.sqlite.write.backups import back_up
from servers.common.sql.write.consent import Consent
from servers.common.sql.importing.files import text_opener
from servers.common.sql.importing.imports import Import
from servers.common.sql.importing.tables import FormatRequest
from servers.sqlite.write.session import write
from tests.servers.sqlite.writing import execute, opened

folder = Path(sys.argv[1])
NUMBERS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {})"

def inserting(batch, count):
    return f"{NUMBERS.format(count)} INSERT INTO rows SELECT {batch}, n FROM n"

async def load(database, csv):
    wanted = Import("rows", text_opener(csv), FormatRequest())
    return await write(database, partial(importing.import_csv, wanted, Consent()))

async def back(database):
    return await database.read(partial(back_up, folder / "files", "data"))
"""
WRITER = f"""
async def write_batches(first):
    async with opened(folder / "data.db") as database:
        for batch in itertools.count(first, 2):
            half = {BATCH // 2}
            await execute(database, inserting(batch, half), "UPDATE counter SET n = n + 1", inserting(batch, half))
            print(batch, flush=True)
            await load(database, "batch,n\\n" + "".join(f"{{batch + 1}},{{n}}\\n" for n in range({BATCH})))
            print(batch + 1, flush=True)
            await back(database)

def work(first):
    asyncio.run(write_batches(int(first)))
"""


def batches(path: Path) -> set[int]:
    """Returns the complete batches in a database."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counts = dict(connection.execute("SELECT batch, count(*) FROM rows GROUP BY batch"))
        assert set(counts.values()) <= {BATCH}
        (written,) = connection.execute("SELECT n FROM counter").fetchone()
    assert written == sum(batch % 2 == 0 for batch in counts)
    return set(counts)


@MODES
@pytest.mark.timeout(900)
def test_a_killed_writer_leaves_whole_transactions_and_whole_backups(tmp_path: Path, mode: str) -> None:
    with database(tmp_path, mode):
        (tmp_path / "files").mkdir()
    chance, said = random.Random(50), set[int]()
    with killed_writers(SETUP + WRITER, tmp_path) as kill_one:
        for number in range(50):
            # The numbers of the batches that were acknowledged.
            said |= {int(line) for line in kill_one(str(number * 1_000), chance.randint(1, 6))}
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
def test_a_full_disk_loses_nothing(tmp_path: Path, mode: str) -> None:
    prefix = own_mounts(tmp_path)
    if not prefix and not (os.environ.get("CI") == "true" and os.geteuid() == 0):
        pytest.skip("no small disk can be mounted here: run the tests as root (sudo), or allow user namespaces")
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


# Parallel writers


async def test_thirty_parallel_writes_over_http_are_all_committed(tmp_path: Path) -> None:
    async def count(client: httpx.AsyncClient) -> None:
        query = ["UPDATE counter SET n = n + 1", "INSERT INTO rows SELECT 1, n FROM counter"]
        result = await result_of(client, "write_query", query=query)
        assert result["structuredContent"]["committed"], result

    command = [sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / "data.db")]
    with database(tmp_path) as db:
        async with (
            start_http(command) as url,
            client_at(url, "127.0.0.1") as client,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(30):
                tasks.start_soon(count, client)
        assert db.execute("SELECT n FROM rows ORDER BY n").fetchall() == [(n,) for n in range(1, 31)]


# Lost clients


async def until_locked(db: sqlite3.Connection, locked: bool) -> None:
    """Waits until another connection holds the write lock, or releases it."""
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


@pytest.mark.parametrize("end", ["cancel", "close", "terminate"])
async def test_changes_are_rolled_back_when_the_client_leaves(tmp_path: Path, end: str) -> None:
    params = {"name": "write_query", "arguments": {"query": ["UPDATE counter SET n = 5", ENDLESS]}}
    with database(tmp_path) as db:
        async with served("--allow-write", tmp_path / "data.db") as peer:
            await peer.wire.send({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params})
            await until_locked(db, True)
            if end == "cancel":
                await peer.wire.notify("notifications/cancelled", {"requestId": "long"})
            elif end == "close":
                await peer.wire.close_stdin()
            else:
                peer.wire.terminate()
            await until_locked(db, False)
            assert db.execute("SELECT n FROM counter").fetchone() == (0,)
            if end == "cancel":
                await peer.data("write_query", query="UPDATE counter SET n = 6")


@pytest.mark.parametrize("streams", ["pipes", "sockets"])
async def test_a_short_change_is_rolled_back_when_its_client_is_killed(tmp_path: Path, streams: str) -> None:
    # The change would finish within the time that a server gives calls at the end of its input.
    a_moment = ENDLESS.replace("FROM n)", "FROM n LIMIT 2000000)")
    command = [sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / "data.db")]
    with database(tmp_path) as db, _client(streams, command) as client:
        client.open().send(call("write", "write_query", query=["UPDATE counter SET n = 5", a_moment]))
        await until_locked(db, True)
        # As the system does for a killed process: one descriptor after the other.
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


async def test_changes_are_rolled_back_when_an_http_client_leaves(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / "data.db")]
    with database(tmp_path) as db:
        async with start_http(command) as url, client_at(url, "127.0.0.1") as client:
            async with anyio.create_task_group() as tasks:
                change = partial(result_of, client, "write_query", query=["UPDATE counter SET n = 5", ENDLESS])
                tasks.start_soon(change)
                await until_locked(db, True)
                tasks.cancel_scope.cancel()
            await until_locked(db, False)
        assert db.execute("SELECT n FROM counter").fetchone() == (0,)
