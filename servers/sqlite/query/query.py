"""Runs a query and returns as many rows as fit into one result, or compiles a statement and returns its plan."""

import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits, Page, Row
from servers.common.sql.query.plan import Plan, PlanStep, make_plan
from servers.common.sql.query.query import Query
from servers.common.sql.texts import DESCRIBE_HINT, asks_for_schema, shorten

from ..engine.deadline import StatementDeadline, retry_locked
from ..engine.entries import keeps_snapshots, list_schemas
from ..engine.quoted_names import QuotedTextError, execute, require_names
from ..engine.sql import quote, replace_parameters, split_statements
from ..errors import from_sqlite
from ..paging import fill_page, fill_row
from .tried_indexes import explain_with_indexes

_MAX_STEPS = 500
"""Maximum number of steps of a plan that are shown."""
_MAX_DETAIL_LENGTH = 500
"""Maximum number of characters of a step that are shown."""
_SCAN = re.compile(r"SCAN (.+?)(?: USING (?:COVERING )?INDEX .+)?(?: LEFT-JOIN)?", re.DOTALL)
_NO_SCAN = re.compile(r"SCAN (?:CONSTANT ROW|\d+ CONSTANT ROWS?|\(.+|.+ VIRTUAL TABLE INDEX .+)", re.DOTALL)
_INTERMEDIATE = re.compile(r"(?:CO-ROUTINE|MATERIALIZE) (.+)", re.DOTALL)
_MATCH = re.compile(r"\bMATCH\b", re.IGNORECASE)
_FULL_TEXT_ERRORS = ("no such column: ", "fts5: ", "unterminated string", "malformed MATCH expression")
"""The beginnings of error messages of full-text search; other virtual tables with MATCH have other messages."""
_MATCH_QUOTES = (
    "In the text after MATCH, put a term with characters other than letters and digits in double quotes: "
    "MATCH '\"a-b\"'."
)
_SKIP_ROWS = 1_000
"""Number of rows that are skipped between two checks of the deadline."""


class Remainder(NamedTuple):
    """The rows of a query that come after those of a result."""

    cursor: sqlite3.Cursor
    """The unfinished statement, after the last fetched row."""
    buffered: Sequence[Row]
    """Rows that were fetched but did not fit into the result."""


class Answer(NamedTuple):
    """The rows of one result."""

    names: tuple[str, ...]
    page: Page
    has_more: bool
    """True if there are rows after these."""
    rest: Remainder | None
    """The source of the rows after these; None if there are none, or if the unfinished statement can't be kept."""
    schema_version: int
    data_version: int
    """A number that changes on the same connection when another connection changes the database."""
    duration: float
    """Number of seconds that reading these rows took."""


def run_query(
    query: Query, limits: AnswerLimits, connection: sqlite3.Connection, deadline: StatementDeadline
) -> Answer:
    """Run the query, skip its first `query.offset` rows, and return as many rows as fit into one result."""
    started_at = time.monotonic()
    # Read the versions before the first row, so that all later commits by others count as changes.
    data_version, schema_version = (
        retry_locked(deadline, partial(_sum_versions, connection, name))
        for name in ("data_version", "schema_version")
    )
    with ExitStack() as unless_kept:
        try:
            cursor = retry_locked(deadline, partial(execute, connection, query.sql, query.parameters))
        except sqlite3.OperationalError as error:
            raise _add_advice(error, query.sql, connection) from None
        unless_kept.callback(cursor.close)
        names = tuple(column[0] for column in cursor.description or ())
        if not names:
            # Every statement that reads has columns, so this is only a comment.
            raise SqlError("bad_statement", "there is no statement")
        to_skip = query.offset
        while to_skip > 0 and (skipped := sum(1 for _ in islice(cursor, min(to_skip, _SKIP_ROWS)))):
            to_skip -= skipped
            deadline.check()
        page, rest = _fill_page(names, Remainder(cursor, ()), limits, deadline)
        kept_rest = rest if rest is not None and keeps_snapshots(connection) else None
        if kept_rest is not None:
            unless_kept.pop_all()
    return Answer(
        names, page, rest is not None, kept_rest, schema_version, data_version, time.monotonic() - started_at
    )


def _add_advice(error: sqlite3.OperationalError, sql: str, connection: sqlite3.Connection) -> Exception:
    """Return the error, with a suggestion if the statement is a command that SQLite does not have, such as SHOW
    TABLES, or if SQLite could probably not parse the text after MATCH."""
    if isinstance(error, QuotedTextError):
        return error
    if asks_for_schema(sql):
        converted = from_sqlite(error)
        converted.suggestion = DESCRIBE_HINT
        return converted
    # SQLite parses the text after MATCH as a full-text query when the statement runs. So if the error comes from
    # there, the statement compiles. Such an error may mention a column that no table has: `b` for 'a-b'
    # (https://sqlite.org/fts5.html, 3).
    if not str(error).startswith(_FULL_TEXT_ERRORS) or _MATCH.search(sql) is None:
        return error
    try:
        connection(sql)
    except sqlite3.Error:
        return error
    converted = from_sqlite(error)
    converted.suggestion = _MATCH_QUOTES
    return converted


