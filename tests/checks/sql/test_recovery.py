"""What a killed writer left half done is undone where writing is allowed, and told where it is not."""

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.database import Source, open_databases
from servers.sqlite.engine.deadline import Limits
from tests.checks.faults.test_writing import own_mounts
from tests.servers.sqlite.killed import ALL, ROWS, TOLD, kill_in_midwrite, leave_hot_journal, make, values
from tests.servers.sqlite.serving import served
from tests.wire import Wire

JOURNALS = ("delete", "truncate", "persist", "wal")
UNSAFE = ("memory", "off")
"""With these SQLite itself says that a killed writer may leave anything."""


async def started(file: Path, *, writable: bool) -> Sequence[tuple[int, int]]:
    """What is read by a server that is started over the file. Raises ValueError where it does not start."""
    async with open_databases([Source("data", file, writable)], Limits(), 2) as databases:
        return await values(databases.get("data"))


@pytest.fixture
def hot(tmp_path: Path) -> Path:
    """A database with a hot journal."""
    file = make(tmp_path / "data.db")
    leave_hot_journal(file)
    return file


# The server's own start


async def test_a_server_that_may_write_starts_over_a_hot_journal(hot: Path) -> None:
    async with served("--allow-write", hot) as peer:
        assert (await peer.data("read_query", query=ALL))["rows"] == [[0, ROWS]]


async def test_a_server_that_may_not_write_tells_the_operator_what_to_do(hot: Path) -> None:
    before = hot.read_bytes()
    async with Wire([sys.executable, "-m", "servers.sqlite", str(hot)]) as wire:
        assert await wire.wait() != 0
    assert TOLD in wire.stderr
    assert "start it once with --allow-write" in wire.stderr
    assert hot.read_bytes() == before


# Media that can't be written to: SQLite would pass over the journal there, or the log, and show half of the truth.

READ = """
import asyncio, sys
from pathlib import Path
from tests.checks.sql.test_recovery import started
try:
    print(asyncio.run(started(Path(sys.argv[1]), writable=False)))
except ValueError as error:
    print(error)
"""
# Mounts a folder on itself, so that nothing in it can be written, for the command that follows alone.
UNWRITABLE = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def read_on_unwritable_media(file: Path) -> str:
    if not own_mounts(file.parent) and not (os.environ.get("CI") == "true" and os.geteuid() == 0):
        pytest.skip("nothing can be mounted here: run the tests as root (sudo), or allow user namespaces")
    prefix = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", UNWRITABLE, str(file.parent)]
    done = subprocess.run(
        [*prefix, sys.executable, "-c", READ, str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_hot_journal_on_read_only_media_is_not_passed_over(hot: Path) -> None:
    assert TOLD in read_on_unwritable_media(hot)


def test_a_log_on_read_only_media_is_not_passed_over(tmp_path: Path) -> None:
    file = make(tmp_path / "data.db", "wal")
    leave_hot_journal(file, "wal")
    Path(f"{file}-shm").unlink()
    assert "write-ahead log" in read_on_unwritable_media(file)


def test_a_database_that_was_closed_is_read_on_read_only_media(tmp_path: Path) -> None:
    assert f"[(0, {ROWS})]" in read_on_unwritable_media(make(tmp_path / "data.db", "wal"))


# Moments


async def whole_or_told(file: Path) -> bool:
    """Whether a server that may not write reads all or nothing of the change, or says why it can't read."""
    try:
        ((_, count),) = await started(file, writable=False)
    except ValueError as error:
        return TOLD in str(error)
    return count == ROWS


@pytest.mark.timeout(300)
async def test_a_kill_at_any_moment_leaves_what_is_read_whole_or_told(tmp_path: Path) -> None:
    chance = random.Random(200)
    for number in range(200):
        mode = (*JOURNALS, *UNSAFE)[number % 6]
        file = make(tmp_path / f"{number}.db", "wal" if mode == "wal" else "delete")
        kill_in_midwrite(file, mode, chance)
        if mode in UNSAFE:
            with suppress(ValueError, SqlError):
                await started(file, writable=True)
            continue
        assert await whole_or_told(file)
        ((_, count),) = await started(file, writable=True)
        assert count == ROWS
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
