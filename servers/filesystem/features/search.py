"""The tools that list directories and find files.

The modules in `search` are imported by the first call that uses one of their names (see `servers/start.py`), so
annotations that use their types are quoted.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, TypeVar

import anyio
from anyio import to_thread
from pydantic import Field

from shared import CallToolResult, Features, TextContent
from shared.concurrency import background
from shared.text import display_name

from ..files import Files
from ..search import content, files, listing, matcher, summaries, tree
from ..search.page import Page
from .arguments import Count, Ctx, CursorArgument, IncludeIgnored, OptionalCount, Patterns
from .reports import report_early_end
from .views import FILES_APP, show_listing, show_tree

_GONE = ", can't be reached now"
tools = Features[Files]()

Documents = Annotated[bool, Field(description="also in PDF, Office, OpenDocument, EPUB")]
HiddenToo = Annotated[bool, Field(description="also hidden and ignored files")]

T = TypeVar("T")

_FRAME_BYTES = 2_000
"""Size in bytes of a result without its entries."""
_REPORT_SECONDS = 0.5
"""Seconds between progress reports."""
_TIME_SHARE = 0.7
"""Fraction of a call's time limit for the search itself. The rest is for returning the results."""


def _list_at_once(ctx: Ctx, path: str, limit: int | None, cursor: str | None) -> str | None:
    files, place, page = ctx.state, ctx.state.place(path), _page(ctx, limit, cursor)
    # Use `listing` here, which imports it the first time: `scan` below measures how long the disk takes.
    page_of = partial(listing.page_of, rooted=files.rooted, place=place, page=page, names_only=True)
    listed = files.small.scan(place, page_of)
    return None if listed is None else summaries.listing_text(listed)


@tools.tool(read_only=True, at_once=_list_at_once)
async def list_directory(ctx: Ctx, path: str, limit: OptionalCount = None, cursor: CursorArgument = None) -> str:
    """List a directory's files, directories and links by name."""
    place, page = ctx.state.place(path), _page(ctx, limit, cursor)
    async with ctx.turn(brief=True):
        list_names = partial(listing.list_directory, ctx.state.rooted, place, page, names_only=True)
        entries = await to_thread.run_sync(list_names)
    return summaries.listing_text(entries)


@tools.tool(read_only=True, app=FILES_APP)
async def list_directory_with_sizes(
    ctx: Ctx,
    path: str,
    sortBy: Literal["name", "size"] = "name",  # noqa: N803 - as in the reference server
    limit: OptionalCount = None,
    cursor: CursorArgument = None,
) -> str:
    """List a directory with the size of each file."""
    place, page, changes_cursor = ctx.state.place(path), _page(ctx, limit, cursor), ctx.state.journal.cursor
    async with ctx.turn(brief=True):
        entries = await to_thread.run_sync(listing.list_directory, ctx.state.rooted, place, page, sortBy == "size")
    show_listing(ctx, place, entries, changes_cursor)
    return summaries.sized_text(entries)


@tools.tool(read_only=True, app=FILES_APP)
async def directory_tree(
    ctx: Ctx,
    path: str,
    excludePatterns: Patterns = [],  # noqa: B006, N803 - pydantic copies it; as in the reference server
    maxDepth: Count = 64,  # noqa: N803 - camelCase like the others
    includeIgnored: IncludeIgnored = True,  # noqa: N803 - camelCase like the others
) -> str:
    """Show everything below a directory as a tree. Links are not followed; omitted contents are marked."""
    rooted, place, changes_cursor = ctx.state.rooted, ctx.state.place(path), ctx.state.journal.cursor
    limits = tree.Limits(maxDepth, ctx.budget.entries, ctx.budget.page_bytes - _FRAME_BYTES, includeIgnored)
    nodes = await _search(ctx, lambda progress: tree.directory_tree(rooted, place, excludePatterns, limits, progress))
    show_tree(ctx, place, nodes, changes_cursor)
    return summaries.tree_text(nodes)


@tools.tool(read_only=True)
async def search_files(
    ctx: Ctx,
    path: str,
    pattern: Annotated[str, Field(description="without a slash it matches at any depth, e.g. *.py")],
    excludePatterns: Patterns = [],  # noqa: B006, N803 - pydantic copies it; as in the reference server
    includeIgnored: bool = False,  # noqa: N803 - camelCase like the others
    limit: Count = 1_000,
    cursor: CursorArgument = None,
) -> str:
    """Find files and directories by a case-sensitive glob. Entries that .gitignore excludes are left out and
    counted."""
    scope = files.Scope(pattern, tuple(excludePatterns), includeIgnored)
    rooted, place, page = ctx.state.rooted, ctx.state.place(path), _page(ctx, limit, cursor)
    result = await _search(ctx, lambda progress: files.search_files(rooted, place, scope, page, progress))
    await report_early_end(ctx, result["stopped"])
    return summaries.search_text(result, pattern)


