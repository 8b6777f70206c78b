"""Subscriptions to databases, schemas, tables and insights."""

from shared import ResourceNotFound

from ..app import Ctx, Opened, app
from ..errors import SqliteError
from ..uris import INSIGHTS


@app.on_subscribe
async def _begin(ctx: Ctx, uri: str) -> str:
    if uri == INSIGHTS:
        return INSIGHTS  # append_insight tells of it
    try:
        return await ctx.state.watch.begin(uri)
    except SqliteError:
        raise ResourceNotFound(uri) from None


@app.on_unsubscribe
async def _end(key: str) -> None:
    opened: Opened = app.state
    opened.watch.end(key)


@app.on_wanted
async def _begin_listing() -> None:
    opened: Opened = app.state
    await opened.watch.begin_listing()


@app.on_health
def _watching() -> dict[str, object]:
    opened: Opened = app.state
    return {"watching": opened.watch.health}
