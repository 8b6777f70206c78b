"""Keeps insights, which clients store while the server runs, in memos.

Each principal has its own memo. Unauthenticated clients share one.
"""

from collections import OrderedDict, deque
from collections.abc import Callable

from .errors import SqlError

_MAX_INSIGHTS, _MAX_BYTES = 1_000, 200_000
"""Maximum number of insights in one memo, and their maximum total size in bytes."""
_MAX_MEMOS = 100
"""Maximum number of memos. A further one replaces the least recently used one."""


class Insights:
    """The insights of one memo, oldest first. The oldest are removed when there are too many."""

    def __init__(self) -> None:
        self._insights: deque[str] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._insights)

    def append(self, insight: str) -> int:
        """Add an insight, and return how many old ones were removed. Raises SqlError with code `too_large`."""
        size = _measure(insight)
        if size > _MAX_BYTES // 10:
            raise SqlError("too_large", f"the insight has {size} bytes; the limit is {_MAX_BYTES // 10}")
        self._insights.append(insight)
        self._size += size
        removed = 0
        while len(self._insights) > _MAX_INSIGHTS or self._size > _MAX_BYTES:
            self._size -= _measure(self._insights.popleft())
            removed += 1
        return removed

    def memo(self) -> str:
        """Return all insights as a Markdown list."""
        if not self._insights:
            return "No insights yet. The tool append_insight adds them."
        return "\n".join("- " + "\n  ".join(insight.splitlines()) for insight in self._insights)


class Memos:
    """The memos of all principals in one replica of a server, by the key of the principal."""

    def __init__(self, has_replicas: Callable[[], bool] = lambda: False) -> None:
        self.has_replicas = has_replicas
        """Returns True if there are other replicas, which have their own memos."""
        self._by_owner: OrderedDict[str, Insights] = OrderedDict()

    def get_insights(self, owner: str) -> Insights:
        """Return one principal's insights."""
        insights = self._by_owner.setdefault(owner, Insights())
        self._by_owner.move_to_end(owner)
        if len(self._by_owner) > _MAX_MEMOS:
            self._by_owner.popitem(last=False)
        return insights


def _measure(insight: str) -> int:
    return len(insight.encode())
