"""Pages as resources under their own URLs, and the recent ones listed."""

from itertools import islice

from shared import BlobResourceContents, InvalidParams, Resource, TextResourceContents
from shared.kit.text import join_lines

from .app import Ctx, app, snapshot_of
from .errors import FetchError
from .pages.snapshots import Wanted
from .pages.texts import cut, explained, facts_of, text_of

__all__ = ["list_recent", "read_page"]

_CHARACTERS = 100_000
_LISTED = 50
_TITLE = 200
_MARKDOWN = "text/markdown"


@app.resource("http://{+url}", name="page over http", title="A page without encryption", mime_type=_MARKDOWN)
async def read_page_over_http(ctx: Ctx, url: str) -> TextResourceContents | BlobResourceContents:
    """The main content of a page, as Markdown."""
    return await _read(ctx, f"http://{url}")


@app.resource("https://{+url}", name="page", title="A page of the web", mime_type=_MARKDOWN)
async def read_page(ctx: Ctx, url: str) -> TextResourceContents | BlobResourceContents:
    """The main content of a page, as Markdown."""
    return await _read(ctx, f"https://{url}")


async def _read(ctx: Ctx, uri: str) -> TextResourceContents | BlobResourceContents:
    try:
        snapshot = await snapshot_of(ctx, Wanted(uri))
    except FetchError as error:
        raise InvalidParams(explained(error)) from None
    page = snapshot.page
    piece = cut(page.text, 0, _CHARACTERS, ctx.budget.result_bytes // 2)
    facts = facts_of(snapshot, piece)
    if page.image:
        if len(page.image) * 4 / 3 > ctx.budget.result_bytes:
            raise InvalidParams(f"too_large: the image has {len(page.image):,} bytes, more than an answer may have")
        return BlobResourceContents.of(uri, page.image, page.image_type, facts)
    return TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text_of(snapshot, piece), meta=facts)


@app.lists_resources
async def list_recent(ctx: Ctx) -> list[Resource]:
    """The pages that this client fetched last, each once, with the titles that they give themselves."""
    titles: dict[str, str] = {}
    for wanted, snapshot in ctx.state.snapshots.recent(ctx.owner):
        titles.setdefault(wanted.url, join_lines(snapshot.page.found.title[:_TITLE])[:_TITLE])
    return [
        Resource(uri=url, name=join_lines(url), title=title or None, mime_type=_MARKDOWN)
        for url, title in islice(titles.items(), _LISTED)
    ]