@tools.tool(read_only=True, task="optional")
async def search_content(
    ctx: Ctx,
    path: str,
    pattern: str,
    literal: Annotated[bool, Field(description="pattern is plain text")] = False,
    ignoreCase: bool = False,  # noqa: N803 - camelCase like the others
    multiline: Annotated[bool, Field(description="matches may span lines")] = False,
    glob: Annotated[str, Field(description="which files, e.g. *.py or src/**/*.ts")] = "*",
    excludePatterns: Patterns = [],  # noqa: B006, N803 - pydantic copies it; camelCase like the others
    includeIgnored: HiddenToo = False,  # noqa: N803 - camelCase like the others
    output: Literal["matches", "files", "counts"] = "matches",
    context: Annotated[int, Field(ge=0, le=20, description="lines around each match")] = 0,
    documents: Documents = False,
    limit: Count = 250,
    cursor: CursorArgument = None,
) -> str:
    """Find the lines in files that match an RE2 regular expression. Skips binary, hidden and ignored files."""
    scope = files.Scope(glob, tuple(excludePatterns), includeIgnored, includeIgnored)
    reader = ctx.state.documents.reader() if documents else None
    query = matcher.Query(pattern, literal, ignoreCase, multiline)
    request = content.SearchRequest(query, output, context, reader)
    rooted, place, page = ctx.state.rooted, ctx.state.place(path), _page(ctx, limit, cursor)
    result = await _search(
        ctx, lambda progress: content.search_content(rooted, place, scope, request, page, progress)
    )
    await report_early_end(ctx, result["stopped"])
    return summaries.content_text(result, "" if literal else pattern, glob)


def _info_at_once(ctx: Ctx, path: str) -> CallToolResult | None:
    place = ctx.state.place(path)
    status = ctx.state.small.status(place)
    return None if status is None else _info(listing.describe(ctx.state.rooted, place, status))


@tools.tool(read_only=True, at_once=_info_at_once)
async def get_file_info(ctx: Ctx, path: str) -> CallToolResult:
    """Show a file's size, kind, times, permissions, media type and etag without reading it."""
    return _info(await to_thread.run_sync(listing.info, ctx.state.rooted, ctx.state.place(path)))


def _info(info: "listing.FileInfo") -> CallToolResult:
    # Models read the text and need no schema for the structured data, which is for programs.
    return CallToolResult(content=[TextContent(text=summaries.info_text(info))], structured_content=info._asdict())


@tools.tool(read_only=True)
async def list_allowed_directories(ctx: Ctx) -> str:
    """List the directories this server may read, and those it may change."""
    roots = ctx.state.rooted.roots
    missing = await to_thread.run_sync(ctx.state.missing_roots, abandon_on_cancel=True)
    lines = [
        f"{display_name(root)} ({'read and write' if writes else 'read only'}{_GONE if root in missing else ''})"
        for root, writes in zip(map(str, roots.paths), roots.may_change, strict=True)
    ]
    no_roots_note = ["none, because none of the client's roots is in a directory of this server"]
    return "\n".join(["Allowed directories:", *(lines or no_roots_note)])


def _page(ctx: Ctx, limit: int | None, cursor: str | None) -> Page:
    return Page(ctx.budget.limit_entries(limit or None), ctx.budget.page_bytes - _FRAME_BYTES, cursor)


async def _search(ctx: Ctx, search: "Callable[[files.SearchProgress], T]") -> T:
    """Run `search` in a thread and return its result. The client gets progress reports. If the call is cancelled, the
    thread ends at its next step.
    """
    requested_at = anyio.current_time()

    async def report_progress() -> None:
        reported = 0
        while True:
            await anyio.sleep(_REPORT_SECONDS)
            if progress.examined > reported:
                reported = progress.examined
                await ctx.progress(reported, message=f"{reported:,} entries examined")

    async with ctx.turn():
        remaining = ctx.budget.seconds - (anyio.current_time() - requested_at)
        progress = files.SearchProgress(remaining * _TIME_SHARE)
        try:
            async with background() as tasks:
                tasks.start_soon(report_progress)
                return await to_thread.run_sync(search, progress, abandon_on_cancel=True)
        finally:
            progress.cancel()
