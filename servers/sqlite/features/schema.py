"""The tools that tell what is in a database and how a query would be run."""

from functools import partial
from typing import Annotated

from pydantic import Field

from shared import Features
from shared.extensions.apps import show, shows_apps

from ..engine.database import Database
from ..errors import SqliteError
from ..query.query import Query, bind, explain, format_plan
from ..schema.lines import ByteBudget
from ..schema.overview import (
    DatabaseSummary,
    TablePage,
    describe_unreadable,
    format_overview,
    format_tables,
    summarize,
)
from ..schema.overview import list_tables as listed_tables
from ..schema.table import TableRequest, describe, format_table
from .context import (
    SCHEMA_APP,
    Ctx,
    DatabaseArgument,
    Opened,
    ParametersArgument,
    QueryArgument,
    limit_answer,
    turn_to_read,
    turn_to_write,
)

_TABLES = 1_000
_OVERVIEW = 20_000
"""Bytes of an overview."""

features = Features[Opened]()


@features.tool(title="List tables", read_only=True)
async def list_tables(
    ctx: Ctx,
    limit: Annotated[int, Field(ge=1, description="how many at most")] = _TABLES,
    cursor: Annotated[str | None, Field(description="goes on after an answer that was cut")] = None,
    database: DatabaseArgument = None,
) -> str:
    """List the tables and views by name, with their kind and, after ANALYZE, about how many rows."""
    page = TablePage(cursor, min(limit, ctx.budget.entries), limit_answer(ctx, None).bytes)
    source = ctx.state.databases.get(database)
    async with turn_to_read(ctx, source):
        return format_tables(await source.read(partial(listed_tables, page)))


@features.tool(title="Describe table", read_only=True)
async def describe_table(
    ctx: Ctx,
    table_name: Annotated[str, Field(description="of a table or view")],
    sample: Annotated[int, Field(ge=0, le=100, description="how many rows to show, too")] = 0,
    statistics: Annotated[bool, Field(description="of each column: nulls, distinct values, min, max")] = False,
    database: DatabaseArgument = None,
) -> str:
    """Tell all about a table: columns, keys, indexes, triggers, its CREATE statement with the checks."""
    source, wanted = ctx.state.databases.get(database), TableRequest(table_name, sample, statistics)
    async with turn_to_read(ctx, source):
        return format_table(await source.read(partial(describe, wanted, limit_answer(ctx, None))))


@features.tool(title="Describe database", read_only=True, app=SCHEMA_APP)
async def describe_database(
    ctx: Ctx,
    max_bytes: Annotated[int, Field(ge=2_000, description="how long the answer may be")] = _OVERVIEW,
    database: DatabaseArgument = None,
) -> str:
    """Tell what is in a database, or in all: tables with columns, then foreign keys, then indexes, while they fit.

    The place to begin.
    """
    databases = ctx.state.databases
    chosen = list(databases) if database is None else [databases.get(database)]
    left = min(max_bytes, limit_answer(ctx, None).bytes)
    summaries: list[DatabaseSummary] = []
    # A diagram is of one database.
    drawn = len(chosen) == 1 and shows_apps(ctx)
    for index, one in enumerate(chosen):
        budget = ByteBudget(left // (len(chosen) - index))
        left -= budget.left
        async with turn_to_read(ctx, one):
            summaries.append(await _summarize(one, budget, alone=len(chosen) == 1, drawn=drawn))
        left += max(budget.left, 0)
    if drawn and (diagram := summaries[0]["diagram"]) is not None:
        show(ctx, diagram)
    return format_overview(summaries)


async def _summarize(database: Database, budget: ByteBudget, *, alone: bool, drawn: bool) -> DatabaseSummary:
    try:
        return await database.read(partial(summarize, database.name, database.writable, budget, drawn))
    except SqliteError as error:
        if alone:
            raise
        return describe_unreadable(database.name, database.writable, f"{error.code}: {error.line}")


@features.tool(title="Explain query", read_only=True)
async def explain_query(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = [],  # noqa: B006 - pydantic copies it
    database: DatabaseArgument = None,
) -> str:
    """Tell how SQLite would run a statement, without running it: the query plan as a tree, and which tables are read
    whole."""
    source = ctx.state.databases.get(database)
    work = partial(explain, Query(query, bind(parameters)), limit_answer(ctx, None).bytes)
    try:
        async with turn_to_read(ctx, source):
            plan = await source.read(work)
    except SqliteError as error:
        if error.code != "refused" or not source.writable:
            raise
        async with turn_to_write(ctx, source), source.writer() as connection:
            plan = await connection.run(work)
    return format_plan(plan)
