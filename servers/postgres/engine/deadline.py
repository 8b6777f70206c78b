"""What a statement may cost, and when it must end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job, Reached


class Limits(NamedTuple):
    """The operator's limits of one statement."""

    seconds: float = 30.0
    """Wall time."""
    busy_seconds: float = 5.0
    """Wait for a lock that another session holds."""
    value_bytes: int = 16_000_000
    """One row on its way from the database, and the rows of one result together."""


class Deadline:
    """The end of one piece of work, perhaps of several statements: it has the time of a statement, or of its job."""

    def __init__(self, seconds: float, job: Job | None = None) -> None:
        self.seconds = seconds if job is None else job.seconds
        self._end = time.monotonic() + self.seconds
        self._job = job
        self._is_committing = False
        self.where = ""
        """Which of several statements or rows the work is at, for the words of an error."""

    @property
    def left(self) -> float:
        """Seconds until the end; 0 after it."""
        return max(self._end - time.monotonic(), 0)

    def tell(self, done: int, total: int | None, words: str) -> None:
        """Says how far the work is, to whoever wants to know."""
        if self._job is not None:
            self._job.reached = Reached(done, total, words)

    def check(self) -> None:
        """Raises SqlError `timeout` where the time is over."""
        if self.left == 0:
            raise self.reason()

    def reason(self, *, is_heard: bool = True) -> SqlError:
        """What to say where the time is over; unless the database `is_heard`, it answers nothing at all."""
        if self._is_committing:
            reason = "the time was over while the changes were being committed, so they may be there or not"
            return SqlError("timeout", reason, "Look whether they are there.")
        if not is_heard:
            reason = f"the database did not answer within {self.seconds:.3g} seconds"
            suggestion = "Try again later: it is out of reach or overloaded, or its pooler has no connection left."
            return SqlError("unavailable", reason, suggestion)
        return SqlError(
            "timeout",
            f"stopped after {self.seconds:g} seconds",
            "Ask for less: add a condition or LIMIT, and look with explain_query whether an index is used.",
        ).at(self.where)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Within the block nobody knows whether the changes will be there. Raises like `check` before it."""
        self.check()
        self._is_committing = True
        try:
            yield
        finally:
            self._is_committing = False
