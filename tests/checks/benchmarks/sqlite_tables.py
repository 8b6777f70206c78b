"""The databases that the SQLite servers are measured with, made up in the same way every time."""

import sqlite3
from contextlib import closing
from pathlib import Path

BENCH, SHARED, BIG, NOTHING = "bench.db", "shared.db", "big.db", "nothing.db"
ROWS, COLUMNS = 10_000, 10
LONG = 1_000_000
"""Rows of the long table."""
BIG_ROWS, BIG_ROW = 2_500_000, 400
"""Rows of the big database, and bytes of each: 1 GB."""

_COUNT = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {}) SELECT {} FROM c"
_WIDE = (
    "n, n * 7, -n, n * 1000003 % 65536, n / 8.0, n / 3.0, 'name ' || n, 'city ' || n % 100, "
    "CASE n % 5 WHEN 0 THEN NULL ELSE 'note ' || n % 7 END, '2026-01-' || (10 + n % 20)"
)
_NARROW = "n, 'name ' || n, n / 4.0"
_LARGE = f"n, zeroblob({BIG_ROW})"


def make_databases(folder: Path) -> None:
    """One to ask of, one without a write-ahead log to be written to meanwhile, a big one, and one without tables."""
    columns = ", ".join(("id INTEGER PRIMARY KEY", *(f"c{number}" for number in range(1, COLUMNS))))
    wide = (f"CREATE TABLE wide ({columns})", f"INSERT INTO wide {_COUNT.format(ROWS, _WIDE)}")
    _make(
        folder / BENCH,
        "PRAGMA journal_mode = wal",
        *wide,
        "CREATE TABLE long (id INTEGER PRIMARY KEY, name TEXT, amount REAL)",
        f"INSERT INTO long {_COUNT.format(LONG, _NARROW)}",
    )
    _make(folder / SHARED, *wide, "CREATE TABLE counter (n)", "INSERT INTO counter VALUES (0)")
    _make(
        folder / BIG,
        "PRAGMA journal_mode = off",
        "CREATE TABLE big (id INTEGER PRIMARY KEY, data BLOB)",
        f"INSERT INTO big {_COUNT.format(BIG_ROWS, _LARGE)}",
    )
    (folder / NOTHING).touch()


def _make(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = off")
        for statement in statements:
            connection.execute(statement)
