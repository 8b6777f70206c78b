"""Lists the tables and views of a database, and summarizes its schema."""

import sqlite3
import time

from servers.common.sql.schema import overview
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, SchemaFacts, TableList, TablePage
from servers.common.sql.schema.records import TableColumn

from ..engine.deadline import StatementDeadline
from ..engine.entries import hold_snapshot, list_entries, list_schemas
from .columns import read_columns, read_foreign_keys, read_indexes, read_row_estimates

_TIME_SHARE = 0.1
"""The share of a call's timeout that reading columns may take."""


def list_tables(page: TablePage, connection: sqlite3.Connection, deadline: StatementDeadline) -> TableList:
    """Return the requested page of the list of tables and views, without internal tables of SQLite and of virtual
    tables. Raises SqlError, with code `bad_cursor` for an invalid cursor."""
    with hold_snapshot(connection, deadline):
        entries, estimates = list_entries(connection), read_row_estimates(connection)
        if page.words:
            # The SQL of a table contains its columns and comments, but is empty for a table with hidden columns.
            texts = [
                entry.sql or " ".join(column["name"] for column in read_columns(connection, entry.name)[0])
                for entry in entries
            ]
            entries = [entry for entry, text in zip(entries, texts, strict=True) if page.matches(entry.name, text)]
    return overview.list_page(entries, estimates, page)


class _Columns:
    """Reads the columns of tables, each once, within a time limit."""

    def __init__(self, connection: sqlite3.Connection, deadline: StatementDeadline) -> None:
        self._connection = connection
        # Compiling a view may take a second, during which SQLite can't be stopped.
        self._deadline = time.monotonic() + deadline.timeout * _TIME_SHARE
        self._columns_by_name: dict[str, list[TableColumn]] = {}

    @property
    def is_late(self) -> bool:
        """True if the time limit has passed."""
        return time.monotonic() > self._deadline

    def read(self, name: str) -> list[TableColumn]:
        """Return the columns of the table or view with this name, even after the time limit."""
        columns = self._columns_by_name.get(name)
        if columns is None:
            columns = self._columns_by_name[name] = read_columns(self._connection, name)[0]
        return columns

    def read_in_time(self, name: str) -> list[TableColumn]:
        """Return the same as `read`, but an empty list if the time limit has passed or the columns can't be read."""
        if name not in self._columns_by_name and self.is_late:
            return []
        try:
            return self.read(name)
        except sqlite3.Error:
            return []


def summarize(
    name: str,
    writable: bool,
    budget: ByteBudget,
    with_diagram: bool,
    connection: sqlite3.Connection,
    deadline: StatementDeadline,
) -> DatabaseSummary:
    """Summarize the database called `name`, and add a diagram if `with_diagram`."""
    with hold_snapshot(connection, deadline):
        facts = SchemaFacts(
            list_entries(connection),
            read_foreign_keys(connection),
            read_indexes(connection),
            read_row_estimates(connection),
            _Columns(connection, deadline),
        )
        summary = overview.summarize(name, writable, facts, budget, with_diagram=with_diagram)
        return {**summary, "attached": list_schemas(connection)[1:]}
