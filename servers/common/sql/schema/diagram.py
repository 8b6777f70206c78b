"""The tables of a database with their columns and the keys between them, as a view of the schema draws them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from pydantic_core import to_json
from typing_extensions import TypedDict

from servers.common.sql.schema.records import Entry, ForeignKey, TableColumn

_BYTES = 90_000
"""Of all tables, as JSON."""
_LEAST = 100
"""Bytes, with which no table fits any more."""
_COLUMNS = 100
"""Columns of one table."""
_TRIES = 3
"""Tables in a row that don't fit, after which only names are drawn."""

Columns = Callable[[str], Sequence[TableColumn]]
"""The columns of the table or view of that name; none where there is no time to read them."""


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
    """What there is room for; `more`: that is not all."""

    database: str
    tables: list[DrawnTable]
    more: bool


def draw(
    database: str, found: Sequence[Entry], keys: Sequence[ForeignKey], rows: Mapping[str, int], columns: Columns
) -> Diagram:
    """The tables and views as far as there is room for them, in their order; where one is too large, its name."""
    keys_of = {table: list(group) for table, group in groupby(keys, itemgetter("table"))}
    tables: list[DrawnTable] = []
    left, failed, more = _BYTES, 0, False
    for one in found:
        if left < _LEAST:
            break
        drawn: DrawnTable = {
            "name": one.name,
            "kind": "view" if one.kind == "view" else "table",
            "rows": rows.get(one.name),
            "columns": [],
            "foreign_keys": [
                {"columns": key["columns"], "table": key["to_table"], "to": key["to_columns"]}
                for key in keys_of.get(one.name, ())
            ],
        }
        known = columns(one.name) if failed < _TRIES else []
        whole = drawn | {"columns": [_draw_column(column) for column in known[:_COLUMNS]]}
        fits = failed < _TRIES and len(to_json(whole)) < left
        failed = 0 if fits else failed + 1
        size = len(to_json(whole if fits else drawn)) + 1
        more |= not fits or len(known) > _COLUMNS
        if size <= left:
            tables.append(whole if fits else drawn)
            left -= size
    return {"database": database, "tables": tables, "more": more or len(tables) < len(found)}


def _draw_column(one: TableColumn) -> DrawnColumn:
    return {
        "name": one["name"],
        "type": one["type"],
        "not_null": one["not_null"],
        "primary_key": one["primary_key"],
    }
