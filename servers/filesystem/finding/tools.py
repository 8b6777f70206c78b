"""The tools that list directories and find files."""

import threading
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from shared import Data

from ..app import Ctx, app
from ..arguments import AllowedDirectories, PathArgument, Patterns
from ..names import displayed
from . import listing, searching
from .listing import FileInfo, Listing, Tree, by_size
from .searching import Found, Search
from .texts import info_text, listing_text, search_text, sized_text, tree_text


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
    """Name the directories this server may work in, and those of them where it may change files."""
    roots = ctx.state.beneath.roots
    pairs = [(displayed(str(path)), change) for path, change in zip(roots.paths, roots.may_change, strict=True)]
    allowed = AllowedDirectories(
        directories=[path for path, _ in pairs], writable=[path for path, change in pairs if change]
    )
    lines = [f"{path} ({'read and write' if change else 'read only'})" for path, change in pairs]
    return Data(allowed, "\n".join(["Allowed directories:", *lines]))
