"""The end of a token: what stays open for long ends with the token that opened it, unless a newer one came since.

A call that is under way is finished: it was allowed when it began, and lasts no longer than calls may.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ....protocol.identity import Principal

LOOK_SECONDS = 3_600.0
"""How long the clock of the event loop is trusted, which may stand still while the machine sleeps."""
REVOKED_SECONDS = 5.0
"""Between two looks whether a token was taken back."""


@contextmanager
def ending_with_token(
    opened: Principal | None, newest: Callable[[], Principal | None], end: Callable[[], None]
) -> Iterator[None]:
    """For the time of a stream, which `opened` has opened: calls `end` when neither that token nor the newest of the
    same principal is valid any more."""
    if opened is None or (opened.expires is None and opened.is_revoked is None):
        yield
        return
    watch = _Watch(opened, newest, end)
    watch.look()
    try:
        yield
    finally:
        watch.stop()


class _Watch:
    def __init__(self, opened: Principal, newest: Callable[[], Principal | None], end: Callable[[], None]) -> None:
        self._opened = opened
        self._newest = newest
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Ends it, or looks again later."""
        newest = self._newest()
        left = max(_seconds_left(self._opened), 0.0 if newest is None else _seconds_left(newest))
        if left <= 0:
            self._end()
        else:
            pause = REVOKED_SECONDS if self._opened.is_revoked is not None else LOOK_SECONDS
            self._timer = asyncio.get_running_loop().call_later(min(left, pause), self.look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _seconds_left(token: Principal) -> float:
    if token.is_revoked is not None and token.is_revoked():
        return 0.0
    return math.inf if token.expires is None else token.expires - time.time()
