"""What clients have found out and want to keep for as long as the server runs."""

from collections import deque

from servers.sqlite.errors import SqliteError

__all__ = ["Insights"]

_MOST = 1_000
_BYTES = 200_000


class Insights:
    """Insights in the order in which they came. The oldest go when there are too many."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def append(self, insight: str) -> int:
        """Keeps it; how many old ones went. Raises SqliteError `too_large`."""
        size = _size(insight)
        if size > _BYTES // 10:
            raise SqliteError("too_large", f"the insight has {size} bytes; the limit is {_BYTES // 10}")
        self._kept.append(insight)
        self._size += size
        gone = 0
        while len(self._kept) > _MOST or self._size > _BYTES:
            self._size -= _size(self._kept.popleft())
            gone += 1
        return gone

    def memo(self) -> str:
        """All of them, as a list in Markdown."""
        if not self._kept:
            return "No insights yet. The tool append_insight adds them."
        return "\n".join("- " + "\n  ".join(one.splitlines()) for one in self._kept)


def _size(insight: str) -> int:
    return len(insight.encode())
