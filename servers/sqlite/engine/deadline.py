"""Limits the size of statements and values, and the time that work may take.

Work stops at its deadline, or when its caller is cancelled.
"""

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
"""Maximum depth of an expression tree; SQLite's default is 1,000."""
_MAX_PATTERN_BYTES = 1_000
"""Maximum size of a pattern in bytes. Matching takes time proportional to the length of the pattern times the length
of the text, and can't be stopped."""
_MAX_QUICK_VALUE_BYTES, _MAX_QUICK_PATTERN_BYTES = 16_384, 50
"""Maximum size in bytes of a value and of a pattern in a statement that the event loop itself runs. With these, even
the slowest match takes only a millisecond."""
_MAX_COLUMNS = 2_000
"""Maximum number of columns of a table or a result, as SQLite's default."""
_MAX_COMPOUND_SELECT = 500
"""Maximum number of SELECTs joined by UNION and the like, as SQLite's default."""
_MAX_VARIABLES = 32_766
"""Maximum number of parameters, as SQLite's default."""
_MEBIBYTE = 1 << 20
_PAUSE_SECONDS = 0.01
"""Seconds between attempts to get a lock."""

T = TypeVar("T")


class Limits(NamedTuple):
    """The operator's limits of one statement."""

    timeout: float = 30.0
    """Maximum number of seconds that a statement may take."""
    busy_timeout: float = 5.0
    """Maximum number of seconds to wait for a lock that another process holds."""
    value_bytes: int = 16_000_000
    """Maximum size of one value in bytes, including intermediate values."""
    memory_mebibytes: int = 512
    """Maximum memory that SQLite may use in the whole process, in mebibytes. It sorts and groups in memory."""


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
    # This limit is for the whole process. The pragma can lower it but not raise it (https://sqlite.org/pragma.html).
    connection.execute(f"PRAGMA hard_heap_limit = {limits.memory_mebibytes * _MEBIBYTE}")


def impose_quick_limits(connection: sqlite3.Connection, limits: Limits) -> None:
    """Set lower limits than `impose_limits`, which must be called before, so that no single instruction takes
    long."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_MAX_QUICK_VALUE_BYTES, limits.value_bytes))
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_QUICK_PATTERN_BYTES)


class Uninterruptible(Exception):
    """Raised before a statement that can't be interrupted is run. A process that can be killed must do its work."""


class StatementDeadline(WorkDeadline):
    """The deadline of a piece of work. SQLite checks it during statements, the work itself between them."""

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
        """Stop the statements in the block after `timeout` seconds, and then leave the block without an error."""
        self._stop_time = min(self._end, time.monotonic() + timeout)
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_INTERRUPT":
                raise
            # If the whole deadline has passed, and not only the timeout of the block, this raises an error.
            self._stop_time = self._end
            self.check()
        finally:
            self._stop_time = self._end

    def check(self) -> None:
        """Raise SqlError with code `timeout` or `cancelled` if it is time to stop."""
        if self():
            raise self.error()

    def error(self) -> SqlError:
        """Return the error that says why the work must stop, with code `timeout` or `cancelled`."""
        if not self.is_committing and time.monotonic() <= self._end:
            return SqlError("cancelled", "the call was cancelled")
        return self._timeout()

    def pause(self) -> bool:
        """Wait a moment before the next attempt to get a lock. Return False, without waiting, if there is no time
        left for another attempt."""
        if self() or time.monotonic() > self._busy_end:
            return False
        time.sleep(_PAUSE_SECONDS)
        return True

    def abandon(self) -> bool:
        """Record that the caller no longer waits, so that the work stops. Return True if it has not ended yet."""
        with self._lock:
            self._abandoned = True
            return not self._ended

    def end(self) -> bool:
        """Record that the work has ended. Return True if it was abandoned before."""
        with self._lock:
            self._ended = True
            return self._abandoned


def retry_locked(deadline: StatementDeadline, operation: Callable[[], T]) -> T:
    """Return the result of `operation`. While it fails because of a lock, retry it as long as the `deadline`
    allows."""
    while True:
        try:
            return operation()
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            if not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or not deadline.pause():
                raise
