"""Counts the rows that REPLACE deletes.

SQLite does not count them, and runs triggers for them only if `recursive_triggers` is on. Their number is that of the
rows before the statement, plus inserted rows, minus rows that were deleted in other ways, minus the rows afterwards.
Temporary triggers count insertions and other deletions while the statement runs.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from servers.common.sql.query.query import Parameters

from ..engine.sql import quote
from .session import Session

_PREFIX = f"counted_{os.urandom(8).hex()}"
"""Prefix of the names of these triggers and of the function that they call. It is random, so that no object of the
database has the same name."""
_REPLACE = re.compile(r"\bREPLACE\b", re.IGNORECASE)


class ReplacedRows:
    """Counts the rows that REPLACE deletes, in one transaction.

    Enter it before the transaction begins, and leave it after the transaction has ended: within a transaction,
    full-text search may keep a statement unfinished, and then the function can't be removed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._balance = 0
        """Number of rows that the watched statement has inserted, minus those that it has deleted without REPLACE."""
        self.count = 0
        """Number of rows that REPLACE deleted in the last watched statement."""

    def __enter__(self) -> Self:
        self._session.connection.create_function(f"{_PREFIX}_add", 1, self._add)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._session.connection.create_function(f"{_PREFIX}_add", 1, None)

    @contextmanager
    def watch(self, sql: str, parameters: Parameters) -> Iterator[None]:
        """Count the rows that REPLACE deletes in the statement that is run within the block.

        The count is 0 unless the word REPLACE occurs in the statement, or in the SQL of a table that it changes or of
        a trigger or an index of that table.
        """
        names = self._session.find_changed(sql, parameters)
        marks = ", ".join("?" * len(names))
        query = f"SELECT sql FROM main.sqlite_schema WHERE tbl_name IN ({marks}) AND sql IS NOT NULL"  # noqa: S608
        definitions = [definition for (definition,) in self._session.execute_unchecked(query, tuple(names))]
        tables = []
        if any(map(_REPLACE.search, (sql, *definitions))):
            kinds = self._session.list_kinds()
            has_rows = {name for name in names if kinds.get(name) in ("table", "shadow")}
            tables = [name for name in names if name in has_rows and not name.startswith("sqlite_")]
        before, self._balance = self._count_rows(tables), 0
        for index, table in enumerate(tables):
            for action, number in (("INSERT", 1), ("DELETE", -1)):
                self._session.execute_unchecked(
                    f"CREATE TEMP TRIGGER {_PREFIX}_{index}_{action} AFTER {action} ON main.{quote(table)} "
                    f"BEGIN SELECT {_PREFIX}_add({number}); END"
                )
        yield
        # No `finally` block is needed: after an error, the rollback removes the triggers.
        for index in range(len(tables)):
            for action in ("INSERT", "DELETE"):
                self._session.execute_unchecked(f"DROP TRIGGER temp.{_PREFIX}_{index}_{action}")
        self.count = before + self._balance - self._count_rows(tables)

    def _add(self, number: int) -> None:
        self._balance += number

    def _count_rows(self, tables: Sequence[str]) -> int:
        counts = [self._session.execute_unchecked(f"SELECT count(*) FROM main.{quote(table)}") for table in tables]  # noqa: S608
        return sum(count for ((count,),) in counts)
