"""What the columns of a table hold: how many nulls, how many different values, the least and the greatest."""

import sqlite3
from typing import Any

from typing_extensions import TypedDict

from servers.sqlite.engine.limits import StatementDeadline
from servers.sqlite.engine.sql import quote, select
from servers.sqlite.query.cells import encode_cells
from servers.sqlite.schema.entries import Entry, ask
from servers.sqlite.schema.parts import TableColumn

__all__ = ["ColumnStatistics", "Statistics", "compute_statistics"]

_ROWS = 100_000
"""The first so many rows are looked at."""
_SHARE = 0.5
"""Of the seconds of the call."""
_DISTINCT_SIZE = 16_000_000
"""Bytes or characters of all values of a column, up to which those that differ are counted: they are held for it."""
_VALUE = 100
"""Bytes of a value that are told."""


class ColumnStatistics(TypedDict):
    """What one column holds."""

    column: str
    nulls: int
    distinct: int | None
    """Different values besides null; None where they are too large to compare."""
    min: Any
    max: Any


class Statistics(TypedDict):
    """What the columns hold."""

    rows_examined: int
    partial: bool
    """Whether the table has more rows, or columns are missing: because the time was over, or their values can't be
    compared."""
    columns: list[ColumnStatistics]


def compute_statistics(
    entry: Entry, columns: list[TableColumn], connection: sqlite3.Connection, deadline: StatementDeadline
) -> Statistics:
    """Statistics of those columns that can be done in the time there is. Raises SqliteError."""
    # What a virtual table hides are arguments.
    seen = [one for one in columns if one["kind"] != "hidden"]
    found: Statistics = {"rows_examined": 0, "partial": False, "columns": []}
    done = False
    with deadline.at_most(deadline.seconds * _SHARE):
        for one in seen:
            _examine(entry, one, connection, found)
        done = True
    found["partial"] |= not done
    return found


def _examine(entry: Entry, one: TableColumn, connection: sqlite3.Connection, found: Statistics) -> None:
    values = select(f"{quote(one['name'])} AS v", entry.name, f"LIMIT {_ROWS + 1}")
    try:
        question = f"SELECT count(*), count(v), min(v), max(v), total(length(v)) FROM ({values})"  # noqa: S608 - as above
        ((rows, known, least, greatest, size),) = ask(connection, question)
        found["rows_examined"] = rows
        found["partial"] |= rows > _ROWS
        distinct = None
        if size <= _DISTINCT_SIZE:
            ((distinct,),) = ask(connection, f"SELECT count(DISTINCT v) FROM ({values})")  # noqa: S608 - as above
    except (sqlite3.OperationalError, MemoryError) as error:
        if getattr(error, "sqlite_errorname", "SQLITE_NOMEM") not in ("SQLITE_ERROR", "SQLITE_NOMEM"):
            raise
        found["partial"] = True
        return
    shown = encode_cells([least, greatest], _VALUE)
    found["columns"].append(
        {"column": one["name"], "nulls": rows - known, "distinct": distinct, "min": shown[0], "max": shown[1]}
    )
