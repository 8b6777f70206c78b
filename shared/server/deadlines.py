"""When the calls of a server have to end.

A timer of its own would take a small call a tenth of its time. All calls get the same number of seconds, so whoever
began first has to end first, and one timer does for all: it is set for the oldest call, and goes off when that should
have ended. So under load it goes off once in that time, and while nothing is called there is none.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import CancelScope

__all__ = ["Deadlines"]


class Deadlines(dict[CancelScope, float]):
    """The scopes of calls under way, in the order they began, and when each is cancelled on the clock of the event
    loop. Whoever adds one sees to it that the timer is armed, and takes it out at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.timer: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        """Sets the timer for the first of them."""
        loop = asyncio.get_running_loop()
        self.timer = loop.call_at(next(iter(self.values())), self._look, loop) if self else None

    @contextmanager
    def paused(self, scope: CancelScope | None) -> Iterator[None]:
        """Stops the clock of one call meanwhile. It goes on by a timer of its own: it is not the last to end any
        more."""
        if scope is None:
            yield
            return
        loop = asyncio.get_running_loop()
        left = self.pop(scope, scope.deadline) - loop.time()
        scope.deadline = math.inf
        try:
            yield
        finally:
            # Where the clock stood already, whoever stopped it sets it going again.
            if left < math.inf:
                scope.deadline = loop.time() + left

    def close(self) -> None:
        """Takes the timer away."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for scope in [scope for scope, at in self.items() if at <= now]:
            del self[scope]
            scope.cancel()
        self.arm()
