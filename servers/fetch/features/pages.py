"""Pages as resources under their own URLs, the list of the pages fetched last, and a prompt with a page."""

from itertools import islice
from typing import Annotated

from pydantic import Field

from shared import (
    BlobResourceContents,
    Features,
    InvalidParams,
    Resource,
    ResourceNotFound,
    Run,
    TextResourceContents,
    expand_uri,
)
from shared.protocol.uri_template import is_uri
from shared.text import join_lines

from ..errors import FetchError
from ..pages.snapshots import PageRequest, Snapshot
from ..pages.texts import cut, explain, facts_of, text_of
from .reports import report_cut
from .state import Ctx, State, fetch_snapshot

features = Features[State]()

_MAX_CHARACTERS = 100_000
"""Maximum number of characters of a page's text in a resource or prompt."""
_MAX_LISTED = 50
"""Maximum number of recent pages that are listed."""
_MAX_TITLE_LENGTH = 200
_MARKDOWN = "text/markdown"


@features.resource("http://{+url}", name="page over http", title="A page without encryption", mime_type=_MARKDOWN)
async def read_page_over_http(ctx: Ctx, url: str) -> TextResourceContents | BlobResourceContents:
    """The main content of a page, as Markdown."""
    return await _read(ctx, f"http://{url}")


@features.resource("https://{+url}", name="page", title="A web page", mime_type=_MARKDOWN)
async def read_page(ctx: Ctx, url: str) -> TextResourceContents | BlobResourceContents:
    """The main content of a page, as Markdown."""
    return await _read(ctx, f"https://{url}")


async def _read(ctx: Ctx, uri: str) -> TextResourceContents | BlobResourceContents:
    snapshot = await _fetch_or_refuse(ctx, uri)
    page = snapshot.page
    piece = cut(page.text, 0, _MAX_CHARACTERS, ctx.budget.result_bytes // 2)
    facts = facts_of(snapshot, piece)
    if piece.end < piece.total:
        await report_cut(ctx, uri, piece)
    if page.image:
        if len(page.image) * 4 / 3 > ctx.budget.result_bytes:
            raise InvalidParams(f"too_large: the image has {len(page.image):,} bytes, more than a result may contain")
        return BlobResourceContents.of(uri, page.image, page.image_type, facts)
    return TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text_of(snapshot, piece), meta=facts)


@features.lists_resources
async def list_recent(ctx: Ctx) -> list[Resource]:
    """The pages that this client fetched last, each once, with their titles."""
    titles: dict[str, str] = {}
    for request, snapshot in ctx.state.snapshots.recent(ctx.owner):
        # Clients may send spaces and braces, which a URI can't contain.
        uri = request.url if is_uri(request.url) else expand_uri("{+url}", url=request.url)
        titles.setdefault(uri, join_lines(snapshot.page.metadata.title[:_MAX_TITLE_LENGTH])[:_MAX_TITLE_LENGTH])
    return [
        Resource(uri=uri, name=join_lines(uri), title=title or None, mime_type=_MARKDOWN)
        for uri, title in islice(titles.items(), _MAX_LISTED)
    ]


@features.prompt(title="Fetch a page")
async def fetch(ctx: Ctx, url: Annotated[str, Field(description="http or https")]) -> str:
    """Read a web page as Markdown."""
    snapshot = await _fetch_or_refuse(ctx, url)
    return text_of(snapshot, cut(snapshot.page.text, 0, _MAX_CHARACTERS, ctx.budget.result_bytes // 2))


async def subscribe(ctx: Ctx, uri: str) -> str:
    """Watch the page at a URL, and return the key for notifications of its changes.

    Raises ResourceNotFound with the reason, so that a stream of several subscriptions continues without this one.
    """
    if not uri.startswith(("http://", "https://")):
        raise ResourceNotFound(uri)
    try:
        return await ctx.state.watcher.watch(uri, ctx.owner)
    except FetchError as error:
        raise ResourceNotFound(uri, explain(error)) from None


async def unsubscribe(run: Run[State], key: str) -> None:
    """Stop watching a page that has no more subscribers."""
    run.state.watcher.unwatch(key)


async def _fetch_or_refuse(ctx: Ctx, url: str) -> Snapshot:
    """Return the current page. Raises InvalidParams instead of FetchError: so resources and prompts report errors."""
    try:
        return await fetch_snapshot(ctx, PageRequest(url))
    except FetchError as error:
        raise InvalidParams(explain(error)) from None
