"""The tool with which clients add insights, and the resource with which they read them."""

from typing import Annotated

from pydantic import Field

from shared import Features

from ..texts import shorten
from ..uris import INSIGHTS_URI
from .context import Ctx, SqlServerState

_REPLICA_NOTE = "\n\nThese are the insights of one replica; the others have what was appended there."
_MAX_SHOWN = 1_000
"""Maximum number of characters of an insight that are shown when the user is asked."""

features = Features[SqlServerState]()


def insights_key(ctx: Ctx) -> str:
    """Return the subscription key for the insights of the client. Each principal has its own."""
    return f"{INSIGHTS_URI}#{_owner(ctx)}"


def _owner(ctx: Ctx) -> str:
    return "" if ctx.peer.principal is None else ctx.peer.principal.key


@features.resource(INSIGHTS_URI, name="insights", title="Findings", mime_type="text/markdown")
async def read_insights(ctx: Ctx) -> str:
    """The findings that append_insight added since the server started."""
    memo = ctx.state.memos.get_insights(_owner(ctx)).memo()
    return memo + _REPLICA_NOTE if ctx.state.memos.has_replicas() else memo


@features.tool(destructive=False)
async def append_insight(ctx: Ctx, insight: Annotated[str, Field(min_length=1)]) -> str:
    """Keep a finding in the resource memo://insights until the server stops."""
    if ctx.settings.confirm:
        await ctx.confirm(f"Keep this in {INSIGHTS_URI}?\n{shorten(insight, _MAX_SHOWN)}", insight)
    removed = ctx.state.memos.get_insights(_owner(ctx)).append(insight)
    ctx.changes.resource(insights_key(ctx))
    return "Insight added to memo" + (f"; the {removed} oldest were dropped" if removed else "")
