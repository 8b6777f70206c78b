"""What a long search and the one who waits for it know of each other, across threads."""

import threading
import time
from collections.abc import Callable
from math import inf


class Control:
    """How far a search has come, and when it is to end. One thread searches, others look and cancel."""

    def __init__(self, seconds: float = inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = clock() + seconds
        self._cancelled = threading.Event()
        self.seen = 0
        """Entries looked at so far."""

    def cancel(self) -> None:
        """Ends the search at its next step."""
        self._cancelled.set()

    def ended(self) -> str | None:
        """Why the search must end: `cancelled` or `time`; None while it may go on."""
        if self._cancelled.is_set():
            return "cancelled"
        return "time" if self._clock() > self._deadline else None
