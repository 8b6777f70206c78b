"""The tools that explain or measure a query, and report the health of a database."""

from typing import Annotated, Any

from pydantic import Field

from servers.common.sql.features.context import (
    NO_PARAMETERS,
    PARAMETERS,
    SAME_PARAMETERS,
    Ctx,
    DatabaseArgument,
    SqlServerState,
    answer_limits,
    turn_to_read,
)
from servers.common.sql.features.reading import explain, require_no_explain
from servers.common.sql.query.plan import format_plan
from servers.common.sql.query.query import Query
from shared import Features

from ..database import PostgresDatabase

features = Features[SqlServerState]()


@features.tool(read_only=True)
async def explain_query(
    ctx: Ctx,
    query: str,
    parameters: Annotated[list[Any] | dict[str, Any], PARAMETERS, SAME_PARAMETERS] = NO_PARAMETERS,
    analyze: Annotated[bool, Field(description="also run and measure it, if it only reads")] = False,
    database: DatabaseArgument = None,
) -> str:
    """Show how PostgreSQL would run a statement: the plan as a tree, which tables are scanned in full, and what an
    index would do."""
    source = ctx.state.databases.get(database)
    bound = Query(query, source.bind(parameters))
    if not analyze:
        return await explain(ctx, source, bound)
    require_no_explain(query)
    assert isinstance(source, PostgresDatabase)
    async with turn_to_read(ctx, source):
        return format_plan(await source.analyze(bound, answer_limits(ctx, None).bytes))


@features.tool(read_only=True)
async def check_health(ctx: Ctx, database: DatabaseArgument = None) -> str:
    """Check a database: connections, locks, old transactions, vacuum, indexes, replication, slow statements."""
    source = ctx.state.databases.get(database)
    assert isinstance(source, PostgresDatabase)
    async with turn_to_read(ctx, source):
        return await source.check_health()
