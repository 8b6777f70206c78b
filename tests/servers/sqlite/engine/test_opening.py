"""Database files, opened."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.opening import Mode, OpenOptions, open_database


def pragma(path: Path, name: str, mode: Mode = "ro") -> object:
    connection = open_database(OpenOptions(path, mode, Limits()), lambda: False)
    with closing(connection):
        connection.set_authorizer(None)
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    assert connection.policy.refused is None
    return value


def refusal(path: Path, mode: Mode = "ro") -> SqlError:
    with pytest.raises(SqlError) as raised:
        open_database(OpenOptions(path, mode, Limits()), lambda: False)
    return raised.value


def test_a_reader_is_guarded(file: Path) -> None:
    wanted = {"trusted_schema": 0, "cell_size_check": 1, "temp_store": 2, "query_only": 1, "hard_heap_limit": 2**29}
    assert {name: pragma(file, name) for name in wanted} == wanted


def test_a_writer_keeps_foreign_keys(file: Path) -> None:
    assert pragma(file, "foreign_keys", "rw") == 1


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("This is a text, and no database at all. " * 100)
    assert refusal(path).code == "corrupt"


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert pragma(path, "page_count") == 0


def test_s12_a_name_is_only_a_name(tmp_path: Path) -> None:
    names = {"a?mode=rwc.db", "a#b.db", "a%41.db", "file:x.db", "ä ü.db"}
    for name in names:
        path = tmp_path / name
        with closing(sqlite3.connect(path.as_uri(), uri=True)) as connection, connection:
            connection.execute("CREATE TABLE t (a)")
        assert pragma(path, "schema_version") == 1
    assert {entry.name for entry in tmp_path.iterdir()} == names


def test_no_error_tells_the_directory(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    assert str(tmp_path) not in str(refusal(tmp_path / "folder.db"))


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        (tmp_path / f"of{ending}").mkdir()
        path = tmp_path / f"of{ending}" / "data.db"
        if ending:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute(f"PRAGMA journal_mode = {'delete' if ending == '-journal' else 'wal'}")
                connection.execute("CREATE TABLE t (a)")
        os.mkfifo(f"{path}{ending}")
        for refused in (refusal(path), refusal(path, "rw")):
            assert (refused.code, refused.reason.split()[0]) == ("bad_file", f"data.db{ending}")
