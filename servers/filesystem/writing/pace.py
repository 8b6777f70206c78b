"""Work that holds the interpreter, in steps with pauses: whoever does something short has his turn in between.

To search a text of megabytes takes milliseconds in which no other thread runs Python. A thread that lists a directory
needs the interpreter back after each call of the system: beside a few that search, it would wait that long for each.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["step"]

_FROM = 0.001
"""Seconds from which on a step is followed by a pause."""
_SHARE = 0.25
"""Of the time of the step."""

_working = threading.Lock()


@contextmanager
def step() -> Iterator[None]:
    """One step, which only one thread at a time makes; in the pause after it none does."""
    with _working:
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        if took > _FROM:
            time.sleep(took * _SHARE)
