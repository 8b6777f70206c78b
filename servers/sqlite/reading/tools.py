"""The tools that query a database."""

from typing import Annotated

from pydantic import Field

from shared import Data

from ..app import Ctx, app, room
from ..arguments import DatabaseArgument, ParametersArgument, QueryArgument
from .query import Query, bound
from .results import QueryResult, result_of, text_of


@app.tool(title="Read query", read_only=True)
async def read_query(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = [],  # noqa: B006 - pydantic copies it
    max_rows: Annotated[int | None, Field(ge=1, description="rows at most")] = None,
    cursor: Annotated[str | None, Field(description="goes on after an answer that was cut; same query")] = None,
    database: DatabaseArgument = None,
) -> Data[QueryResult]:
    """Run a statement that reads: SELECT, WITH, VALUES, EXPLAIN, PRAGMA that tells. It can't change anything.

    Rows are arrays. A value that JSON can't hold exactly is an object with its type; so are long ones, which are cut.
    """
    source = ctx.state.databases.named(database)
    asked = Query(query, bound(parameters))
    found = await ctx.state.snapshots.read(source, asked, room(ctx, max_rows), ctx.peer.principal, cursor)
    declared = await source.declared(query, found.answer.schema_version)
    result = result_of(found, declared)
    return Data(result, text_of(found, result))
