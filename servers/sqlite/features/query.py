"""The tool that queries a database."""

from servers.common.sql.features.context import (
    NO_PARAMETERS,
    Ctx,
    CursorArgument,
    DatabaseArgument,
    MaxRowsArgument,
    Opened,
)
from servers.common.sql.features.reading import QueryResult, answer_at_once, answer_query
from servers.common.sql.query.query import Parameters, Query
from shared import Data, Features

from .context import RESULT_APP, ParametersArgument, QueryArgument

features = Features[Opened]()


def _read_at_once(
    ctx: Ctx,
    query: str,
    parameters: Parameters,
    max_rows: int | None,
    cursor: str | None,
    database: str | None,
) -> Data[QueryResult] | None:
    source = ctx.state.databases.get(database)
    return answer_at_once(ctx, source, Query(query, source.bind(parameters)), max_rows, cursor)


@features.tool(title="Read query", read_only=True, task="optional", app=RESULT_APP, at_once=_read_at_once)
async def read_query(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = NO_PARAMETERS,
    max_rows: MaxRowsArgument = None,
    cursor: CursorArgument = None,
    database: DatabaseArgument = None,
) -> Data[QueryResult]:
    """Run a statement that reads: SELECT, WITH, VALUES, EXPLAIN, PRAGMA that tells. It can't change anything.

    Rows are arrays. A value that JSON can't hold exactly is an object with its type; so are long ones, which are cut.
    """
    source = ctx.state.databases.get(database)
    return await answer_query(ctx, source, Query(query, source.bind(parameters)), max_rows, cursor)
