"""`backup`: complete copies under new names, while the database is in use."""

import errno
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.deadline import Limits, StatementDeadline
from servers.sqlite.write.backups import Backup, back_up, reserve_name
from tests import disk
from tests.servers.sqlite.serving import inside
from tests.servers.sqlite.writing import SCHEMA, opened

MODES = pytest.mark.parametrize("mode", ["wal", "delete"])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    return files


def made(path: Path, mode: str = "wal", rows: int = 50) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.executescript(SCHEMA)
        connection.execute("CREATE TABLE large (n INTEGER PRIMARY KEY, x)")
        connection.executemany("INSERT INTO large VALUES (?, zeroblob(4000))", [(n,) for n in range(rows)])
        connection.commit()
    return path


async def run_backup(path: Path, files: Path) -> Backup:
    async with opened(path) as database:
        return await database.read(partial(back_up, files, "data"))


def interrupt_backup(monkeypatch: pytest.MonkeyPatch, at: int, act: Callable[[], Any]) -> None:
    """Calls `act` when a backup checks its deadline for the `at`-th time, the only moments known to a test."""
    checks = 0
    plain = StatementDeadline.check

    def check(self: StatementDeadline) -> None:
        nonlocal checks
        checks += 1
        if checks == at:
            act()
        plain(self)

    monkeypatch.setattr(StatementDeadline, "check", check)


async def test_backup_returns_name_size_and_check_result(tmp_path: Path, files: Path) -> None:
    async with inside("--db", f"main={made(tmp_path / 'data.db')}", "--files", files) as peer:
        answer = await peer.text("backup")
    (copy,) = files.iterdir()
    assert re.fullmatch(r"main-\d{8}T\d{6}Z\.db", copy.name)
    text = answer.splitlines()
    assert (text[0].split(";")[0], text[2]) == (f"{copy.name}: {copy.stat().st_size:,} bytes", "ok")
    assert str(tmp_path) not in answer


@MODES
async def test_a_backup_contains_the_whole_database(tmp_path: Path, files: Path, mode: str) -> None:
    path = made(tmp_path / "data.db", mode)
    done = await run_backup(path, files)
    assert [entry.name for entry in files.iterdir()] == [done.file]
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(files / done.file)) as other:
        assert list(one.iterdump()) == list(other.iterdump())


async def test_a_backup_is_synced_before_its_rename(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, made_with = disk.synced(monkeypatch), disk.made(monkeypatch)
    done = await run_backup(made(tmp_path / "data.db"), files)
    assert synced == [done.bytes, [done.file]]
    assert made_with == [0o600]


@MODES
async def test_a_backup_does_not_block_writers(
    tmp_path: Path, files: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "data.db", mode, 1_000)

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=0)) as connection, connection:
            connection.execute("UPDATE large SET x = 'new'")

    interrupt_backup(monkeypatch, 3, write)
    done = await run_backup(path, files)
    with closing(sqlite3.connect(files / done.file)) as copy:
        kinds = copy.execute("SELECT count(DISTINCT typeof(x)), typeof(x) FROM large").fetchone()
    # One state: the snapshot at the beginning, or the state after the last change.
    assert kinds == ((1, "blob") if mode == "wal" else (1, "text"))
    assert done.integrity == ["ok"]


async def test_backups_of_the_same_second_have_different_names(tmp_path: Path, files: Path) -> None:
    path = made(tmp_path / "data.db")
    with reserve_name(files, "a") as (_, first), reserve_name(files, "a") as (_, second):
        assert (first, second) == ("a.db", "a-2.db")
    with reserve_name(files, "a") as (_, third):
        assert third == "a-3.db"
    assert len({(await run_backup(path, files)).file for _ in range(3)}) == 3


async def test_a_stopped_backup_leaves_no_file(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise SqlError("timeout", "stopped")

    interrupt_backup(monkeypatch, 3, stop)
    with pytest.raises(SqlError, match="stopped"):
        await run_backup(made(tmp_path / "data.db", rows=1_000), files)
    assert list(files.iterdir()) == []


async def test_a_disk_error_during_a_backup_is_reported(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, failed = "the disk with the directory for files is full", "writing to the directory for files failed"
    path, errors = made(tmp_path / "data.db", rows=1_000), []
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, None):

        def fail(number: int | None = number) -> None:
            raise OSError(number, "")

        with monkeypatch.context() as patching:
            interrupt_backup(patching, 3, fail)
            with pytest.raises(SqlError) as caught:
                await run_backup(path, files)
        errors.append((caught.value.code, caught.value.reason))
        assert list(files.iterdir()) == []
    assert errors == [("no_space", full)] * 2 + [("io_error", f"{failed} (EROFS)"), ("io_error", f"{failed} (EIO)")]


async def test_a_lasting_lock_is_a_busy_error(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "data.db", "delete", 1_000)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        interrupt_backup(monkeypatch, 3, lambda: other.execute("BEGIN EXCLUSIVE"))
        async with opened(path, Limits(busy_timeout=0)) as database:
            with pytest.raises(SqlError) as caught:
                await database.read(partial(back_up, files, "data"))
    message = "another process holds a lock on the database. Try again."
    assert (caught.value.code, str(caught.value)) == ("busy", message)


async def test_a_backup_never_writes_to_an_existing_file(tmp_path: Path, files: Path) -> None:
    outside = tmp_path / "outside"
    (files / "a.db").symlink_to(outside)
    (files / "a-2.db.part").symlink_to(outside)
    with reserve_name(files, "a") as (part, name):
        part.write_text("x")
    assert (name, outside.exists(), (files / "a-3.db").read_text()) == ("a-3.db", False, "x")


async def test_backup_reports_damage_of_the_database(tmp_path: Path, files: Path) -> None:
    path = made(tmp_path / "data.db", "delete")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bad (a UNIQUE)")
        connection.execute("INSERT INTO bad VALUES ('first')")
        connection.commit()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'bad'").fetchone()
    with path.open("rb+") as file:
        data = bytearray(os.pread(file.fileno(), 4096, (page - 1) * 4096))
        data[data.index(b"first")] = ord("F")
        os.pwrite(file.fileno(), data, (page - 1) * 4096)
    done = await run_backup(path, files)
    assert done.integrity != ["ok"]
    assert (files / done.file).exists()


async def test_without_files_there_is_no_backup(tmp_path: Path) -> None:
    async with inside("--allow-write", made(tmp_path / "data.db")) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
        error = await peer.error("backup")
    assert "backup" not in [tool["name"] for tool in tools]
    assert error == "no_files: this server was started without --files"
