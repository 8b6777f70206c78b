"""The prompt that puts a page before the model."""

from typing import Annotated

from pydantic import Field

from shared import InvalidParams

from .app import Ctx, app, snapshot_of
from .errors import FetchError
from .pages.snapshots import Wanted
from .pages.texts import cut, explained, text_of

__all__ = ["fetch"]

_CHARACTERS = 100_000


@app.prompt(title="Fetch a page")
async def fetch(ctx: Ctx, url: Annotated[str, Field(description="http or https")]) -> str:
    """Read a web page as Markdown."""
    try:
        snapshot = await snapshot_of(ctx, Wanted(url))
    except FetchError as error:
        raise InvalidParams(explained(error)) from None
    return text_of(snapshot, cut(snapshot.page.text, 0, _CHARACTERS, ctx.budget.result_bytes // 2))
