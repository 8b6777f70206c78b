"""How long sites take: of a page's time what is left without that which it waits for here."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class Stopwatch:
    """Counts the seconds in which it runs, by the clock of the event loop."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts the time of the block, however it ends."""
        begun = anyio.current_time()
        try:
            yield
        finally:
            self.seconds += anyio.current_time() - begun

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves the time of the block out, within one that counts."""
        begun = anyio.current_time()
        try:
            yield
        finally:
            self.seconds -= anyio.current_time() - begun
