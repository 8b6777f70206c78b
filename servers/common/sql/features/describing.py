"""The tools that describe a database."""

from typing import Annotated

from pydantic import Field

from shared import Features
from shared.extensions.apps import show, shows_apps

from ...arguments import OptionalText
from ..database import Database
from ..dialect import Dialect
from ..errors import SqlError
from ..schema.lines import ByteBudget
from ..schema.overview import DatabaseSummary, TablePage, describe_unreadable, format_overview, format_tables
from ..schema.table import TableRequest, format_table
from .context import Ctx, DatabaseArgument, SqlServerState, TableName, answer_limits, turn_to_read

_DEFAULT_TABLES = 1_000
"""Number of tables that are listed by default."""
_OVERVIEW_BYTES = 20_000
"""Maximum size of an overview by default, in bytes."""


def declare(dialect: Dialect) -> Features[SqlServerState]:
    """Declare the tools, with the terms of the `dialect` in their descriptions."""
    features = Features[SqlServerState]()

    @features.tool(read_only=True)
    @dialect.fill_words
    async def list_tables(
        ctx: Ctx,
        limit: Annotated[int, Field(ge=1)] = _DEFAULT_TABLES,
        cursor: OptionalText = None,
        search: Annotated[str, Field(description="words in names of tables and columns, or in comments")] = "",
        database: DatabaseArgument = None,
    ) -> str:
        """List the tables and views by name, with their kind and{estimating}."""
        words = search.lower().split()
        page = TablePage(cursor, min(limit, ctx.budget.entries), answer_limits(ctx, None).bytes, words)
        source = ctx.state.databases.get(database)
        async with turn_to_read(ctx, source):
            return format_tables(await source.list_tables(page))

    @features.tool(read_only=True)
    @dialect.fill_words
    async def describe_table(
        ctx: Ctx,
        table_name: TableName,
        sample: Annotated[int, Field(ge=0, le=100, description="number of rows to show")] = 0,
        statistics: Annotated[bool, Field(description="of each column: nulls, distinct values, min, max")] = False,
        database: DatabaseArgument = None,
    ) -> str:
        """Describe a table or view: {describing}."""
        request = TableRequest(table_name, sample, statistics)
        source = ctx.state.databases.get(database)
        async with turn_to_read(ctx, source):
            return format_table(await source.describe_table(request, answer_limits(ctx, None)))

    @features.tool(read_only=True, app=dialect.schema_app)
    async def describe_database(
        ctx: Ctx, max_bytes: Annotated[int, Field(ge=2_000)] = _OVERVIEW_BYTES, database: DatabaseArgument = None
    ) -> str:
        """Start here. Show what one or all databases contain: tables, columns, foreign keys, indexes, as far as they
        fit."""
        return await _describe_databases(ctx, max_bytes, database)

    return features


async def _describe_databases(ctx: Ctx, max_bytes: int, database: str | None) -> str:
    """Describe the contents of one database, or of all if `database` is None, in at most `max_bytes` bytes.

    Raises SqlError if there is only one database to describe and it can't be read.
    """
    databases = ctx.state.databases
    described = list(databases) if database is None else [databases.get(database)]
    remaining = min(max_bytes, answer_limits(ctx, None).bytes)
    summaries: list[DatabaseSummary] = []
    # A diagram can show only one database.
    with_diagram = len(described) == 1 and shows_apps(ctx)
    for index, source in enumerate(described):
        budget = ByteBudget(remaining // (len(described) - index))
        remaining -= budget.left
        async with turn_to_read(ctx, source):
            summaries.append(await _summarize(source, budget, is_only=len(described) == 1, with_diagram=with_diagram))
        remaining += max(budget.left, 0)
    if with_diagram and (diagram := summaries[0]["diagram"]) is not None:
        show(ctx, diagram)
    return format_overview(summaries)


async def _summarize(database: Database, budget: ByteBudget, *, is_only: bool, with_diagram: bool) -> DatabaseSummary:
    try:
        return await database.summarize(budget, with_diagram=with_diagram)
    except SqlError as error:
        if is_only:
            raise
        return describe_unreadable(database.name, database.writable, f"{error.code}: {error.line}")
