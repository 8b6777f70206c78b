"""Records the rows that the statements of a dry run change, with their values before and after the change.

Temporary triggers record each row, whether the statement itself, a trigger, a foreign key, REPLACE or UPSERT changes
it. They are created on all tables that the statement may change, as SQLite reports when it compiles the statement.
They exist only while the statement runs, so that they don't interfere with ALTER TABLE.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Self

from pydantic_core import to_json

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Parameters
from servers.common.sql.write.results import TableChange

from ..engine.deadline import retry_locked
from ..engine.sql import quote
from ..values import encode_cells
from .session import Session

_PREFIX = f"seen_{os.urandom(8).hex()}"
"""Prefix of the names of these triggers and of the functions that they call. It is random, so that no object of the
database has the same name."""
_MAX_ROWS = 10
"""Maximum number of rows of a table that are shown."""
_MAX_COLUMNS = 60
"""Maximum number of columns of a table that are shown, since an SQLite function takes at most 127 arguments."""
_MAX_CELL_BYTES = 200
"""Maximum number of bytes of a value that are shown."""
_ACTIONS = {"INSERT": (False, True), "UPDATE": (True, True), "DELETE": (True, False)}
"""For each action, whether the row exists before the action, and whether it exists afterwards."""
_WORDS = {"INSERT": "inserted", "UPDATE": "updated", "DELETE": "deleted"}
_VIRTUAL = "a virtual table, whose rows are not shown"
_REPLACED = "rows that REPLACE deletes are not shown, because there are triggers on a table that changes"


class _RecordedRows:
    """The changes that the triggers on one table have recorded so far."""

    def __init__(self, table: str, columns: tuple[str, ...], note: str) -> None:
        self.table = table
        self.columns = columns
        self.note = note
        self.counts = dict.fromkeys(_ACTIONS, 0)
        self.rows: list[tuple[Any, Any]] = []

    def change(self) -> TableChange:
        counts = {_WORDS[action]: count for action, count in self.counts.items()}
        truncated = sum(self.counts.values()) > len(self.rows)
        return TableChange(self.table, counts, self.columns, self.rows, truncated, self.note)


class Preview:
    """Records the changes by statements in one transaction.

    Enter it before the transaction begins, and leave it after the transaction has ended: within a transaction,
    full-text search may keep a statement unfinished, and then the functions can't be removed.
    """

    def __init__(self, session: Session, limits: AnswerLimits) -> None:
        self._session = session
        self._bytes_left = limits.bytes // 2
        """Number of bytes left for rows, initially half of the result. The effects of statements get the other
        half."""
        self._recorded: list[_RecordedRows] = []
        self._encoding = "UTF-8"

    def __enter__(self) -> Self:
        (self._encoding,) = retry_locked(
            self._session.deadline, lambda: self._session.execute_unchecked("PRAGMA encoding").fetchone()
        )
        self._define_functions({"more": self._count, "row": self._record})
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._define_functions({"more": None, "row": None})

    @property
    def changes(self) -> list[TableChange]:
        """The changes of each table, including virtual tables that may have changed."""
        return [
            recorded.change() for recorded in self._recorded if not recorded.columns or any(recorded.counts.values())
        ]

    @contextmanager
    def watch(self, sql: str, parameters: Parameters) -> Iterator[None]:
        """Record the changes by the statement that is run within the block."""
        kinds = self._session.list_kinds()
        names = self._session.find_changed(sql, parameters)
        for name in names:
            if kinds.get(name) == "virtual":
                self._index_of(name, (), _VIRTUAL)
        ordinary = [name for name in names if kinds.get(name) == "table" and not name.startswith("sqlite_")]
        # SQLite runs triggers for rows that REPLACE deletes only if `recursive_triggers` is on. But that would change
        # the effects of triggers that the database itself has.
        marks = ", ".join("?" * len(names))
        query = f"SELECT 1 FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name IN ({marks})"  # noqa: S608
        note = _REPLACED if self._session.execute_unchecked(query, tuple(names)).fetchone() else ""
        watched = [self._create_triggers(name, note) for name in ordinary]
        with nullcontext() if note or not ordinary else self._recursive_triggers():
            yield
        # No `finally` block is needed: after an error, the rollback removes the triggers.
        for index in watched:
            for action in _ACTIONS:
                self._session.execute_unchecked(f"DROP TRIGGER temp.{_PREFIX}_{index}_{action}")

    def _index_of(self, table: str, columns: tuple[str, ...], note: str) -> int:
        """Return the index of the table in the list of recorded tables. It is added if it is new, or again if its
        columns have changed."""
        for index, recorded in enumerate(self._recorded):
            if (recorded.table, recorded.columns) == (table, columns):
                return index
        self._recorded.append(_RecordedRows(table, columns, note))
        return len(self._recorded) - 1

    @contextmanager
    def _recursive_triggers(self) -> Iterator[None]:
        (previous,) = self._session.execute_unchecked("PRAGMA recursive_triggers").fetchone()
        self._session.execute_unchecked("PRAGMA recursive_triggers = ON")
        try:
            yield
        finally:
            self._session.execute_unchecked(f"PRAGMA recursive_triggers = {previous}")

    def _define_functions(self, functions: Mapping[str, Callable[..., Any] | None]) -> None:
        for name, function in functions.items():
            self._session.connection.create_function(f"{_PREFIX}_{name}", -1, function)

    def _create_triggers(self, table: str, note: str) -> int:
        """Create the triggers that record changes to a table, and return the index of the table."""
        columns = tuple(name for name, _, _ in self._session.columns(table)[:_MAX_COLUMNS])
        index = self._index_of(table, columns, note)
        for action, sides in _ACTIONS.items():
            type_letters, values = [], []
            for side, row_exists in zip(("OLD", "NEW"), sides, strict=True):
                names = [f"{side}.{quote(column)}" for column in columns] if row_exists else []
                type_letters.append(" || ".join(f"substr(typeof({name}), 1, 1)" for name in names) or "''")
                # Pass text as a blob, since it might not be UTF-8.
                values += [f"iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})" for name in names]
            arguments = ", ".join([str(index), *type_letters, *values])
            self._session.execute_unchecked(
                f"CREATE TEMP TRIGGER {_PREFIX}_{index}_{action} AFTER {action} ON main.{quote(table)} "
                f"WHEN {_PREFIX}_more({index}, '{action}') BEGIN SELECT {_PREFIX}_row({arguments}); END"
            )
        return index

    def _count(self, index: int, action: str) -> bool:
        """Count a changed row; return True if it should be shown."""
        recorded = self._recorded[index]
        recorded.counts[action] += 1
        return len(recorded.rows) < _MAX_ROWS and self._bytes_left > 0

    def _record(self, index: int, old_letters: str, new_letters: str, *values: Any) -> None:
        """Store a changed row. `values` are the old values, then the new ones; the letters are the first letters of
        their types."""
        old = self._encode_row(old_letters, values[: len(old_letters)])
        new = self._encode_row(new_letters, values[len(old_letters) :])
        self._recorded[index].rows.append((old, new))
        self._bytes_left -= 2 * len(to_json((old, new)))

    def _encode_row(self, type_letters: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the row with these values; None if there are none, because the row does not exist."""
        pairs = zip(type_letters, values, strict=True)
        # Bytes that are not UTF-8 become lone surrogates, as in a query.
        errors = "surrogateescape" if self._encoding == "UTF-8" else "replace"
        plain = [value.decode(self._encoding, errors) if letter == "t" else value for letter, value in pairs]
        return tuple(encode_cells([value], _MAX_CELL_BYTES)[0] for value in plain) or None
