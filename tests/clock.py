"""Clocks that are set by hand, also that of the event loop: what takes long takes no time, and no machine is too slow
for it."""

import asyncio


def forward(seconds: float) -> None:
    """Sets the clock of the running loop ahead: what would have been due by then is due at once.

    It holds for all that waits in this loop: a bound around it has to be wider than what it goes forward by."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


class Clock:
    """The time in seconds, until it is set."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
