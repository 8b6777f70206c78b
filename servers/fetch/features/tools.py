"""The tools that fetch one page, or several at once."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from servers.common.images import fault_of
from shared import CallToolResult, Features, ImageContent, Text, TextContent, ToolError
from shared.extensions.apps import show, shows_apps

from ..errors import FetchError
from ..pages.contents import view_of
from ..pages.snapshots import PageRequest, fetch_all
from ..pages.texts import Piece, cut, facts_of, join_pages, text_of
from ..read.page import Format
from .excerpts import Selection, fetch_excerpts
from .reports import report_cut
from .room import OVERHEAD_BYTES, room_for_text
from .state import Ctx, State, fetch_snapshot, find_stored_snapshot

PAGE_APP = "ui://fetch/page"
"""The URI of the MCP app that shows a fetched page."""

features = Features[State]()

_FRAME_BYTES = 1_000
"""Size in bytes of a result without the text and metadata of its pages."""
_LAST_SECONDS = 3.0
"""The last seconds of a call's time limit, reserved for sending the pages fetched so far."""
_FETCHED_AGAIN = "this was fetched again, so it may not continue where the last piece ended"

UrlArgument = Annotated[str, Field(description="http or https", max_length=8_000)]
UrlsArgument = Annotated[list[Annotated[str, Field(max_length=8_000)]], Field(min_length=1, max_length=20)]
MaxLengthArgument = Annotated[int, Field(ge=1, le=999_999, description="characters")]
StartArgument = Annotated[int, Field(ge=0, description="offset to continue from, as given in truncated text")]
RawArgument = Annotated[bool, Field(description="the source as the site sent it")]
FormatArgument = Annotated[
    Format,
    Field(
        description="markdown, text: the main content; html: cleaned; json: JSON, or data in a page; "
        "metadata: with an outline of the headings"
    ),
]
SectionArgument = Annotated[
    str | None,
    Field(description="only this: a heading, sheet, #fragment, CSS selector or JSON pointer", max_length=500),
]
PagesArgument = Annotated[str | None, Field(description="of a PDF or slides: 3 or 1,4-6", max_length=200)]
FindArgument = Annotated[str | None, Field(description="a question: only passages with its words", max_length=500)]
SinceArgument = Annotated[
    str | None, Field(description="version of an earlier answer: only what changed", max_length=50)
]
RefreshArgument = Annotated[bool, Field(description="bypass the cache")]


@features.tool(read_only=True, open_world=True, app=PAGE_APP)
async def fetch(
    ctx: Ctx,
    url: UrlArgument,
    max_length: MaxLengthArgument = 5_000,
    start_index: StartArgument = 0,
    raw: RawArgument = False,
    format: FormatArgument = "markdown",
    section: SectionArgument = None,
    pages: PagesArgument = None,
    find: FindArgument = None,
    since: SinceArgument = None,
    refresh: RefreshArgument = False,
) -> CallToolResult:
    """Fetch a public web page: HTML as Markdown of its main content, feeds, JSON, PDF, Office, EPUB, images."""
    # Some models send "" instead of leaving an argument out.
    request = PageRequest(url, "raw" if raw else format, section or None, pages or None)
    if find or since:
        selection = Selection(find or None, since or None, start_index, max_length, refresh)
        return await fetch_excerpts(ctx, request, selection)
    continues = start_index > 0 and not refresh
    stored = await find_stored_snapshot(ctx, request) if continues else None
    snapshot = stored or await fetch_snapshot(ctx, request, refresh=refresh)
    image = snapshot.page.image
    version = "" if start_index or image else snapshot.version
    notes = (_FETCHED_AGAIN,) if continues and not stored else ()
    frame = text_of(snapshot, Piece("", start_index, len(snapshot.page.text)), notes, version)
    piece = cut(snapshot.page.text, start_index, max_length, room_for_text(ctx, frame))
    if len(piece.text) < max_length and piece.end < piece.total:
        await report_cut(ctx, url, piece)
    blocks: list[Any] = [TextContent(text=text_of(snapshot, piece, notes, version))]
    if image:
        if len(image) * 4 / 3 > ctx.budget.result_bytes - OVERHEAD_BYTES:
            reason = f"the image has {len(image):,} bytes, more than a result may contain"
            raise FetchError("too_large", reason, "The operator can allow more with --max-result.")
        fault = fault_of(image)
        note = TextContent(text=f"[{fault}: not shown]")
        blocks.append(ImageContent.of(image, snapshot.page.image_type) if fault is None else note)
    if shows_apps(ctx):
        show(ctx, view_of(request, snapshot, piece))
    return CallToolResult(content=blocks, meta=facts_of(snapshot, piece, version))


@features.tool(read_only=True, open_world=True, task="optional")
async def fetch_many(
    ctx: Ctx, urls: UrlsArgument, max_length: MaxLengthArgument = 20_000, format: Format = "markdown"
) -> Text:
    """Fetch several pages, which share max_length. One that fails is replaced by its error; fetch continues a
    truncated one."""
    requests = [PageRequest(url, format) for url in dict.fromkeys(urls)]
    report_progress = partial(ctx.progress, total=len(requests))
    seconds = ctx.budget.seconds - _LAST_SECONDS
    outcomes = await fetch_all(requests, partial(fetch_snapshot, ctx), report_progress, seconds, max_length)
    many = join_pages(requests, outcomes, max_length, ctx.budget.page_bytes, ctx.budget.result_bytes - _FRAME_BYTES)
    if all("error" in facts for facts in many.facts):
        raise ToolError(many.text)
    return Text(many.text, {"pages": many.facts})
