"""The tools that read files."""

from functools import partial
from typing import Annotated, Any

from anyio import from_thread, to_thread
from pydantic import Field

from servers.common import images
from shared import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    Features,
    ImageContent,
    Text,
    TextContent,
    TextResourceContents,
)

from ..files import Files
from ..read.binary import BytesRead
from ..read.charsets import decode_plain
from ..read.pages import json_size
from ..read.parts import Part
from ..read.summaries import EMPTY, notes_of, read_many, text_of
from .advice import add_advice
from .arguments import (
    Ctx,
    CursorArgument,
    Encoding,
    Head,
    OptionalCount,
    Pages,
    StartLine,
    Tail,
    base64_capacity,
    read_budget,
)
from .reports import report_truncation

tools = Features[Files]()

_Block = TextContent | ImageContent | AudioContent | EmbeddedResource


def _read_at_once(ctx: Ctx, path: str, **part: Any) -> Text | None:
    is_whole = set(part.values()) == {None}
    read = ctx.state.read_at_once(path, read_budget(ctx)) if is_whole else None
    return None if read is None else Text(text_of(read), notes_of(read))


@tools.tool(read_only=True, at_once=_read_at_once)
async def read_text_file(
    ctx: Ctx,
    path: str,
    head: Head = None,
    tail: Tail = None,
    offset: StartLine = None,
    cursor: CursorArgument = None,
    encoding: Encoding = None,
    pages: Pages = None,
) -> Text:
    """Read a text file, or the text of PDF, Office, OpenDocument or EPUB, whole or in part."""
    files = ctx.state
    part = Part(head or None, tail or None, offset or None, cursor, encoding, pages)
    read = await files.read_any_text(files.place(path), read_budget(ctx), ctx.turn, part)
    if read.truncated:
        await report_truncation(ctx, path, read)
    return Text(text_of(read), notes_of(read))


@tools.tool(read_only=True)
async def read_file(ctx: Ctx, path: str, head: OptionalCount = None, tail: OptionalCount = None) -> Text:
    """Former name of read_text_file."""
    return await read_text_file(ctx, path, head, tail)


@tools.tool(read_only=True)
async def read_media_file(ctx: Ctx, path: str) -> CallToolResult:
    """Read an image or audio file, or any other file as bytes."""
    place = ctx.state.place(path)
    read = await ctx.state.read_bytes(place, base64_capacity(ctx.budget.result_bytes), ctx.turn)
    image_type = images.image_type(read.data)
    fault = None if image_type is None else images.fault_of(read.data)
    note = [] if fault is None else [TextContent(text=f"[{fault}: as bytes]")]
    block = _block_of(read, image_type if fault is None else None, ctx.state.uri(place), read_budget(ctx))
    return CallToolResult(content=[*note, block], meta={"etag": read.etag})


def _block_of(read: BytesRead, image_type: str | None, uri: str, budget: int) -> _Block:
    """Return a file in a form that hosts can show. An SVG drawing of at most `budget` bytes is returned as text.
    `image_type` is the media type of an image that models accept; None for all other files, since an image that a
    model rejects ends the conversation in some hosts."""
    if not read.data:
        return TextContent(text=EMPTY)
    if image_type is not None:
        return ImageContent.of(read.data, image_type)
    if read.mime.startswith("audio/"):
        return AudioContent.of(read.data, read.mime)
    text = decode_plain(read.data) if read.mime.startswith("image/") else None
    if text is not None and json_size(text) <= budget:
        return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=read.mime, text=text))
    return EmbeddedResource(resource=BlobResourceContents.of(uri, read.data, read.mime))


@tools.tool(read_only=True)
async def read_multiple_files(ctx: Ctx, paths: Annotated[list[str], Field(min_length=1, max_length=1_000)]) -> Text:
    """Read several text files. A file that can't be read is replaced by its error."""
    rooted, check = ctx.state.rooted, from_thread.check_cancelled
    async with ctx.turn():
        advice = partial(add_advice, ctx.state)
        many = await to_thread.run_sync(read_many, rooted, paths, read_budget(ctx), check, advice)
    return Text(many.text, {"etags": many.etags})
