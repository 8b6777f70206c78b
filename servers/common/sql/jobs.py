"""Limits the time of work in a database, and reports its progress."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from .errors import SqlError


class JobProgress(NamedTuple):
    """The progress of a job, as in a progress notification."""

    done: int
    """How much work is done, for example in bytes or rows."""
    total: int | None
    """The final value of `done`; None if it is unknown."""
    message: str


class Job:
    """The time limit and the progress of a call, which may take longer than a statement. One thread sets the progress
    while others read it."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        """Time limit in seconds."""
        self.progress: JobProgress | None = None


class Progress(Protocol):
    """Receives the progress of a piece of work, and can stop it."""

    def check(self) -> None:
        """Raise SqlError if it is time to stop."""

    def report(self, done: int, total: int | None, message: str) -> None:
        """Report the progress."""


class WorkDeadline(ABC):
    """The deadline of a piece of work, which may consist of several statements. The time is that of its `job` if it
    has one, or else `timeout` seconds."""

    def __init__(self, timeout: float, job: Job | None = None) -> None:
        self.timeout = timeout if job is None else job.timeout
        self._end = time.monotonic() + self.timeout
        self._job = job
        self.is_committing = False
        """True while the changes are being committed, so that after a timeout it is unknown whether they were."""
        self.position = ""
        """The current statement or row, for the text of an error; empty if there is only one statement."""

    @abstractmethod
    def check(self) -> None:
        """Raise SqlError if it is time to stop."""

    def report(self, done: int, total: int | None, message: str) -> None:
        """Report the progress of the work to its job."""
        if self._job is not None:
            self._job.progress = JobProgress(done, total, message)

    @contextmanager
    def mark_committing(self) -> Iterator[None]:
        """Set `is_committing` during the block. Before it, raise SqlError if it is time to stop."""
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
            f"stopped after {self.timeout:g} seconds",
            "Request less: add a condition or LIMIT, and check with explain_query whether an index is used.",
        )
