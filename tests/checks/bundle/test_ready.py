"""The readiness of each server: the reason in `/readyz` when it can't do its work."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.common.workers import pool
from servers.fetch.server import app as fetch
from servers.fetch.settings import Settings as FetchSettings
from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Settings as FilesystemSettings
from servers.prompts.library import watch
from servers.prompts.server import app as prompts
from servers.prompts.settings import Settings as PromptsSettings
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Settings as SqliteSettings
from shared.server.run import Run


async def said_by(running: Run[Any]) -> str | None:
    assert running.server.ready is not None
    with anyio.fail_after(60):
        return await running.server.ready(running)


async def test_a_recreated_directory_is_ready_before_the_first_request(tmp_path: Path) -> None:
    root = tmp_path / "a"
    root.mkdir()
    async with filesystem.open(FilesystemSettings(roots=[root])) as running:
        for _ in range(2):
            root.rmdir()
            assert await said_by(running) == "1 of the allowed directories can't be reached"
            root.mkdir()
            assert await said_by(running) is None


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_missing_directory_is_not_ready(tmp_path: Path, made_anew: bool) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
    async with filesystem.open(FilesystemSettings(roots=roots)) as running:
        assert await said_by(running) is None
        if made_anew:
            roots[0].rename(tmp_path / "old")
            roots[0].mkdir()
        else:
            roots[0].rmdir()
        assert await said_by(running) == "1 of the allowed directories can't be reached"


def database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    return path


async def test_an_unusable_database_is_not_ready(tmp_path: Path) -> None:
    path = database(tmp_path / "data.db")
    async with sqlite.open(SqliteSettings(databases=[path], demo=True)) as running:
        assert await said_by(running) is None
        path.write_bytes(b"no database at all" * 1_000)
        assert await said_by(running) == "the database 'data' does not answer: corrupt"
        path.unlink()
        assert await said_by(running) == "the database 'data' does not answer: not_found"


async def test_a_database_locked_by_another_process_is_ready(tmp_path: Path) -> None:
    path = database(tmp_path / "data.db")
    async with sqlite.open(SqliteSettings(databases=[path], busy_timeout=0)) as running:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert await said_by(running) is None


async def test_a_database_with_busy_readers_is_ready(tmp_path: Path) -> None:
    settings = SqliteSettings(databases=[database(tmp_path / "data.db")], readers=1)
    # All readers are busy: no request could occupy them so precisely.
    async with sqlite.open(settings) as running, running.state.databases.get("data")._database.readers.lend():
        assert await said_by(running) is None


async def test_fetch_is_not_ready_without_a_worker_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fetch.open(FetchSettings()) as running:
        assert await said_by(running) is None
    # The code of a worker can't be broken from outside.
    monkeypatch.setattr(pool, "_START_PROGRAM", "import sys; sys.exit(1)")
    async with fetch.open(FetchSettings()) as running:
        assert await said_by(running) == "no process to read pages can be started: unreadable"


async def test_prompt_folders_are_ready_when_readable_and_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    async with prompts.open(PromptsSettings(libraries=[folder])) as running:
        assert await said_by(running) is None
        folder.rename(tmp_path / "elsewhere")
        assert await said_by(running) == "1 of the prompt folders can't be read"
        (tmp_path / "elsewhere").rename(folder)
        assert await said_by(running) is None
        # A watch can't be stalled from outside.
        monkeypatch.setattr(watch, "_STALL_SECONDS", -1_000.0)
        assert await said_by(running) == "the folders are no longer checked for changes"
