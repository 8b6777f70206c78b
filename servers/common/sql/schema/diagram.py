"""The tables of a database with their columns and the keys between them, for a view that draws the schema."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from pydantic_core import to_json
from typing_extensions import TypedDict

from servers.common.sql.schema.records import Entry, ForeignKey, TableColumn

_BYTES = 90_000
"""Bytes of all tables, as JSON."""
_LEAST = 100
"""Bytes below which no table fits any more."""
_COLUMNS = 100
"""Columns of one table."""
_TRIES = 3
"""Tables in a row that don't fit, after which only names are drawn."""

Columns = Callable[[str], Sequence[TableColumn]]
"""Returns the columns of the table or view of that name; none if there is no time to read them."""


class DrawnColumn(TypedDict):
    """A column."""

    name: str
    type: str
    not_null: bool
    primary_key: int


class DrawnKey(TypedDict):
    """Columns of a table whose values are a key of another; `to` is empty where that is the primary key."""

    columns: list[str]
    table: str
    to: list[str]


class DrawnTable(TypedDict):
    """A table or view; what is virtual counts as a table."""

    name: str
    kind: str
    rows: int | None
    columns: list[DrawnColumn]
    foreign_keys: list[DrawnKey]


class Diagram(TypedDict):
    """The tables that there is room for; `more` means that these are not all."""

    database: str
    tables: list[DrawnTable]
    more: bool


def draw(
    database: str, entries: Sequence[Entry], keys: Sequence[ForeignKey], rows: Mapping[str, int], columns: Columns
) -> Diagram:
    """Draw as many tables and views as fit, in their order; a table that is too large is reduced to its name."""
    keys_of = {table: list(group) for table, group in groupby(keys, itemgetter("table"))}
    tables: list[DrawnTable] = []
    room, failed, more = _BYTES, 0, False
    for entry in entries:
        if room < _LEAST:
            break
        drawn: DrawnTable = {
            "name": entry.name,
            "kind": "view" if entry.kind == "view" else "table",
            "rows": rows.get(entry.name),
            "columns": [],
            "foreign_keys": [
                {"columns": key["columns"], "table": key["to_table"], "to": key["to_columns"]}
                for key in keys_of.get(entry.name, ())
            ],
        }
        table_columns = columns(entry.name) if failed < _TRIES else []
        whole = drawn | {"columns": [_draw_column(column) for column in table_columns[:_COLUMNS]]}
        fits = failed < _TRIES and len(to_json(whole)) < room
        failed = 0 if fits else failed + 1
        size = len(to_json(whole if fits else drawn)) + 1
        more |= not fits or len(table_columns) > _COLUMNS
        if size <= room:
            tables.append(whole if fits else drawn)
            room -= size
    return {"database": database, "tables": tables, "more": more or len(tables) < len(entries)}


def _draw_column(column: TableColumn) -> DrawnColumn:
    return {
        "name": column["name"],
        "type": column["type"],
        "not_null": column["not_null"],
        "primary_key": column["primary_key"],
    }
