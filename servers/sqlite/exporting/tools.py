"""The tool that exports."""

from shared import ResourceLink, TextContent

from ..app import Ctx, app, reading
from ..arguments import DatabaseArgument, ParametersArgument, QueryArgument
from ..reading.query import Query, bound
from .formats import FormatName
from .resources import uri_of_export


@app.tool(title="Export", read_only=True)
async def export(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = [],  # noqa: B006 - pydantic copies it
    format: FormatName = "csv",
    database: DatabaseArgument = None,
) -> list[ResourceLink | TextContent]:
    """Write all rows of a query to a file, for results too large for an answer. Gives a link to read it by.

    In json and jsonl rows are arrays, as in the answers of read_query.
    """
    source = ctx.state.databases.named(database)
    asked = Query(query, bound(parameters))
    async with reading(ctx, source):
        made = await ctx.state.exports.make(source, asked, format, ctx.peer.owner)
    uri = uri_of_export(made)
    rows = f"{made.rows} row{'' if made.rows == 1 else 's'}"
    link = ResourceLink(
        uri=uri,
        name=f"{source.name}.{format}",
        description=rows,
        mime_type=made.mime_type,
        size=made.bytes,
    )
    text = f"{rows}, {made.bytes} bytes: {uri}, in parts {uri}?offset=0&length=100000"
    return [link, TextContent(text=text)]
