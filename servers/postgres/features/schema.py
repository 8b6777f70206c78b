"""The tools that tell what is in a database, how it is, and how a query would be run."""

from typing import Annotated

from pydantic import Field

from servers.common.sql.features import describing
from servers.common.sql.features.context import (
    NO_PARAMETERS,
    Ctx,
    DatabaseArgument,
    Opened,
    limit_answer,
    turn_to_read,
)
from servers.common.sql.features.reading import explain
from servers.common.sql.query.plan import format_plan
from servers.common.sql.query.query import Query
from servers.common.sql.schema.table import TableRequest
from shared import Features

from ..database import PostgresDatabase
from .context import SCHEMA_APP, ParametersArgument, QueryArgument

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
    """List the tables and views by name, with their kind and about how many rows."""
    return await describing.list_tables(ctx, limit, cursor, database)


@features.tool(title="Describe table", read_only=True)
async def describe_table(
    ctx: Ctx,
    table_name: Annotated[str, Field(description="of a table or view")],
    sample: Annotated[int, Field(ge=0, le=100, description="how many rows to show, too")] = 0,
    statistics: Annotated[bool, Field(description="of each column: nulls, distinct values, min, max")] = False,
    database: DatabaseArgument = None,
) -> str:
    """Tell all about a table: columns, keys, checks, indexes, triggers, partitions, comments."""
    return await describing.describe_table(ctx, TableRequest(table_name, sample, statistics), database)


@features.tool(title="Describe database", read_only=True, app=SCHEMA_APP)
async def describe_database(
    ctx: Ctx,
    max_bytes: Annotated[int, Field(ge=2_000, description="how long the answer may be")] = _OVERVIEW,
    database: DatabaseArgument = None,
) -> str:
    """Tell what is in a database, or in all: tables with columns, then foreign keys, then indexes, while they fit.

    The place to begin.
    """
    return await describing.describe_databases(ctx, max_bytes, database)


@features.tool(title="Explain query", read_only=True)
async def explain_query(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = NO_PARAMETERS,
    analyze: Annotated[bool, Field(description="run it, too, and measure; only what reads")] = False,
    database: DatabaseArgument = None,
) -> str:
    """Tell how PostgreSQL would run a statement: the plan as a tree, which tables are read whole, and what an index
    would do."""
    source = ctx.state.databases.get(database)
    asked = Query(query, source.bind(parameters))
    if not analyze:
        return await explain(ctx, source, asked)
    assert isinstance(source, PostgresDatabase)
    async with turn_to_read(ctx, source):
        return format_plan(await source.analyze(asked, limit_answer(ctx, None).bytes))


@features.tool(title="Check health", read_only=True)
async def check_health(ctx: Ctx, database: DatabaseArgument = None) -> str:
    """Tell how a database is: connections, locks, old transactions, vacuum, indexes, replication, slow statements."""
    source = ctx.state.databases.get(database)
    assert isinstance(source, PostgresDatabase)
    async with turn_to_read(ctx, source):
        return await source.check_health()
