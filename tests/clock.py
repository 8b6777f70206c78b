"""Clocks that tests set, also that of the event loop: long waits take no time, and no machine is too slow
for it."""

import asyncio


def forward(seconds: float) -> None:
    """Sets the clock of the running loop ahead: timers within that time are due at once.

    It affects all timers of this loop: a timeout around it must be longer than `seconds`."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


class Clock:
    """A constant time in seconds that tests can set."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
