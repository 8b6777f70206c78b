"""The tables and views of a database by name, page by page."""

import sqlite3
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from typing_extensions import TypedDict

from servers.sqlite.describing.entries import Kind, entries, steady
from servers.sqlite.describing.schema import row_estimates
from servers.sqlite.describing.space import Space
from servers.sqlite.engine.limits import Stop
from servers.sqlite.errors import SqliteError
from servers.sqlite.texts import fenced, shown

__all__ = ["ListedTable", "TableList", "TablePage", "list_tables", "tables_text"]

_FRAME = 500
"""Bytes of a list besides its tables."""


class ListedTable(TypedDict):
    """A table or view."""

    name: str
    kind: Kind
    rows_estimated: int | None
    """By the last ANALYZE."""


class TableList(NamedTuple):
    """Tables and views by name."""

    tables: list[ListedTable]
    total: int
    cursor: str | None
    """With which the list goes on; None at its end."""


class TablePage(NamedTuple):
    """Which part of a list is wanted."""

    cursor: str | None
    most: int
    bytes: int


def list_tables(page: TablePage, connection: sqlite3.Connection, stop: Stop) -> TableList:
    """The tables and views that the page wants, those left out that SQLite or a virtual table keeps for itself.

    Raises SqliteError `bad_cursor`."""
    after = None if page.cursor is None else _name_in(page.cursor)
    with steady(connection, stop):
        found, estimates = entries(connection), row_estimates(connection)
    space = Space(page.bytes - _FRAME)
    following = [one for one in found if after is None or one.name > after]
    tables: list[ListedTable] = []
    for one in following[: page.most]:
        table: ListedTable = {"name": one.name, "kind": one.kind, "rows_estimated": estimates.get(one.name)}
        if not space.takes(_line(table)):
            break
        tables.append(table)
    cut = len(tables) < len(following) and bool(tables)
    return TableList(tables, len(found), _cursor_after(tables[-1]["name"]) if cut else None)


def tables_text(found: TableList) -> str:
    """One table a line."""
    cut = "" if found.cursor is None else f"; cut; go on with cursor {found.cursor}"
    head = f"{len(found.tables)} of {found.total} tables and views{cut}"
    return "\n".join((head, fenced([_line(table) for table in found.tables])))


def _line(table: ListedTable) -> str:
    rows = table["rows_estimated"]
    return f"{table['kind']} {shown(table['name'])}" + ("" if rows is None else f" (about {rows} rows)")


def _cursor_after(name: str) -> str:
    """A cursor in letters and digits, so that no name stands outside of the marks."""
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _name_in(cursor: str) -> str:
    try:
        return urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        raise SqliteError("bad_cursor", "this is no cursor of list_tables", "Leave it out to begin.") from None
