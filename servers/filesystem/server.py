"""The filesystem server: fourteen tools, `file://` resources, and notice of their changes.

Every function here says what a client sees; the work is done by the files beside it, in worker threads but for the
small reads of `small.py`. A cancelled call waits for its thread, so that no write is left half done.
"""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from shared import (
    AudioContent,
    BlobResourceContents,
    Context,
    Data,
    EmbeddedResource,
    ImageContent,
    Implementation,
    InvalidParams,
    Resource,
    ResourceNotFound,
    Server,
    TextResourceContents,
    ToolError,
    __version__,
)

from . import listing, reading, searching, writing
from .arguments import AllowedDirectories, EditOperation, FirstLines, LastLines, PathArgument, Patterns
from .errors import FilesError
from .files import Files, by_size, open_files
from .listing import FileInfo, Listing, Tree
from .searching import Found, Search
from .settings import Settings
from .texts import info_text, listing_text, many_text, search_text, sized_text, text_of, tree_text

__all__ = ["app"]

Ctx = Context[Files]
JSON_GROWTH = 2
"""Bytes that JSON may need for one byte of ordinary text."""

app = Server[Files](
    Implementation(
        name="filesystem",
        title="Filesystem",
        version=__version__,
        description="Reads, searches and edits files in the directories it was given.",
    ),
    instructions="Works on files in the allowed directories only; list_allowed_directories names them. "
    "Long files are cut: read them in parts with head or tail. Resources are files under file:// URIs; "
    "subscribe to one to be told when it changes.",
    settings=Settings,
)


@app.lifespan
async def _open(settings: Settings) -> AsyncIterator[Files]:
    async with open_files(settings.roots, settings.allow_write, app.changes.resource) as files:
        yield files


@app.error(FilesError)
def _explain(error: FilesError) -> ToolError:
    return ToolError(f"{error.code}: {error}")


def _read_only(settings: Settings) -> str | None:
    return None if settings.allow_write else "read_only: this server was started without --allow-write"


# Reading


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


# Finding


@app.tool(title="List directory", read_only=True)
async def list_directory(ctx: Ctx, path: PathArgument) -> Data[Listing]:
    """List what is in a directory: files, directories, links."""
    found = await to_thread.run_sync(
        listing.list_directory, ctx.state.beneath, ctx.state.place(path), ctx.budget.entries
    )
    return Data(found, listing_text(found))


@app.tool(title="List directory with sizes", read_only=True)
async def list_directory_with_sizes(
    ctx: Ctx,
    path: PathArgument,
    sortBy: Literal["name", "size"] = "name",  # noqa: N803 - drop-in name
) -> Data[Listing]:
    """List what is in a directory, with the size of each file, sorted by name or by size."""
    found = await to_thread.run_sync(
        listing.list_directory, ctx.state.beneath, ctx.state.place(path), ctx.budget.entries
    )
    if sortBy == "size":
        found = by_size(found)
    return Data(found, sized_text(found))


@app.tool(title="Directory tree", read_only=True)
async def directory_tree(
    ctx: Ctx,
    path: PathArgument,
    excludePatterns: Patterns = [],  # noqa: B006, N803 - pydantic copies it; drop-in name
) -> Data[Tree]:
    """Show everything below a directory as a tree. Links are shown and not followed."""
    files, budget = ctx.state, ctx.budget
    tree = await to_thread.run_sync(
        listing.directory_tree, files.beneath, files.place(path), excludePatterns, listing.MAX_DEPTH, budget.entries
    )
    return Data(tree, tree_text(tree))


@app.tool(title="Search files", read_only=True)
async def search_files(
    ctx: Ctx,
    path: PathArgument,
    pattern: Annotated[str, Field(description="glob; without a slash it matches names at any depth, e.g. *.py")],
    excludePatterns: Patterns = [],  # noqa: B006, N803 - pydantic copies it; drop-in name
) -> Data[Found]:
    """Find files and directories below a directory by a glob, case-sensitively."""
    search = Search(pattern, tuple(excludePatterns), limit=ctx.budget.entries_within(1_000))
    stop = threading.Event()
    try:
        found = await to_thread.run_sync(
            searching.search_files,
            ctx.state.beneath,
            ctx.state.place(path),
            search,
            stop.is_set,
            abandon_on_cancel=True,
        )
    finally:
        stop.set()
    return Data(found, search_text(found))


@app.tool(title="File information", read_only=True)
async def get_file_info(ctx: Ctx, path: PathArgument) -> Data[FileInfo]:
    """Tell a file's size, kind, times, permissions and media type without reading it."""
    info = await to_thread.run_sync(listing.info, ctx.state.beneath, ctx.state.place(path))
    return Data(info, info_text(info))


