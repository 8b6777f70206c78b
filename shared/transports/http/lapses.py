"""What lapses when nobody has asked for it for a while: sessions, and streams that nobody reads.

All wait the same number of seconds, so whatever was started first lapses first, and one timer does for all of them:
10,000 idle sessions are 10,000 entries of a dict, and no timers of the event loop.
"""

import asyncio
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Any, TypeVar

__all__ = ["Lapses"]

Key = TypeVar("Key")

AT_ONCE = 100
"""How many lapse before the event loop turns: all those of a burst lapse together."""


class Lapses:
    """Keys, each with what is done when its time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[Any, tuple[float, Callable[[Any], object]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def start(self, key: Key, action: Callable[[Key], object]) -> None:
        """Gives `key` all its seconds, from now on; then `action` is called with it."""
        loop = asyncio.get_running_loop()
        at = loop.time() + self._seconds
        self._due.pop(key, None)
        self._due[key] = (at, action)
        if self._timer is None:
            self._timer = loop.call_at(at, self._look, loop)

    def stop(self, key: object) -> None:
        """Stops the clock of `key`, if it has one."""
        self._due.pop(key, None)

    def waited(self, key: object) -> float:
        """For how many seconds the clock of `key` has been running; 0 where it has none."""
        due = self._due.get(key)
        return 0.0 if due is None else asyncio.get_running_loop().time() - due[0] + self._seconds

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        over = takewhile(lambda item: item[1][0] <= now, self._due.items())
        for key, (_, action) in list(islice(over, AT_ONCE)):
            if self._due.pop(key, None) is not None:  # what lapsed just now may have stopped others
                action(key)
        at = next((at for at, _ in self._due.values()), None)
        self._timer = None if at is None else loop.call_at(at, self._look, loop)
