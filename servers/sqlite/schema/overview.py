"""What is in a database: its tables and views by name, and all of its schema for an overview."""

import sqlite3
import time
from collections.abc import Iterator

from servers.common.sql.schema import overview
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, SchemaFacts, TableList, TablePage
from servers.common.sql.schema.records import Entry, TableColumn
from servers.sqlite.engine.deadline import StatementDeadline
from servers.sqlite.engine.entries import hold_snapshot, list_entries
from servers.sqlite.schema.columns import read_columns, read_foreign_keys, read_indexes, read_row_estimates

_SHARE = 0.1
"""Of the seconds of the call, those in which columns are looked for."""


def list_tables(page: TablePage, connection: sqlite3.Connection, deadline: StatementDeadline) -> TableList:
    """The tables and views that the page wants, those left out that SQLite or a virtual table keeps for itself.

    Raises SqlError `bad_cursor`."""
    with hold_snapshot(connection, deadline):
        found, estimates = list_entries(connection), read_row_estimates(connection)
        wanted = [one for one in found if page.wants(*_list_texts(one, connection))] if page.words else found
    return overview.list_page(wanted, estimates, page)


def _list_texts(entry: Entry, connection: sqlite3.Connection) -> Iterator[str]:
    """The texts that a search looks through."""
    yield entry.name
    # The statement that made a table has its columns and the comments; of one with hidden columns it is not told.
    yield entry.sql or " ".join(column["name"] for column in read_columns(connection, entry.name)[0])


class _Columns:
    """The columns of tables, each read once, and the time that there is for it."""

    def __init__(self, connection: sqlite3.Connection, deadline: StatementDeadline) -> None:
        self._connection = connection
        # A view may take a second to be compiled, and SQLite can't be stopped then.
        self._until = time.monotonic() + deadline.seconds * _SHARE
        self._known: dict[str, list[TableColumn]] = {}

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._until

    def read(self, name: str) -> list[TableColumn]:
        """The columns of that table or view, however late it is."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = read_columns(self._connection, name)[0]
        return known

    def read_in_time(self, name: str) -> list[TableColumn]:
        """The same; none where it is too late, or they can't be read: what is said without them is the same."""
        if name not in self._known and self.is_late:
            return []
        try:
            return self.read(name)
        except sqlite3.Error:
            return []


def summarize(
    name: str,
    writable: bool,
    budget: ByteBudget,
    drawn: bool,
    connection: sqlite3.Connection,
    deadline: StatementDeadline,
) -> DatabaseSummary:
    """The summary of the database called `name`, with a diagram where it is to be `drawn`."""
    with hold_snapshot(connection, deadline):
        facts = SchemaFacts(
            list_entries(connection),
            read_foreign_keys(connection),
            read_indexes(connection),
            read_row_estimates(connection),
            _Columns(connection, deadline),
        )
        return overview.summarize(name, writable, facts, budget, drawn=drawn)
