"""The rows that REPLACE deletes, which SQLite does not count, and for which it runs triggers only if they are
recursive.

Their number is a difference: the rows that a table had, plus those inserted, minus those deleted otherwise, minus
those that remain. Temporary triggers count insertions and other deletions while a statement runs.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from servers.common.sql.query.query import Parameters
from servers.sqlite.engine.sql import quote
from servers.sqlite.write.session import Session

_NAME = f"counted_{os.urandom(8).hex()}"
"""Prefix of the names of the server's triggers and functions, chosen so that they hide nothing in the database."""
_REPLACE = re.compile(r"\bREPLACE\b", re.IGNORECASE)


class ReplacedRows:
    """Counts the rows that REPLACE deletes, in one transaction.

    It is entered before the transaction begins, because during it full-text search may keep a statement open, and
    then no function can be removed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._balance = 0
        """Number of rows inserted minus rows deleted by a watched statement."""
        self.count = 0
        """Number of rows that the last watched statement replaced."""

    def __enter__(self) -> Self:
        self._session.connection.create_function(f"{_NAME}_add", 1, self._add)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._session.connection.create_function(f"{_NAME}_add", 1, None)

    @contextmanager
    def watch(self, sql: str, parameters: Parameters) -> Iterator[None]:
        """Count for the statement that is run within the block.

        Rows are only counted if the word REPLACE is in the statement, in the SQL of a table that it changes, or in
        one of its triggers.
        """
        names = self._session.find_changed(sql, parameters)
        marks = ", ".join("?" * len(names))
        query = f"SELECT sql FROM main.sqlite_schema WHERE tbl_name IN ({marks}) AND sql IS NOT NULL"  # noqa: S608
        definitions = [definition for (definition,) in self._session.execute_own(query, tuple(names))]
        tables = []
        if any(map(_REPLACE.search, (sql, *definitions))):
            list_kinds = self._session.list_kinds()
            has_rows = {name for name in names if list_kinds.get(name) in ("table", "shadow")}
            tables = [name for name in names if name in has_rows and not name.startswith("sqlite_")]
        before, self._balance = self._count_rows(tables), 0
        for index, table in enumerate(tables):
            for action, number in (("INSERT", 1), ("DELETE", -1)):
                self._session.execute_own(
                    f"CREATE TEMP TRIGGER {_NAME}_{index}_{action} AFTER {action} ON main.{quote(table)} "
                    f"BEGIN SELECT {_NAME}_add({number}); END"
                )
        yield
        # A failed transaction removes them itself.
        for index in range(len(tables)):
            for action in ("INSERT", "DELETE"):
                self._session.execute_own(f"DROP TRIGGER temp.{_NAME}_{index}_{action}")
        self.count = before + self._balance - self._count_rows(tables)

    def _add(self, number: int) -> None:
        self._balance += number

    def _count_rows(self, tables: Sequence[str]) -> int:
        counts = [self._session.execute_own(f"SELECT count(*) FROM main.{quote(table)}") for table in tables]  # noqa: S608
        return sum(count for ((count,),) in counts)
