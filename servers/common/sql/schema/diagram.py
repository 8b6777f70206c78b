"""Returns the tables of a database with their columns and foreign keys as data, for the app page that draws them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from pydantic_core import to_json
from typing_extensions import TypedDict

from .records import Entry, ForeignKey, TableColumn

_MAX_BYTES = 90_000
"""Maximum size of the diagram as JSON, in bytes."""
_MIN_TABLE_BYTES = 100
"""Size of the smallest possible table in bytes."""
_MAX_COLUMNS = 100
"""Maximum number of columns of one table."""
_MAX_MISSES = 3
"""After this many consecutive tables that don't fit, tables are only added without their columns."""

Columns = Callable[[str], Sequence[TableColumn]]
"""Returns the columns of the table or view with this name; an empty list if there is no time to read them."""


class DrawnColumn(TypedDict):
    """A column in a diagram."""

    name: str
    type: str
    not_null: bool
    primary_key: int


class DrawnKey(TypedDict):
    """A foreign key. `to` is empty if the key references the primary key of `table`."""

    columns: list[str]
    table: str
    to: list[str]


class DrawnTable(TypedDict):
    """A table or view; virtual tables count as tables."""

    name: str
    kind: str
    rows: int | None
    columns: list[DrawnColumn]
    foreign_keys: list[DrawnKey]


class Diagram(TypedDict):
    """As many tables as fit. `more` is True if a table was left out or lacks some of its columns."""

    database: str
    tables: list[DrawnTable]
    more: bool


def make_diagram(
    database: str, entries: Sequence[Entry], keys: Sequence[ForeignKey], rows: Mapping[str, int], columns: Columns
) -> Diagram:
    """Return as many tables and views as fit, in order. A table that is too large is added without its columns.

    `keys` must be ordered by table.
    """
    keys_of = {table: list(group) for table, group in groupby(keys, itemgetter("table"))}
    tables: list[DrawnTable] = []
    bytes_left, misses, more = _MAX_BYTES, 0, False
    for entry in entries:
        if bytes_left < _MIN_TABLE_BYTES:
            break
        reduced_table: DrawnTable = {
            "name": entry.name,
            "kind": "view" if entry.kind == "view" else "table",
            "rows": rows.get(entry.name),
            "columns": [],
            "foreign_keys": [
                {"columns": key["columns"], "table": key["to_table"], "to": key["to_columns"]}
                for key in keys_of.get(entry.name, ())
            ],
        }
        table_columns = columns(entry.name) if misses < _MAX_MISSES else []
        full_table = reduced_table | {
            "columns": [
                {
                    "name": column["name"],
                    "type": column["type"],
                    "not_null": column["not_null"],
                    "primary_key": column["primary_key"],
                }
                for column in table_columns[:_MAX_COLUMNS]
            ]
        }
        fits = misses < _MAX_MISSES and len(to_json(full_table)) < bytes_left
        misses = 0 if fits else misses + 1
        size = len(to_json(full_table if fits else reduced_table)) + 1  # and a comma
        more |= not fits or len(table_columns) > _MAX_COLUMNS
        if size <= bytes_left:
            tables.append(full_table if fits else reduced_table)
            bytes_left -= size
    return {"database": database, "tables": tables, "more": more or len(tables) < len(entries)}
