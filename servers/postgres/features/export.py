"""The tool that exports what a query gives, and exports as resources, for the client that made them."""

from typing import Annotated

from pydantic import Field

from servers.common.sql.features import exporting
from servers.common.sql.features.context import NO_PARAMETERS, Ctx, DatabaseArgument, Opened
from servers.common.sql.features.exporting import Contents
from servers.common.sql.query.formats import FormatName
from servers.common.sql.query.query import Query
from shared import Features, ResourceLink, TextContent

from .context import ParametersArgument, QueryArgument

Bytes = Annotated[int | None, Field(ge=0)]

features = Features[Opened]()


@features.tool(title="Export", read_only=True, task="optional")
async def export(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = NO_PARAMETERS,
    format: FormatName = "csv",
    database: DatabaseArgument = None,
) -> list[ResourceLink | TextContent]:
    """Write all rows of a query to a file, for results too large for an answer. Gives a link to read it by.

    In json and jsonl rows are arrays, as in the answers of read_query.
    """
    source = ctx.state.databases.get(database)
    return await exporting.export(ctx, source, Query(query, source.bind(parameters)), format)


@features.resource("postgres-export:///{name}{?offset,length}", name="export", title="The rows of a query as a file")
async def read_export(ctx: Ctx, name: str, offset: Bytes = None, length: Bytes = None) -> Contents:
    """A file that the tool export made; with offset or length in bytes, a part of it. A part of text ends with a
    whole character; its URI says how long it is."""
    return await exporting.read(ctx, name, offset, length)
