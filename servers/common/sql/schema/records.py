"""Data types for the parts of a schema, which all engines share."""

from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict


class Entry(NamedTuple):
    """A table or view."""

    name: str
    """The name as it is written in a statement."""
    kind: str
    """"table", "view", or another kind, as the database calls it."""
    sql: str
    """The statement that creates it; may be empty."""


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
    """A foreign key: columns of `table` whose values are a key of `to_table`."""

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
    """True if not all rows were examined, or statistics of some columns are missing, for example for lack of time."""
    columns: list[ColumnStatistics]
