"""The limits of a statement, including those that SQLite enforces, and the deadline of work, which stops then or when
its caller is cancelled."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job, WorkDeadline

_SQL_BYTES = 1_000_000
"""Maximum size of a statement in bytes."""
_MAX_EXPRESSION_DEPTH = 200
"""Maximum depth of an expression tree; SQLite's own limit is 1,000."""
_MAX_PATTERN_BYTES = 1_000
"""Maximum size of a pattern in bytes. Matching takes time proportional to the length of the pattern times the length
of the text, and can't be stopped."""
_MAX_QUICK_VALUE_BYTES, _MAX_QUICK_PATTERN_BYTES = 16_384, 50
"""Maximum size in bytes of a value and of a pattern in a statement that the event loop itself runs. Even the longest
match then takes only a millisecond."""
_MAX_COLUMNS = 2_000
"""Maximum number of columns of a table or a result, which is SQLite's own limit."""
_MAX_COMPOUND_SELECT = 500
"""Maximum number of SELECTs joined by UNION and the like, which is SQLite's own limit."""
_MAX_VARIABLES = 32_766
"""Maximum number of parameters, which is SQLite's own limit."""
_MEBIBYTE = 1 << 20
_PAUSE_SECONDS = 0.01
"""Seconds between attempts to get a lock."""

T = TypeVar("T")


class Limits(NamedTuple):
    """The operator's limits of one statement."""

    timeout: float = 30.0
    """Maximum number of seconds that it may take."""
    busy_timeout: float = 5.0
    """Maximum number of seconds to wait for a lock that another process holds."""
    value_bytes: int = 16_000_000
    """Maximum size of one value, including intermediate ones."""
    memory_mebibytes: int = 512
    """Maximum memory that SQLite may use in the whole process. Sorting and grouping are done in memory."""


def impose_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    """Set the limits that SQLite enforces itself (https://sqlite.org/limits.html)."""
    for category, limit in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SQL_BYTES),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, _MAX_EXPRESSION_DEPTH),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_PATTERN_BYTES),
        (sqlite3.SQLITE_LIMIT_COLUMN, _MAX_COLUMNS),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, _MAX_COMPOUND_SELECT),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, _MAX_VARIABLES),
        # VACUUM also attaches a file, so this prevents both.
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(category, limit)
    # This limit is for the whole process. The pragma lowers it and never raises it (https://sqlite.org/pragma.html).
    connection.execute(f"PRAGMA hard_heap_limit = {limits.memory_mebibytes * _MEBIBYTE}")


def impose_quick_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    """Set tighter limits after `impose_limits`, so that no single instruction takes long."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_MAX_QUICK_VALUE_BYTES, limits.value_bytes))
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_QUICK_PATTERN_BYTES)


class Uninterruptible(Exception):
    """Raised for work that can't be interrupted, before any of it is done: it needs a process that can be killed."""


class StatementDeadline(WorkDeadline):
    """The deadline of a piece of work, which both SQLite and the work itself check."""

    def __init__(self, timeout: float, busy_timeout: float, job: Job | None = None) -> None:
        super().__init__(timeout, job)
        self._stop_time = self._end
        self._busy_end = min(self._end, time.monotonic() + busy_timeout)
        self._lock = threading.Lock()
        self._abandoned = False
        self._ended = False

    def __call__(self) -> bool:
        """Return True if the work must stop."""
        return self._abandoned or time.monotonic() > self._stop_time

    @contextmanager
    def at_most(self, timeout: float) -> Iterator[None]:
        """End the block after `timeout` seconds at the latest, without an error even if its statements have not
        completed."""
        self._stop_time = min(self._end, time.monotonic() + timeout)
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_INTERRUPT":
                raise
            # Raises if not only the timeout of the block has passed, but the deadline.
            self._stop_time = self._end
            self.check()
        finally:
            self._stop_time = self._end

    def check(self) -> None:
        """Raise SqlError with code `timeout` or `cancelled` if it is time to stop."""
        if self():
            raise self.reason()

    def reason(self) -> SqlError:
        """Return the error with the reason why the work stops."""
        if not self.is_committing and time.monotonic() <= self._end:
            return SqlError("cancelled", "the call was cancelled")
        return self._timeout()

    def pause(self) -> bool:
        """Wait a moment for a lock. Return False if the work must no longer wait for it."""
        if self() or time.monotonic() > self._busy_end:
            return False
        time.sleep(_PAUSE_SECONDS)
        return True

    def abandon(self) -> bool:
        """Stop the work, because its caller no longer waits for it. Return True if it has not ended yet."""
        with self._lock:
            self._abandoned = True
            return not self._ended

    def end(self) -> bool:
        """Record that the work has ended. Return True if it was abandoned before."""
        with self._lock:
            self._ended = True
            return self._abandoned


def retry_locked(deadline: StatementDeadline, operation: Callable[[], T]) -> T:
    """Return the result of `operation`, which is retried until the `deadline` while it fails because of a lock."""
    while True:
        try:
            return operation()
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            if not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or not deadline.pause():
                raise
