"""What clients have found out and want to keep for as long as the server runs: kept by a tool, read as a resource.

Each principal has a memo of its own; whom nobody authenticated share one.
"""

from collections import OrderedDict, deque
from typing import Annotated

from pydantic import Field

from shared import Features

from ..errors import SqlError
from ..texts import shorten
from ..uris import INSIGHTS
from .context import Ctx, Opened

_MOST = 1_000
_MEMOS = 100
"""Those that were used last are kept."""
_BYTES = 200_000
_SHOWN = 1_000
"""Characters that a question shows."""

features = Features[Opened]()


class Insights:
    """Insights in the order in which they came. The oldest go when there are too many."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def append(self, insight: str) -> int:
        """Keeps it; how many old ones went. Raises SqlError `too_large`."""
        size = _measure(insight)
        if size > _BYTES // 10:
            raise SqlError("too_large", f"the insight has {size} bytes; the limit is {_BYTES // 10}")
        self._kept.append(insight)
        self._size += size
        gone = 0
        while len(self._kept) > _MOST or self._size > _BYTES:
            self._size -= _measure(self._kept.popleft())
            gone += 1
        return gone

    def memo(self) -> str:
        """All of them, as a list in Markdown."""
        if not self._kept:
            return "No insights yet. The tool append_insight adds them."
        return "\n".join("- " + "\n  ".join(one.splitlines()) for one in self._kept)


class Memos:
    """The insights of each principal, by its key."""

    def __init__(self) -> None:
        self._by_owner: OrderedDict[str, Insights] = OrderedDict()

    def of(self, owner: str) -> Insights:
        """Those of one principal."""
        insights = self._by_owner.setdefault(owner, Insights())
        self._by_owner.move_to_end(owner)
        if len(self._by_owner) > _MEMOS:
            self._by_owner.popitem(last=False)
        return insights


def _measure(insight: str) -> int:
    return len(insight.encode())


def insights_key(ctx: Ctx) -> str:
    """The key of a subscription to the insights: whoever has others is not told of these."""
    return f"{INSIGHTS}#{_owner(ctx)}"


def _owner(ctx: Ctx) -> str:
    return "" if ctx.peer.principal is None else ctx.peer.principal.key


@features.resource(INSIGHTS, name="insights", title="What was found out", mime_type="text/markdown")
async def read_insights(ctx: Ctx) -> str:
    """The findings that append_insight added since the server started."""
    return ctx.state.memos.of(_owner(ctx)).memo()


@features.tool(title="Append insight", destructive=False)
async def append_insight(ctx: Ctx, insight: Annotated[str, Field(min_length=1, description="one finding")]) -> str:
    """Keep a finding in the resource memo://insights, for as long as the server runs."""
    if ctx.settings.confirm:
        await ctx.confirm(f"Keep this in {INSIGHTS}?\n{shorten(insight, _SHOWN)}", insight)
    gone = ctx.state.memos.of(_owner(ctx)).append(insight)
    ctx.changes.resource(insights_key(ctx))
    return "Insight added to memo" + (f"; the {gone} oldest had to go" if gone else "")
