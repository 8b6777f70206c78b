"""A query, and its rows in a result."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from .pages import Page

Parameters = Sequence[Any] | Mapping[str, Any]


class Query(NamedTuple):
    """A statement and its parameters."""

    sql: str
    parameters: Parameters
    offset: int = 0
    """Number of rows to skip, because earlier results contained them."""


class QueryRows(NamedTuple):
    """The rows of a query that are in one result."""

    names: Sequence[str]
    declared: Sequence[str | None]
    """The type that each column was declared with, None for an expression; empty if no types are known."""
    page: Page
    has_more: bool
    """True if there are rows after these."""
    cursor: str | None
    """The cursor with which the query continues; None after the last rows."""
    changed: bool
    """True if the database was changed between these rows and the previous ones: some may be missing or repeated."""
    duration: float
    """Number of seconds that reading these rows took."""


class TableRows(TypedDict):
    """Rows of a table."""

    table: str
    key: list[str]
    """The columns that identify a row; empty for a view."""
    columns: list[str]
    rows: list[tuple[Any, ...]]
    next_query: str | None
    """A query for the rows after these; None if these are the last."""


def make_table_rows(
    table: str, key: Sequence[str], names: list[str], page: Page, next_query: str | None = None
) -> TableRows:
    """Return the rows in `page`, which come from `table`. The columns `key` identify a row."""
    return {"table": table, "key": [*key], "columns": names, "rows": page.rows, "next_query": next_query}
