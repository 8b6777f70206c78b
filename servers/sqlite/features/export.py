"""The tool that exports what a query gives, and exports as resources, for the client that made them."""

from codecs import getincrementaldecoder
from functools import partial
from typing import Annotated

from pydantic import Field
from pydantic_core import to_json

from shared import (
    BlobResourceContents,
    Features,
    InvalidParams,
    ResourceLink,
    ResourceNotFound,
    TextContent,
    TextResourceContents,
)

from ..errors import SqliteError
from ..exports import Export, FormatName
from ..query.query import Query, bind
from .context import (
    Ctx,
    DatabaseArgument,
    Opened,
    ParametersArgument,
    QueryArgument,
    job_of,
    tell_progress,
    turn_to_read,
)

_BESIDE = 1_000
"""Bytes of a result for what stands beside its text."""
Bytes = Annotated[int | None, Field(ge=0)]
Contents = TextResourceContents | BlobResourceContents

features = Features[Opened]()


@features.tool(title="Export", read_only=True, task="optional")
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
    source = ctx.state.databases.get(database)
    asked = Query(query, bind(parameters))
    job = job_of(ctx)
    async with turn_to_read(ctx, source):
        make = partial(ctx.state.exports.make, source, asked, format, ctx.owner, job)
        made = await tell_progress(ctx, job, make)
    uri = format_uri(made)
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


def format_uri(export: Export) -> str:
    """Where it is read."""
    return f"sqlite-export:///{export.name}"


@features.resource("sqlite-export:///{name}{?offset,length}", name="export", title="The rows of a query as a file")
async def read_export(ctx: Ctx, name: str, offset: Bytes = None, length: Bytes = None) -> Contents:
    """A file that the tool export made; with offset or length in bytes, a part of it. A part of text ends with a
    whole character; its URI says how long it is."""
    budget = max(ctx.budget.result_bytes - _BESIDE, 8)
    try:
        export = ctx.state.exports.get(name, ctx.owner)
        if offset is None and length is None:
            data = await ctx.state.exports.read(export, 0, budget)
            return _make_whole(export, data, budget)
        first = offset or 0
        # Of text, JSON seldom makes more than twice the bytes.
        most = budget // 2 if length is None else min(length, budget // 2)
        data = await ctx.state.exports.read(export, first, most)
    except SqliteError as error:
        raise ResourceNotFound(f"sqlite-export:///{name}", f"{error.code}: {error}") from None
    text = _decode(data, ends=first + len(data) >= export.bytes)
    if text:
        data = text.encode()
    return _make_contents(export, f"{format_uri(export)}?offset={first}&length={len(data)}", data, text, budget)


def _make_whole(export: Export, data: bytes, budget: int) -> Contents:
    uri, text = format_uri(export), _decode(data, ends=True)
    fits = len(to_json(text)) <= budget if text is not None else len(data) <= budget // 2
    if len(data) < export.bytes or not fits:
        template = f"{uri}{{?offset,length}}"
        reason = f"too_large: the export has {export.bytes} bytes; read a part, by bytes: {template}"
        raise InvalidParams(reason, data={"uri": uri, "uriTemplate": template})
    return _make_contents(export, uri, data, text, budget)


def _decode(data: bytes, *, ends: bool) -> str | None:
    """The bytes as text, without a character that is cut off unless it `ends` there; None where they are none."""
    try:
        return getincrementaldecoder("utf-8")().decode(data, ends)
    except UnicodeDecodeError:
        return None


def _make_contents(export: Export, uri: str, data: bytes, text: str | None, budget: int) -> Contents:
    meta = {"size": export.bytes}
    if text is None or (data and not text) or len(to_json(text)) > budget:
        return BlobResourceContents.of(uri, data, export.mime_type, meta)
    return TextResourceContents(uri=uri, mime_type=export.mime_type, text=text, meta=meta)
