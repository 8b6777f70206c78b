import sqlite3
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database in WAL mode, with a table of a thousand rows."""
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY, name VARCHAR(20))")
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(n, f"number {n}") for n in range(1_000)])
    return path
