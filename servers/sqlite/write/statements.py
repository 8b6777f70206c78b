"""Runs statements that change a database, one after another in one transaction, and determines the effect of each."""

import os
from collections import deque
from collections.abc import Sequence
from contextlib import closing, nullcontext

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import NO_ROWS, AnswerLimits
from servers.common.sql.write.results import MIN_BYTES_FOR_ROWS, Effect, Statement, reduce_limits

from ..engine.quoted_names import require_names
from ..engine.sql import find_first_word
from ..paging import fill_page
from ..values import encode_cells
from .previews import Preview
from .replacing import ReplacedRows
from .session import Session

_MARKER = f"rowid_marker_{os.urandom(8).hex()}"
"""The name of a temporary table. It is random, since the table would hide a table of the database with this name."""
_NO_ROWID = -(1 << 63)
"""The smallest rowid. If it is still the last one after a statement, the statement has inserted no row."""
_ROWID_BYTES = 1_000
"""An upper bound for the size of a rowid in bytes."""


class _NonTables:
    """The names of views and of internal tables of virtual ones, which don't count as changed tables."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: set[str] = set()
        self.refresh()

    def refresh(self) -> None:
        """Read the names again, because the schema was changed."""
        kinds = self._session.list_kinds()
        self._names.update(name for name, kind in kinds.items() if kind in ("view", "shadow"))

    def remove_from(self, names: set[str]) -> tuple[str, ...]:
        return tuple(sorted(names - self._names))


def run_all(
    session: Session,
    statements: Sequence[Statement],
    limits: AnswerLimits,
    preview: Preview | None = None,
    replaced: ReplacedRows | None = None,
) -> list[Effect]:
    """Run the statements in the current transaction, without committing it.

    If there is a `preview`, it records their changes. If `replaced` is given, rows that REPLACE deletes count as
    changed.
    """
    session.execute_unchecked(f"CREATE TEMP TABLE IF NOT EXISTS {_MARKER} (id INTEGER PRIMARY KEY)")
    non_tables = _NonTables(session)
    effects: list[Effect] = []
    for number, statement in enumerate(statements, 1):
        session.deadline.position = f"statement {number}" if len(statements) > 1 else ""
        session.deadline.check()
        with (
            nullcontext() if preview is None else preview.watch(statement.sql, statement.parameters),
            nullcontext() if replaced is None else replaced.watch(statement.sql, statement.parameters),
        ):
            effect = _run(session, statement, limits, non_tables)
        if replaced is not None:
            effect = effect._replace(total=effect.total + replaced.count)
        effects.append(effect)
        limits = reduce_limits(limits, effect)
    session.deadline.position = ""
    return effects


def _run(session: Session, statement: Statement, limits: AnswerLimits, non_tables: _NonTables) -> Effect:
    connection, policy = session.connection, session.policy
    # last_insert_rowid() returns the rowid of the last insert on the connection. If it still returns that of this
    # insert after the statement, the statement has inserted no row.
    session.execute_unchecked(f"INSERT OR REPLACE INTO temp.{_MARKER} VALUES (?)", (_NO_ROWID,))  # noqa: S608 - the name is ours
    schema_version = _read_schema_version(session)
    require_names(statement.sql, connection)
    before = connection.total_changes
    policy.reset()
    if find_first_word(statement.sql) == "VACUUM":
        # SQLite's own message does not say that each call is a transaction.
        reason = "the statement is not allowed: VACUUM can't run in a transaction, and each call is one"
        raise SqlError("refused", reason, "The operator can run it with sqlite3.")
    with closing(connection.execute(statement.sql, statement.parameters)) as cursor:
        names = tuple(column[0] for column in cursor.description or ())
        has_room = names and limits.rows and limits.bytes >= MIN_BYTES_FOR_ROWS
        page, not_fitting = fill_page(names, cursor, limits) if has_room else (NO_ROWS, [])
        truncated = bool(not_fitting) or next(cursor, None) is not None
        if policy.changed:
            # Run the statement to its end, since the number of changes is only known then.
            deque(cursor, maxlen=0)
    changed = set(policy.changed)
    total = connection.total_changes - before
    affected, rowid = (
        session.execute_unchecked("SELECT changes(), last_insert_rowid()").fetchone() if total else (0, _NO_ROWID)
    )
    schema_changed = _read_schema_version(session) != schema_version
    if schema_changed:
        non_tables.refresh()
    return Effect(
        0 if policy.changes_schema else affected,
        total,
        None if rowid == _NO_ROWID or policy.changes_schema else encode_cells([rowid], _ROWID_BYTES)[0],
        non_tables.remove_from(changed) if total or policy.changes_schema else (),
        schema_changed,
        names,
        page,
        truncated,
    )


def _read_schema_version(session: Session) -> int:
    (version,) = session.execute_unchecked("PRAGMA main.schema_version").fetchone()
    return int(version)
