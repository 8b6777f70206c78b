"""What a statement may cost, and how SQLite is told."""

import sqlite3
from typing import NamedTuple

__all__ = ["Limits", "impose"]

_SQL_BYTES = 1_000_000
_EXPRESSION_DEPTH = 200
_LIKE_PATTERN = 1_000
"""Bytes of a pattern. Matching takes as long as its length times that of the text, and can't be stopped."""
_COLUMNS = 2_000
_COMPOUND_SELECT = 500
_VARIABLES = 32_766
_MEBIBYTE = 1 << 20


class Limits(NamedTuple):
    """The operator's limits of one statement."""

    seconds: float = 30.0
    """Wall time."""
    busy_seconds: float = 5.0
    """Wait for a lock that another process holds."""
    value_bytes: int = 16_000_000
    """One value, also one that is on the way to another."""
    memory_mebibytes: int = 512
    """Memory that SQLite may hold, in the whole process: what it sorts and groups stays in memory."""


def impose(connection: sqlite3.Connection, limits: Limits) -> None:
    """Has SQLite keep the limits that it knows of itself (https://sqlite.org/limits.html)."""
    for category, limit in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SQL_BYTES),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, _EXPRESSION_DEPTH),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LIKE_PATTERN),
        (sqlite3.SQLITE_LIMIT_COLUMN, _COLUMNS),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, _COMPOUND_SELECT),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, _VARIABLES),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(category, limit)
    connection.execute(f"PRAGMA hard_heap_limit = {limits.memory_mebibytes * _MEBIBYTE}")
