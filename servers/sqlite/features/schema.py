"""The tools that tell what is in a database, and how a query would be run."""

from typing import Annotated

from pydantic import Field

from servers.common.sql.features import describing
from servers.common.sql.features.context import NO_PARAMETERS, Ctx, DatabaseArgument, Opened
from servers.common.sql.features.reading import explain
from servers.common.sql.query.query import Query
from servers.common.sql.schema.table import TableRequest
from shared import Features

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
    """List the tables and views by name, with their kind and, after ANALYZE, about how many rows."""
    return await describing.list_tables(ctx, limit, cursor, database)


@features.tool(title="Describe table", read_only=True)
async def describe_table(
    ctx: Ctx,
    table_name: Annotated[str, Field(description="of a table or view")],
    sample: Annotated[int, Field(ge=0, le=100, description="how many rows to show, too")] = 0,
    statistics: Annotated[bool, Field(description="of each column: nulls, distinct values, min, max")] = False,
    database: DatabaseArgument = None,
) -> str:
    """Tell all about a table: columns, keys, indexes, triggers, its CREATE statement with the checks."""
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
    database: DatabaseArgument = None,
) -> str:
    """Tell how SQLite would run a statement, without running it: the query plan as a tree, and which tables are read
    whole."""
    source = ctx.state.databases.get(database)
    return await explain(ctx, source, Query(query, source.bind(parameters)))
