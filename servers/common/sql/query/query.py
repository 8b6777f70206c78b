"""A query, and the rows that an answer to it has."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from servers.common.sql.query.pages import Page

Parameters = Sequence[Any] | Mapping[str, Any]


class Query(NamedTuple):
    """A statement and its parameters."""

    sql: str
    parameters: Parameters
    offset: int = 0
    """Rows that were given already, by earlier answers."""


class Found(NamedTuple):
    """Rows of a query."""

    names: Sequence[str]
    declared: Sequence[str | None]
    """The type that each column was declared with, None for an expression; empty where none are known."""
    page: Page
    more: bool
    """Whether there are rows after these."""
    cursor: str | None
    """With which the query goes on; None after the last rows."""
    changed: bool
    """Whether the database was changed between these rows and those before, so that some may be missing or double."""
    seconds: float


class TableRows(TypedDict):
    """Rows of a table."""

    table: str
    key: list[str]
    """The columns that a row is found by; none in a view."""
    columns: list[str]
    rows: list[tuple[Any, ...]]
    next_query: str | None
    """What gives the rows after these; None where these are all."""


def make_table_rows(
    table: str, key: Sequence[str], names: list[str], page: Page, next_query: str | None = None
) -> TableRows:
    """The rows of a page of the `table`, each of which is found by the columns of its `key`."""
    return {"table": table, "key": [*key], "columns": names, "rows": page.rows, "next_query": next_query}
