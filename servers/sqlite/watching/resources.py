"""Subscriptions to databases, schemas, tables and insights."""

from shared import ResourceNotFound, Running

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
async def _end(running: Running[Opened], key: str) -> None:
    running.state.watch.end(key)


@app.on_wanted
async def _begin_listing(running: Running[Opened]) -> None:
    await running.state.watch.begin_listing()


@app.on_health
def _watching(running: Running[Opened]) -> dict[str, object]:
    return {"watching": running.state.watch.health}
