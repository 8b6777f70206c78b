"""The tools that read files."""

from functools import partial
from typing import Annotated, Any

from anyio import from_thread, to_thread
from pydantic import Field

from shared import AudioContent, BlobResourceContents, CallToolResult, EmbeddedResource, Features, ImageContent, Text

from ..files import Files
from ..read.parts import Part
from ..read.summaries import many_text, notes_of, text_of
from .advice import advised
from .arguments import (
    Count,
    Ctx,
    CursorArgument,
    Encoding,
    FirstLine,
    FirstLines,
    LastLines,
    Pages,
    as_base64,
    read_budget,
)
from .reports import report_cut

tools = Features[Files]()


def _read_at_once(ctx: Ctx, path: str, **part: Any) -> Text | None:
    is_whole = set(part.values()) == {None}
    read = ctx.state.read_at_once(path, read_budget(ctx)) if is_whole else None
    return None if read is None else Text(text_of(read), notes_of(read))


@tools.tool(read_only=True, at_once=_read_at_once)
async def read_text_file(
    ctx: Ctx,
    path: str,
    head: FirstLines = None,
    tail: LastLines = None,
    offset: FirstLine = None,
    cursor: CursorArgument = None,
    encoding: Encoding = None,
    pages: Pages = None,
) -> Text:
    """Read a text file, or the text of PDF, Office, OpenDocument or EPUB, whole or in part."""
    files = ctx.state
    part = Part(head, tail, offset, cursor, encoding, pages)
    read = await files.read_any_text(files.place(path), read_budget(ctx), ctx.turn, part)
    if read.truncated:
        await report_cut(ctx, path, read)
    return Text(text_of(read), notes_of(read))


@tools.tool(read_only=True)
async def read_file(ctx: Ctx, path: str, head: Count | None = None, tail: Count | None = None) -> Text:
    """The old name of read_text_file."""
    return await read_text_file(ctx, path, head, tail)


@tools.tool(read_only=True)
async def read_media_file(ctx: Ctx, path: str) -> CallToolResult:
    """Read an image or a sound, or any other file as bytes."""
    files = ctx.state
    place = files.place(path)
    read = await files.read_bytes(place, as_base64(ctx.budget.result_bytes), ctx.turn)
    block: ImageContent | AudioContent | EmbeddedResource
    if read.mime.startswith("image/"):
        block = ImageContent.of(read.data, read.mime)
    elif read.mime.startswith("audio/"):
        block = AudioContent.of(read.data, read.mime)
    else:
        block = EmbeddedResource(resource=BlobResourceContents.of(files.uri(place), read.data, read.mime))
    return CallToolResult(content=[block], meta={"etag": read.etag})


@tools.tool(read_only=True)
async def read_multiple_files(ctx: Ctx, paths: Annotated[list[str], Field(min_length=1, max_length=1_000)]) -> Text:
    """Read several text files. One that can't be read gives its error in its place."""
    beneath, check = ctx.state.beneath, from_thread.check_cancelled
    async with ctx.turn():
        advice = partial(advised, ctx.state)
        many = await to_thread.run_sync(many_text, beneath, paths, read_budget(ctx), check, advice)
    return Text(many.text, {"etags": many.etags})
