"""Finds the plan that a statement would have with additional indexes. They are created in an empty copy of the
database, which has its schema and statistics.

SQLite's plans depend only on the schema and `sqlite_stat1`, so the copy has the same plans as the database. SQLite's
shell command `.expert` works in the same way (https://sqlite.org/cli.html, 15).
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress

from servers.common.sql.errors import SqlError
from servers.common.sql.query.query import Parameters

from ..engine.deadline import StatementDeadline
from ..engine.entries import fetch_schema_rows, find_hidden
from ..engine.policy import Policy, find_closed_modules
from ..engine.quoted_names import execute

_CHECK_INSTRUCTIONS = 4_000
"""Number of instructions of SQLite's virtual machine between checks of the clock."""
_SCHEMA = """
    SELECT sql FROM sqlite_schema WHERE sql <> '' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'
    ORDER BY CASE type WHEN 'table' THEN 1 WHEN 'index' THEN 2 WHEN 'view' THEN 3 ELSE 4 END, rowid"""
_STATISTICS = "SELECT tbl, idx, stat FROM main.sqlite_stat1"
_INDEX = re.compile(r"CREATE\s+(?:UNIQUE\s+)?INDEX\b", re.IGNORECASE)
_NOT_CREATED = "tried on an empty copy of the schema; no index was created"
_NO_STATISTICS = "there are no statistics for the planner: ANALYZE collects them"

Row = tuple[int, int, int, str]
"""A row of EXPLAIN QUERY PLAN: the number of a step, the number of its parent, an unused column, and its text."""


def explain_with_indexes(
    indexes: Sequence[str],
    statement: str,
    parameters: Parameters,
    connection: sqlite3.Connection,
    deadline: StatementDeadline,
) -> tuple[list[Row], list[str]]:
    """Return the rows that `statement`, an EXPLAIN QUERY PLAN, would return with these indexes, and notes for the
    user.

    Raises SqlError, and sqlite3.Error for an index that can't be created.
    """
    if not all(map(_INDEX.match, indexes)):
        advice = "Only CREATE INDEX, which is only simulated, may come before the statement to explain."
        raise SqlError("bad_statement", "there is more than one statement", advice)
    if find_hidden(connection) is not None:
        raise SqlError(
            "refused", "indexes can't be tried on this database, because the operator has hidden parts of it"
        )
    try:
        statistics = fetch_schema_rows(connection, _STATISTICS)
    except sqlite3.OperationalError:
        statistics = []  # ANALYZE was never run.
    with closing(sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)) as copy:
        copy.set_progress_handler(deadline, _CHECK_INSTRUCTIONS)
        copy.execute("PRAGMA trusted_schema = OFF")
        policy = Policy(True, find_closed_modules(copy))
        copy.set_authorizer(policy)
        for (sql,) in fetch_schema_rows(connection, _SCHEMA):
            with suppress(sqlite3.Error):  # It may be a virtual table of an extension that the copy does not have.
                copy.execute(sql)
        with policy.lift():
            copy.execute("ANALYZE")  # Creates the statistics table.
            copy.executemany("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", statistics)
            copy.execute("ANALYZE sqlite_schema")  # Makes the planner read it.
        for index in indexes:
            execute(copy, index)
        rows = copy.execute(statement, parameters).fetchall()
    return rows, [_NOT_CREATED, *([] if statistics else [_NO_STATISTICS])]
