"""The pauses before a lost server is restarted."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from ...contracts import ClosableTransport

Start = Callable[[], AbstractAsyncContextManager[ClosableTransport]]
"""Starts a server, which ends with the block, and yields a transport to it."""

FIRST_SECONDS = 0.5
"""Seconds between two starts if the server was lost soon after the first; they double each time."""
MAX_PAUSE_SECONDS = 30.0
"""The longest pause: a server that can't run causes at most two starts a minute, and a repaired server is available
soon."""
MAX_COSTLY_PAUSE_SECONDS = 5.0
"""The longest pause while callers wait for a server whose start is costly."""
STEADY_SECONDS = 60.0
"""Seconds of life after which a server is considered steady."""


class Pauses:
    """The pauses between the starts of one server. After a long life, the next start is immediate."""

    def __init__(self) -> None:
        self._last_start = float("-inf")
        self._pause = 0.0

    def remaining(self, now: float) -> float:
        """Return the remaining seconds, at the time `now`, before the server may be started."""
        return max(0.0, self._last_start + self._pause - now)

    def min_remaining(self, now: float, *, is_costly: bool) -> float:
        """Return the seconds that even a caller that needs the server must wait: more for a start that `is_costly`,
        such as that of a process that ends at once each time."""
        max_pause = MAX_COSTLY_PAUSE_SECONDS if is_costly else FIRST_SECONDS
        return max(0.0, self._last_start + min(self._pause, max_pause) - now)

    def record_start(self, now: float) -> None:
        """Record a start at the time `now`, and lengthen the next pause; after a long life, the pause is reset to the
        first."""
        is_steady = now - self._last_start >= STEADY_SECONDS
        self._pause = FIRST_SECONDS if is_steady else min(MAX_PAUSE_SECONDS, 2 * self._pause)
        self._last_start = now
