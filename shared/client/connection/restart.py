"""How long to wait before a server that was lost is started again."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from ...contracts import ClosableTransport

Start = Callable[[], AbstractAsyncContextManager[ClosableTransport]]
"""Starts a server, which ends with the block; what is given speaks to it."""

FIRST_SECONDS = 0.5
"""Between two starts, where the second server was lost soon after the first; it doubles with each one."""
LONGEST_SECONDS = 30.0
"""A server that can't live costs no more than two starts a minute, and one that was mended is not waited for long."""
STEADY_SECONDS = 60.0
"""Who has lived so long is no longer one that can't."""


class Pauses:
    """The pauses between the starts of one server. The first start after a long life needs none."""

    def __init__(self) -> None:
        self._last_start = float("-inf")
        self._pause = 0.0

    def left(self, now: float) -> float:
        """The seconds to wait, at the time `now`, before the server is started."""
        return max(0.0, self._last_start + self._pause - now)

    def shortest_left(self, now: float) -> float:
        """The seconds of those that are waited in any case, also where somebody asks for the server."""
        return max(0.0, self._last_start + min(self._pause, FIRST_SECONDS) - now)

    def started(self, now: float) -> None:
        """Has the next pause grow, as the server is started at the time `now`; after a long life it is the first."""
        is_steady = now - self._last_start >= STEADY_SECONDS
        self._pause = FIRST_SECONDS if is_steady else min(LONGEST_SECONDS, 2 * self._pause)
        self._last_start = now
