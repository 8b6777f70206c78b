"""The parts of a schema, in a form that all engines share."""

from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict


class Entry(NamedTuple):
    """A table or view."""

    name: str
    """The name as it is written in a statement."""
    kind: str
    """"table", "view", or another of the database's terms."""
    sql: str
    """The statement that creates it."""


class TableColumn(TypedDict):
    """A column of a table or view."""

    name: str
    type: str
    not_null: bool
    default: str | None
    primary_key: int
    """Position in the primary key, from 1; 0 if the column is not part of it."""
    kind: str
    """"ordinary", or a special kind such as "generated stored"."""
    comment: NotRequired[str]


class ForeignKey(TypedDict):
    """Columns whose values are a key of another table."""

    table: str
    columns: list[str]
    to_table: str
    to_columns: list[str]
    """The referenced columns; empty if they are the primary key."""
    on_update: str
    on_delete: str


class Index(TypedDict):
    """An index."""

    name: str
    columns: list[str | None]
    """The indexed columns; None in place of an expression."""
    unique: bool
    partial: bool
    origin: str
    """What created the index, such as "PRIMARY KEY" or "CREATE INDEX"."""
    sql: str | None
    """The statement that creates it; None if a constraint created it."""


class ColumnStatistics(TypedDict):
    """The statistics of one column."""

    column: str
    nulls: int
    distinct: int | None
    """Number of distinct values except NULL; None if the values are too large to compare."""
    min: Any
    max: Any


class Statistics(TypedDict):
    """The statistics of the columns of a table."""

    rows_examined: int
    partial: bool
    """True if the table has more rows, or columns are missing: time ran out, or their values can't be compared."""
    columns: list[ColumnStatistics]
