"""What a statement may cost, how SQLite is told, and when it must end: its time is over, or nobody waits for it any
more.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job, Reached

_SQL_BYTES = 1_000_000
_EXPRESSION_DEPTH = 200
_LIKE_PATTERN = 1_000
"""Bytes of a pattern. Matching takes as long as its length times that of the text, and can't be stopped."""
_QUICK_VALUE, _QUICK_PATTERN = 16_384, 50
"""Bytes of a value and of a pattern where a statement holds up all others: the longest match takes a millisecond."""
_COLUMNS = 2_000
_COMPOUND_SELECT = 500
_VARIABLES = 32_766
_MEBIBYTE = 1 << 20
_PAUSE = 0.01
"""Seconds between two tries to get a lock."""

T = TypeVar("T")


class Limits(NamedTuple):
    """The operator's limits of one statement."""

    seconds: float = 30.0
    """Wall time."""
    busy_seconds: float = 5.0
    """Wait for a lock that another process holds."""
    value_bytes: int = 16_000_000
    """One value, also one that is on the way to another."""
    memory_mebibytes: int = 512
    """Memory that SQLite may hold, in the whole process: what it sorts and groups stays in memory."""


def impose_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    """Has SQLite keep the limits that it knows of itself (https://sqlite.org/limits.html)."""
    for category, limit in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SQL_BYTES),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, _EXPRESSION_DEPTH),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LIKE_PATTERN),
        (sqlite3.SQLITE_LIMIT_COLUMN, _COLUMNS),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, _COMPOUND_SELECT),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, _VARIABLES),
        # VACUUM attaches a file as well, so this ends both.
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(category, limit)
    # Of the whole process. The pragma lowers it and never raises it (https://sqlite.org/pragma.html).
    connection.execute(f"PRAGMA hard_heap_limit = {limits.memory_mebibytes * _MEBIBYTE}")


def impose_quick_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    """Has no single instruction take long, besides what `impose_limits` does."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_QUICK_VALUE, limits.value_bytes))
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _QUICK_PATTERN)


class Uninterruptible(Exception):
    """The work calls what can't be interrupted, so that it must be done where it can be killed. Nothing is done."""


class StatementDeadline:
    """The end of one piece of work: SQLite and the work itself ask whether it has come."""

    def __init__(self, seconds: float, busy_seconds: float, job: Job | None = None) -> None:
        now = time.monotonic()
        self._job = job
        self.seconds = seconds
        self._end = self._until = now + seconds
        self._busy_end = now + min(busy_seconds, seconds)
        self._lock = threading.Lock()
        self._abandoned = False
        self._ended = False
        self.is_committing = False
        """Whether nobody knows at the moment if the changes will be there."""
        self.where = ""
        """Which of several statements or rows the work is at, for the words of an error."""

    def __call__(self) -> bool:
        """Whether to stop."""
        return self._abandoned or time.monotonic() > self._until

    @contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """Ends a block of statements after `seconds`, where it has not come to its end, without an error."""
        self._until = min(self._end, time.monotonic() + seconds)
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_INTERRUPT":
                raise
            # Where it was the end of all the time, and not of the block, it is an error.
            self._until = self._end
            self.check()
        finally:
            self._until = self._end

    def tell(self, done: int, total: int | None, words: str) -> None:
        """Says how far the work is, to whoever wants to know."""
        if self._job is not None:
            self._job.reached = Reached(done, total, words)

    def check(self) -> None:
        """Raises SqlError `timeout` or `cancelled` where it is time to stop."""
        if self():
            raise self.reason()

    def reason(self) -> SqlError:
        """Why it stopped."""
        if self.is_committing:
            reason = "the time was over while the changes were being committed, so they may be there or not"
            return SqlError("timeout", reason, "Look whether they are there.")
        if time.monotonic() <= self._end:
            return SqlError("cancelled", "the call was cancelled")
        return SqlError(
            "timeout",
            f"stopped after {self.seconds:g} seconds",
            "Ask for less: add a condition or LIMIT, and look with explain_query whether an index is used.",
        )

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Within the block nobody knows whether the changes will be there. Raises like `check` before it."""
        self.check()
        self.is_committing = True
        try:
            yield
        finally:
            self.is_committing = False

    def pause(self) -> bool:
        """Waits a moment for a lock; whether to try again."""
        if self() or time.monotonic() > self._busy_end:
            return False
        time.sleep(_PAUSE)
        return True

    def abandon(self) -> bool:
        """Has the work stop, because nobody waits for it; whether it goes on until it notices."""
        with self._lock:
            self._abandoned = True
            return not self._ended

    def end(self) -> bool:
        """Says that the work has ended; whether it was abandoned meanwhile."""
        with self._lock:
            self._ended = True
            return self._abandoned


def retry_locked(deadline: StatementDeadline, act: Callable[[], T]) -> T:
    """Does `act` again while it fails because of a lock, as long as the `StatementDeadline` allows."""
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            if not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or not deadline.pause():
                raise