def run_at_once(
    query: Query, limits: AnswerLimits, connection: sqlite3.Connection, schema_version: int
) -> Answer | None:
    """Return all rows of the query; None if they don't fit into one result. This runs in the event loop."""
    started_at = time.monotonic()
    cursor = connection.execute(query.sql, query.parameters)
    try:
        names = tuple([column[0] for column in cursor.description or ()])
        rows = cursor.fetchmany(2)
        page = fill_row(names, rows[0], limits) if len(rows) == 1 else None
        if page is None:
            page, not_fitting = fill_page(names, chain(rows, cursor), limits)
            if not_fitting:
                return None
    finally:
        cursor.close()
    return Answer(names, page, False, None, schema_version, 0, time.monotonic() - started_at)


def resume(
    answer: Answer, rest: Remainder, limits: AnswerLimits, _: sqlite3.Connection, deadline: StatementDeadline
) -> Answer:
    """Return the rows after those of `answer`, from the unfinished statement in `rest`."""
    started_at = time.monotonic()
    with ExitStack() as unless_kept:
        unless_kept.callback(rest.cursor.close)
        page, remainder = _fill_page(answer.names, rest, limits, deadline)
        if remainder is not None:
            unless_kept.pop_all()
    return answer._replace(
        page=page, has_more=remainder is not None, rest=remainder, duration=time.monotonic() - started_at
    )


def _sum_versions(connection: sqlite3.Connection, name: str) -> int:
    """Return the sum of the PRAGMA `name` over the database and attached ones. It increases with each change."""
    versions = [connection.execute(f"PRAGMA {quote(schema)}.{name}") for schema in list_schemas(connection)]
    return sum(int(version.fetchone()[0]) for version in versions)


def _fill_page(
    names: Sequence[str], rest: Remainder, limits: AnswerLimits, deadline: StatementDeadline
) -> tuple[Page, Remainder | None]:
    buffered = iter(rest.buffered)
    page, not_fitting = fill_page(names, chain(buffered, rest.cursor), limits)
    deadline.check()
    not_fitting += buffered
    return page, Remainder(rest.cursor, not_fitting) if not_fitting else None


def explain(query: Query, limit: int, connection: sqlite3.Connection, deadline: StatementDeadline) -> Plan:
    """Return the plan of one statement, in at most `limit` bytes. Values for its parameters may be omitted.

    If CREATE INDEX statements precede it, their indexes are simulated and not created. Raises SqlError, or
    sqlite3.Error for a statement that the connection may not run.
    """
    # Explain the last statement; those before it must be CREATE INDEX.
    statements = split_statements(query.sql)
    *indexes, sql = statements if len(statements) > 1 else [query.sql]
    statement = f"EXPLAIN QUERY PLAN {sql if query.parameters else replace_parameters(sql)}"
    cursor = retry_locked(deadline, partial(execute, connection, statement, query.parameters))
    rows, notes = list(islice(cursor, _MAX_STEPS + 1)), list[str]()
    cursor.close()
    if indexes:
        rows, notes = explain_with_indexes(indexes, statement, query.parameters, connection, deadline)
    children: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for step, parent, _, detail in rows[:_MAX_STEPS]:
        children[parent].append((step, shorten(detail, _MAX_DETAIL_LENGTH)))
    steps: list[PlanStep] = []
    pending = [(0, step, detail) for step, detail in reversed(children[0])]
    while pending:
        level, step, detail = pending.pop()
        steps.append({"level": level, "detail": detail})
        pending += [(level + 1, *child) for child in reversed(children[step])]
    details = [scan["detail"] for scan in steps]
    intermediate = {match[1] for match in map(_INTERMEDIATE.fullmatch, details) if match is not None}
    scans = [_SCAN.fullmatch(detail) for detail in details if _NO_SCAN.fullmatch(detail) is None]
    scanned = dict.fromkeys(scan[1] for scan in scans if scan is not None and scan[1] not in intermediate)
    return make_plan(steps, list(scanned), limit, is_incomplete=len(rows) > _MAX_STEPS, notes=notes)


def require_compiles(sql: str, connection: sqlite3.Connection, deadline: StatementDeadline) -> None:
    """Compile the statement without running it. Raises sqlite3.Error if it is not allowed or not valid."""
    retry_locked(deadline, partial(require_names, sql, connection))
    retry_locked(deadline, partial(connection, sql))
