"""The parts of a schema, as every engine tells them."""

from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict


class Entry(NamedTuple):
    """A table or view."""

    name: str
    """As a statement names it."""
    kind: str
    """"table", "view", or another word of the database."""
    sql: str
    """The statement that makes it."""


class TableColumn(TypedDict):
    """A column of a table or view."""

    name: str
    type: str
    not_null: bool
    default: str | None
    primary_key: int
    """Its position in the primary key, from 1 on; 0 where it is not in it."""
    kind: str
    """"ordinary", or what is special about it, as "generated stored"."""
    comment: NotRequired[str]


class ForeignKey(TypedDict):
    """Columns whose values are a key of another table."""

    table: str
    columns: list[str]
    to_table: str
    to_columns: list[str]
    """None are named where it is the primary key."""
    on_update: str
    on_delete: str


class Index(TypedDict):
    """An index."""

    name: str
    columns: list[str | None]
    """None for an expression."""
    unique: bool
    partial: bool
    origin: str
    sql: str | None


class ColumnStatistics(TypedDict):
    """What one column holds."""

    column: str
    nulls: int
    distinct: int | None
    """Different values besides null; None where they are too large to compare."""
    min: Any
    max: Any


class Statistics(TypedDict):
    """What the columns hold."""

    rows_examined: int
    partial: bool
    """Whether the table has more rows, or columns are missing: because the time was over, or their values can't be
    compared."""
    columns: list[ColumnStatistics]
