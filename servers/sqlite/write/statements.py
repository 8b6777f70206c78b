"""Statements that change a database: run one after the other in one transaction, and what each of them did."""

import os
from collections import deque
from collections.abc import Sequence
from contextlib import closing, nullcontext
from typing import NamedTuple

from servers.sqlite.query.pages import AnswerLimits, Page, fill_page, measure
from servers.sqlite.query.query import Parameters
from servers.sqlite.write.previews import Preview
from servers.sqlite.write.session import Figures, Session

_MARKER = f"rowid_marker_{os.urandom(8).hex()}"
"""A temporary table, by a name that no client knows: it would hide a table of the database that has it, too."""
_NO_ROWID = -(1 << 63)
_EFFECT = 300
"""Bytes of an answer for what is said of a statement besides its rows and the names of tables."""
_LEAST = 2_000
"""Bytes without which no rows are shown."""
_NOTHING = Page([], [])


class Statement(NamedTuple):
    """One statement and its parameters."""

    sql: str
    parameters: Parameters = ()


class Effect(NamedTuple):
    """What one statement did."""

    affected: int
    """Rows that it inserted, updated or deleted by its own words, as SQLite's `changes()` counts them."""
    total: int
    """Those, and what triggers and foreign keys changed, and rows within virtual tables."""
    rowid: int | None
    """Of the last row that it inserted by its own words."""
    tables: tuple[str, ...]
    """Those whose rows it may have changed: by its own words, by triggers or by foreign keys."""
    defined: bool
    """Whether it changed the schema."""
    names: tuple[str, ...]
    page: Page
    """The rows that it returned, as many as there was room for."""
    truncated: bool


class _Others:
    """Names of the schema that are no tables with rows of their own: views, and the inner tables of virtual ones."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: set[str] = set()
        self.look()

    def look(self) -> None:
        """Looks again, because the schema was changed."""
        kinds = self._session.kinds()
        self._names.update(name for name, kind in kinds.items() if kind in ("view", "shadow"))

    def without(self, names: set[str]) -> tuple[str, ...]:
        return tuple(sorted(names - self._names))


def run_all(
    session: Session, statements: Sequence[Statement], limits: AnswerLimits, preview: Preview | None = None
) -> list[Effect]:
    """Runs the statements in the transaction that was begun, without committing it. A `preview` watches them."""
    session.execute_own(f"CREATE TEMP TABLE IF NOT EXISTS {_MARKER} (id INTEGER PRIMARY KEY)")
    others = _Others(session)
    effects: list[Effect] = []
    for number, statement in enumerate(statements, 1):
        session.deadline.where = f"statement {number}" if len(statements) > 1 else ""
        session.deadline.check()
        with nullcontext() if preview is None else preview.watch(statement.sql, statement.parameters):
            effect = _run(session, statement, limits, others)
        effects.append(effect)
        limits = _reduce(limits, effect)
    session.deadline.where = ""
    return effects


def sum_figures(effects: Sequence[Effect]) -> Figures:
    """How much the statements change, for the user to agree to."""
    return Figures(
        sum(effect.total for effect in effects),
        tuple(effect.affected for effect in effects),
        tuple(sorted({table for effect in effects for table in effect.tables})),
        any(effect.defined for effect in effects),
    )


def _run(session: Session, statement: Statement, limits: AnswerLimits, others: _Others) -> Effect:
    connection, policy = session.connection, session.policy
    session.execute_own(f"INSERT OR REPLACE INTO temp.{_MARKER} VALUES (?)", (_NO_ROWID,))  # noqa: S608 - the name is ours
    schema = _read_schema_version(session)
    before = connection.total_changes
    policy.forget()
    with closing(connection.execute(statement.sql, statement.parameters)) as cursor:
        names = tuple(column[0] for column in cursor.description or ())
        shown, left = (
            fill_page(names, cursor, limits) if names and limits.rows and limits.bytes >= _LEAST else (_NOTHING, [])
        )
        truncated = bool(left) or next(cursor, None) is not None
        if policy.changed:
            # The count of its changes is known once it has ended.
            deque(cursor, maxlen=0)
    changed = set(policy.changed)
    total = connection.total_changes - before
    affected, rowid = (
        session.execute_own("SELECT changes(), last_insert_rowid()").fetchone() if total else (0, _NO_ROWID)
    )
    defined = _read_schema_version(session) != schema
    if defined:
        others.look()
    return Effect(
        0 if policy.defines else affected,
        total,
        None if rowid == _NO_ROWID or policy.defines else rowid,
        others.without(changed) if total or policy.defines else (),
        defined,
        names,
        shown,
        truncated,
    )


def _read_schema_version(session: Session) -> int:
    (version,) = session.execute_own("PRAGMA main.schema_version").fetchone()
    return int(version)


def _reduce(limits: AnswerLimits, effect: Effect) -> AnswerLimits:
    """What is left of the limits of an answer."""
    used = _EFFECT + measure(effect.names) + measure(effect.tables) + measure(effect.page.rows)
    return AnswerLimits(limits.rows - len(effect.page.rows), max(limits.bytes - used, 0), limits.cell_bytes)
