"""The limits of a statement, and its deadline."""

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
    """Time to wait for a lock that another session holds."""
    value_bytes: int = 16_000_000
    """Maximum size of one row received from the database, and of all rows of one result together."""


class Deadline:
    """The deadline of one piece of work, which may have several statements: the time limit of a statement, or of its
    job."""

    def __init__(self, seconds: float, job: Job | None = None) -> None:
        self.seconds = seconds if job is None else job.seconds
        self._end = time.monotonic() + self.seconds
        self._job = job
        self._is_committing = False
        self.where = ""
        """The statement or row that the work has reached, for the text of an error."""

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(self._end - time.monotonic(), 0)

    def report(self, done: int, total: int | None, words: str) -> None:
        """Report the progress of the work to its job."""
        if self._job is not None:
            self._job.reached = Reached(done, total, words)

    def check(self) -> None:
        """Raise SqlError with code `timeout` after the deadline."""
        if self.left == 0:
            raise self.reason()

    def reason(self, *, is_heard: bool = True) -> SqlError:
        """Return the error for a missed deadline; unless `is_heard`, the database does not respond at all."""
        if self._is_committing:
            reason = "the time ran out while the changes were being committed, so they may or may not have been made"
            return SqlError("timeout", reason, "Check whether they were made.")
        if not is_heard:
            reason = f"the database did not answer within {self.seconds:.3g} seconds"
            suggestion = "Try again later: it is unreachable or overloaded, or its pooler has no free connection."
            return SqlError("unavailable", reason, suggestion)
        return SqlError(
            "timeout",
            f"stopped after {self.seconds:g} seconds",
            "Ask for less: add a condition or LIMIT, and check with explain_query whether an index is used.",
        ).at(self.where)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Mark the block as one during which it is unknown whether the changes will be committed. Before the block,
        raises like `check`."""
        self.check()
        self._is_committing = True
        try:
            yield
        finally:
            self._is_committing = False
