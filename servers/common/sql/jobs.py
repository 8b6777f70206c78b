"""Long-running work: its time limit, its deadline and its progress."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from servers.common.sql.errors import SqlError


class JobProgress(NamedTuple):
    """The progress of a job."""

    done: int
    total: int | None
    """The final value of `done`; None if it is unknown."""
    words: str


class Job:
    """Work that may take longer than a single statement. The worker sets its progress, and others read it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """Time limit."""
        self.reached: JobProgress | None = None


class Progress(Protocol):
    """Receives the progress of a piece of work, and can stop it."""

    def check(self) -> None:
        """Raise SqlError if it is time to stop."""

    def report(self, done: int, total: int | None, words: str) -> None:
        """Report the progress."""


class WorkDeadline(ABC):
    """The deadline of one piece of work, which may have several statements: the time limit of a statement, or of its
    job."""

    def __init__(self, seconds: float, job: Job | None = None) -> None:
        self.seconds = seconds if job is None else job.seconds
        self._end = time.monotonic() + self.seconds
        self._job = job
        self.is_committing = False
        """True while it is unknown whether the changes will be committed."""
        self.where = ""
        """The statement or row that the work has reached, for the text of an error."""

    @abstractmethod
    def check(self) -> None:
        """Raise SqlError if it is time to stop."""

    def report(self, done: int, total: int | None, words: str) -> None:
        """Report the progress of the work to its job."""
        if self._job is not None:
            self._job.reached = JobProgress(done, total, words)

    @contextmanager
    def mark_committing(self) -> Iterator[None]:
        """Mark the block as one during which it is unknown whether the changes will be committed. Before the block,
        raises like `check`."""
        self.check()
        self.is_committing = True
        try:
            yield
        finally:
            self.is_committing = False

    def _timeout(self) -> SqlError:
        if self.is_committing:
            reason = "the time ran out while the changes were being committed, so they may or may not have been made"
            return SqlError("timeout", reason, "Check whether they were made.")
        return SqlError(
            "timeout",
            f"stopped after {self.seconds:g} seconds",
            "Request less: add a condition or LIMIT, and check with explain_query whether an index is used.",
        )
