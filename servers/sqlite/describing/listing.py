"""The tables and views of a database by name, page by page."""

import sqlite3
from typing import NamedTuple

from typing_extensions import TypedDict

from servers.sqlite.access.stopping import Stop
from servers.sqlite.describing.entries import Kind, entries, steady
from servers.sqlite.describing.names import shown
from servers.sqlite.describing.schema import row_estimates
from servers.sqlite.describing.space import Space
from servers.sqlite.reading.texts import fenced

__all__ = ["ListedTable", "TableList", "TablePage", "list_tables", "tables_text"]

_FRAME = 500
"""Bytes of a list besides its tables."""


class ListedTable(TypedDict):
    """A table or view."""

    name: str
    kind: Kind
    rows_estimated: int | None
    """By the last ANALYZE."""


class TableList(TypedDict):
    """Tables and views by name."""

    tables: list[ListedTable]
    total: int
    next_cursor: str | None
    """The name after which the list goes on; None at its end."""


class TablePage(NamedTuple):
    """Which part of a list is wanted."""

    after: str | None
    most: int
    bytes: int


def list_tables(page: TablePage, connection: sqlite3.Connection, stop: Stop) -> TableList:
    """The tables and views after one name, those left out that SQLite or a virtual table keeps for itself."""
    with steady(connection, stop):
        found, estimates = entries(connection), row_estimates(connection)
    space = Space(page.bytes - _FRAME)
    following = [one for one in found if page.after is None or one.name > page.after]
    tables: list[ListedTable] = []
    for one in following[: page.most]:
        table: ListedTable = {"name": one.name, "kind": one.kind, "rows_estimated": estimates.get(one.name)}
        if not space.takes(table, _line(table)):
            break
        tables.append(table)
    cut = len(tables) < len(following) and bool(tables)
    return {"tables": tables, "total": len(found), "next_cursor": tables[-1]["name"] if cut else None}


def tables_text(found: TableList) -> str:
    """The same as text."""
    count, cursor = len(found["tables"]), found["next_cursor"]
    cut = "" if cursor is None else "; cut, go on with the cursor"
    head = f"{count} of {found['total']} tables and views{cut}"
    lines = [_line(table) for table in found["tables"]]
    return "\n".join((head, fenced(lines if cursor is None else [*lines, f"cursor: {cursor}"])))


def _line(table: ListedTable) -> str:
    rows = table["rows_estimated"]
    return f"{table['kind']} {shown(table['name'])}" + ("" if rows is None else f" (about {rows} rows)")
