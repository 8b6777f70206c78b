"""What expires unless somebody is done with it before: calls, idle sessions, streams that nobody reads.

Whatever is in one queue has the same number of seconds, so what was started first expires first, and one timer does
for all of it: it is set for the first, and goes off when that should be over. A timer of its own would take a small
call a tenth of its time; 10,000 idle sessions are 10,000 entries of a dict, and no timers of the event loop.
"""

import asyncio
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Any

__all__ = ["ExpiryQueue"]

AT_ONCE = 100
"""How many expire before the event loop turns: all those of a burst expire together."""


class ExpiryQueue(dict[Any, float]):
    """Keys in the order in which they expire, each with the time, on the clock of the event loop. Where a function
    call more is too dear, an entry is made and taken out as that of any dict: whoever makes one has its time come
    last, and arms the timer where there is none."""

    def __init__(self, seconds: float, action: Callable[[Any], object]) -> None:
        """`action` is called with each key that expires."""
        super().__init__()
        self.seconds = seconds
        self.timer: asyncio.TimerHandle | None = None
        self._action = action

    def start(self, key: object) -> None:
        """Gives `key` all its seconds, from now on."""
        self.pop(key, None)
        self[key] = asyncio.get_running_loop().time() + self.seconds
        if self.timer is None:
            self.arm()

    def stop(self, key: object) -> None:
        """Stops the clock of `key`, if it has one."""
        self.pop(key, None)

    def waited(self, key: object) -> float:
        """For how many seconds the clock of `key` has been running; 0 where it has none."""
        at = self.get(key)
        return 0.0 if at is None else asyncio.get_running_loop().time() - at + self.seconds

    def arm(self) -> None:
        """Sets the timer for the first of them."""
        loop = asyncio.get_running_loop()
        at = next(iter(self.values()), None)
        self.timer = None if at is None else loop.call_at(at, self._look, loop)

    def close(self) -> None:
        """Takes the timer away."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        over = takewhile(lambda item: item[1] <= now, self.items())
        for key, _ in list(islice(over, AT_ONCE)):
            if self.pop(key, None) is not None:  # what expired just now may have stopped others
                self._action(key)
        self.arm()