@app.tool(title="Allowed directories", read_only=True)
async def list_allowed_directories(ctx: Ctx) -> Data[AllowedDirectories]:
    """Name the directories this server may work in, and whether it may change files there."""
    roots = ctx.state.beneath.roots
    allowed = AllowedDirectories(directories=[str(path) for path in roots.paths], writable=roots.writable)
    mode = "read and write" if roots.writable else "read only"
    return Data(allowed, "\n".join(["Allowed directories:", *allowed.directories, f"Mode: {mode}"]))


# Writing


@app.tool(title="Write file", unavailable=_read_only, idempotent=True)
async def write_file(ctx: Ctx, path: PathArgument, content: str) -> str:
    """Write a text file, a new one or over an existing one, in one step: never half of it."""
    written = await to_thread.run_sync(writing.write_file, ctx.state.beneath, ctx.state.place(path), content.encode())
    return f"{'Created' if written.created else 'Replaced'} {path}: {written.size:,} bytes"


@app.tool(title="Edit file", unavailable=_read_only)
async def edit_file(
    ctx: Ctx,
    path: PathArgument,
    edits: Annotated[list[EditOperation], Field(min_length=1)],
    dryRun: Annotated[bool, Field(description="show the changes without making them")] = False,  # noqa: N803
) -> str:
    """Replace passages of a text file, each of which must stand there exactly once. Gives a unified diff."""
    pairs = [(edit.oldText, edit.newText) for edit in edits]
    edited = await to_thread.run_sync(writing.edit_file, ctx.state.beneath, ctx.state.place(path), pairs, dryRun)
    return edited.diff or "no change"


@app.tool(title="Create directory", unavailable=_read_only, destructive=False, idempotent=True)
async def create_directory(ctx: Ctx, path: PathArgument) -> str:
    """Make a directory and those above it; fine where it exists already."""
    created = await to_thread.run_sync(writing.create_directory, ctx.state.beneath, ctx.state.place(path))
    return f"Created {path}" if created else f"{path} exists already"


@app.tool(title="Move file", unavailable=_read_only, destructive=False)
async def move_file(ctx: Ctx, source: PathArgument, destination: PathArgument) -> str:
    """Move or rename a file or a directory. The destination must not exist."""
    files = ctx.state
    await to_thread.run_sync(writing.move, files.beneath, files.place(source), files.place(destination))
    return f"Moved {source} to {destination}"


# Resources


@contextmanager
def _served(uri: str) -> Iterator[None]:
    """Says what is wrong with a resource as the protocol does."""
    try:
        yield
    except FilesError as error:
        if error.code in ("not_found", "outside_roots", "bad_path", "not_a_directory"):
            raise ResourceNotFound(uri) from None
        raise InvalidParams(f"{error.code}: {error.reason}") from None


@app.resource("file:///{+path}", name="file", title="A file in an allowed directory")
async def read_resource(ctx: Ctx, path: str) -> TextResourceContents | BlobResourceContents:
    """The contents of a file: text where it is UTF-8, else bytes."""
    uri, files = f"file:///{path}", ctx.state
    with _served(uri):
        read = await files.read_bytes(files.place(uri), ctx.budget.result_bytes // JSON_GROWTH)
    try:
        return TextResourceContents(uri=uri, mime_type=read.mime, text=read.data.decode())
    except UnicodeDecodeError:
        return BlobResourceContents.of(uri, read.data, read.mime)


@app.lists_resources
async def list_resources(ctx: Ctx) -> list[Resource]:
    """The files that stand directly in the allowed directories."""
    found = await to_thread.run_sync(ctx.state.top_level, ctx.budget.entries)
    return [Resource(uri=one.uri, name=one.name, size=one.size, mime_type=reading.mime_of(one.name)) for one in found]


@app.on_subscribe
async def _watch(uri: str) -> str:
    files: Files = app.state
    if not uri.startswith("file:"):
        raise ResourceNotFound(uri)
    with _served(uri):
        place = files.place(uri)
        key = files.uri(place)
        await files.watcher.watch(key, place)
    return key


@app.on_unsubscribe
async def _unwatch(key: str) -> None:
    files: Files = app.state
    files.watcher.unwatch(key)


@app.on_wanted
async def _watch_listing() -> None:
    files: Files = app.state

    async def tell() -> None:
        app.changes.resources()

    await files.watcher.watch_listing(tell)
