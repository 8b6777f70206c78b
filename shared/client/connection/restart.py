"""The pauses before a lost server is restarted."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from ...contracts import ClosableTransport

Start = Callable[[], AbstractAsyncContextManager[ClosableTransport]]
"""Starts a server, which ends with the block, and yields a transport to it."""

FIRST_SECONDS = 0.5
"""Seconds between the first start and the second if the server was lost soon; this pause doubles each time."""
MAX_PAUSE_SECONDS = 30.0
"""The longest pause in seconds: a server that can't run is started at most twice a minute, and a repaired server is
available soon."""
MAX_COSTLY_PAUSE_SECONDS = 5.0
"""The longest pause in seconds while callers wait for a server whose start is costly."""
STABLE_SECONDS = 60.0
"""Seconds after which a running server counts as stable."""


class Pauses:
    """The pauses between the starts of one server. A server that was stable is started again at once."""

    def __init__(self) -> None:
        self._last_start = float("-inf")
        self._pause = 0.0

    def remaining(self, now: float) -> float:
        """Return the remaining seconds, at the time `now`, before the server may be started."""
        return max(0.0, self._last_start + self._pause - now)

    def min_remaining(self, now: float, *, is_costly: bool) -> float:
        """Return the seconds, at the time `now`, before the server may be started for a caller that needs it now. The
        pause is longer if the start `is_costly`, as for a process that always ends at once."""
        max_pause = MAX_COSTLY_PAUSE_SECONDS if is_costly else FIRST_SECONDS
        return max(0.0, self._last_start + min(self._pause, max_pause) - now)

    def record_start(self, now: float) -> None:
        """Record a start at the time `now`, and double the next pause; if the server was stable, the next pause is
        the first one again."""
        was_stable = now - self._last_start >= STABLE_SECONDS
        self._pause = FIRST_SECONDS if was_stable else min(MAX_PAUSE_SECONDS, 2 * self._pause)
        self._last_start = now
