"""The tools that read files."""

from typing import Annotated

from anyio import to_thread
from pydantic import Field

from shared import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent

from ..app import JSON_GROWTH, Ctx, app
from ..arguments import FirstLines, LastLines, PathArgument
from .texts import many_text, text_of


@app.tool(title="Read text file", read_only=True)
async def read_text_file(ctx: Ctx, path: PathArgument, head: FirstLines = None, tail: LastLines = None) -> str:
    """Read a text file in UTF-8: all of it, or its first or last lines."""
    files = ctx.state
    return text_of(await files.read_text(files.place(path), ctx.budget.result_bytes // JSON_GROWTH, head, tail))


app.tool(
    name="read_file",
    title="Read file (old name)",
    description="The old name of read_text_file, which does the same.",
    read_only=True,
)(read_text_file)


@app.tool(title="Read media file", read_only=True)
async def read_media_file(ctx: Ctx, path: PathArgument) -> ImageContent | AudioContent | EmbeddedResource:
    """Read an image or a sound as such, and any other file as its bytes."""
    files = ctx.state
    place = files.place(path)
    read = await files.read_bytes(place, ctx.budget.result_bytes * 3 // 4 - 1_000)
    if read.mime.startswith("image/"):
        return ImageContent.of(read.data, read.mime)
    if read.mime.startswith("audio/"):
        return AudioContent.of(read.data, read.mime)
    return EmbeddedResource(resource=BlobResourceContents.of(files.uri(place), read.data, read.mime))


@app.tool(title="Read several files", read_only=True)
async def read_multiple_files(ctx: Ctx, paths: Annotated[list[str], Field(min_length=1, max_length=1_000)]) -> str:
    """Read several text files at once. One that can't be read gives its error in its place."""
    return await to_thread.run_sync(many_text, ctx.state, paths, ctx.budget.result_bytes // JSON_GROWTH)
