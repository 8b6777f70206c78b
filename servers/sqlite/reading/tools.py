"""The tools that query a database."""

from shared import Data

from ..app import Ctx, app, reading, room
from ..arguments import CursorArgument, DatabaseArgument, MaxRowsArgument, ParametersArgument, QueryArgument
from ..engine.database import Database
from .query import Query, bound
from .results import QueryResult, result_of, text_of


@app.tool(title="Read query", read_only=True)
async def read_query(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = [],  # noqa: B006 - pydantic copies it
    max_rows: MaxRowsArgument = None,
    cursor: CursorArgument = None,
    database: DatabaseArgument = None,
) -> Data[QueryResult]:
    """Run a statement that reads: SELECT, WITH, VALUES, EXPLAIN, PRAGMA that tells. It can't change anything.

    Rows are arrays. A value that JSON can't hold exactly is an object with its type; so are long ones, which are cut.
    """
    source = ctx.state.databases.named(database)
    return await queried(ctx, source, Query(query, bound(parameters)), max_rows, cursor)


async def queried(
    ctx: Ctx, source: Database, query: Query, max_rows: int | None, cursor: str | None
) -> Data[QueryResult]:
    """The next rows of a query, in both forms. Raises SqliteError."""
    async with reading(ctx, source):
        found = await ctx.state.snapshots.read(source, query, room(ctx, max_rows), ctx.peer.owner, cursor)
        declared = await source.declared(query.sql, found.answer.schema_version)
    result = result_of(found, declared)
    return Data(result, text_of(result))
