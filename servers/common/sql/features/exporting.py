"""The tool that exports all rows of a query to a file, and the resource with which the same client reads the file."""

from codecs import getincrementaldecoder
from functools import partial
from typing import Annotated, Any

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

from ..dialect import Dialect
from ..errors import SqlError
from ..exports import Export
from ..query.formats import FormatName
from ..query.query import Query
from .context import (
    NO_PARAMETERS,
    PARAMETERS,
    SAME_PARAMETERS,
    Ctx,
    DatabaseArgument,
    SqlServerState,
    job_of,
    report_progress,
    turn_to_read,
)

_OVERHEAD_BYTES = 1_000
"""Maximum size of a result without its text, in bytes."""
Contents = TextResourceContents | BlobResourceContents
ByteCount = Annotated[int | None, Field(ge=0)]


def declare(dialect: Dialect) -> Features[SqlServerState]:
    """Declare the tool and the resource. The URI of the resource begins with the name of the `dialect`."""
    features = Features[SqlServerState]()

    @features.tool(read_only=True, task="optional")
    async def export(
        ctx: Ctx,
        query: str,
        parameters: Annotated[list[Any] | dict[str, Any], PARAMETERS, SAME_PARAMETERS] = NO_PARAMETERS,
        format: FormatName = "csv",
        database: DatabaseArgument = None,
    ) -> list[ResourceLink | TextContent]:
        """Write all rows of a query to a file, for results too large for an answer. Returns a link to it."""
        source, job = ctx.state.databases.get(database), job_of(ctx)
        bound = Query(query, source.bind(parameters))
        async with turn_to_read(ctx, source):
            make = partial(ctx.state.exports.make, source, bound, format, ctx.owner, job)
            exported = await report_progress(ctx, job, make)
        uri = format_uri(ctx, exported)
        rows = f"{exported.rows} row{'' if exported.rows == 1 else 's'}"
        link = ResourceLink(
            uri=uri,
            name=f"{source.name}.{format}",
            description=rows,
            mime_type=exported.mime_type,
            size=exported.bytes,
        )
        text = f"{rows}, {exported.bytes} bytes: {uri}, in parts {uri}?offset=0&length=100000"
        return [link, TextContent(text=text)]

    uri = f"{dialect.name}-export:///{{name}}{{?offset,length}}"

    @features.resource(uri, name="export", title="The rows of a query as a file")
    async def read_export(ctx: Ctx, name: str, offset: ByteCount = None, length: ByteCount = None) -> Contents:
        """A file created by the `export` tool, or part of it if `offset` or `length` (in bytes) is given. Part of a
        text file always ends on a character boundary; its URI gives the actual length."""
        return await read(ctx, name, offset, length)

    return features


def format_uri(ctx: Ctx, export: Export) -> str:
    """Return the URI of an export."""
    return f"{ctx.state.dialect.name}-export:///{export.name}"


async def read(ctx: Ctx, name: str, offset: int | None, length: int | None) -> Contents:
    """Return the export with this name, or at most `length` bytes from `offset` on.

    Raises ResourceNotFound, and InvalidParams if the file is too large for one answer.
    """
    budget = max(ctx.budget.result_bytes - _OVERHEAD_BYTES, 8)
    try:
        export = ctx.state.exports.get(name, ctx.owner)
        if offset is None and length is None:
            data = await ctx.state.exports.read(export, 0, budget)
            uri = format_uri(ctx, export)
            text = _decode(data, is_end=True)
            fits = len(to_json(text)) <= budget if text is not None else len(data) <= budget // 2
            if len(data) < export.bytes or not fits:
                template = f"{uri}{{?offset,length}}"
                reason = f"too_large: the export has {export.bytes} bytes; read it by byte range: {template}"
                raise InvalidParams(reason, data={"uri": uri, "uriTemplate": template})
            return _make_contents(export, uri, data, text, budget)
        start = offset or 0
        # As JSON, a text seldom takes more than twice its bytes.
        max_bytes = budget // 2 if length is None else min(length, budget // 2)
        data = await ctx.state.exports.read(export, start, max_bytes)
    except SqlError as error:
        raise ResourceNotFound(f"{ctx.state.dialect.name}-export:///{name}", f"{error.code}: {error}") from None
    text = _decode(data, is_end=start + len(data) >= export.bytes)
    if text:
        data = text.encode()
    return _make_contents(export, f"{format_uri(ctx, export)}?offset={start}&length={len(data)}", data, text, budget)


def _decode(data: bytes, *, is_end: bool) -> str | None:
    """Return the bytes as text; None if they are not UTF-8."""
    try:
        # An incomplete character at the end of the data is an error only if the file ends there.
        return getincrementaldecoder("utf-8")().decode(data, is_end)
    except UnicodeDecodeError:
        return None


def _make_contents(export: Export, uri: str, data: bytes, text: str | None, budget: int) -> Contents:
    meta = {"size": export.bytes}
    if text is None or (data and not text) or len(to_json(text)) > budget:
        return BlobResourceContents.of(uri, data, export.mime_type, meta)
    return TextResourceContents(uri=uri, mime_type=export.mime_type, text=text, meta=meta)
