"""Runs quick read-only statements in the event loop itself, because passing a row between threads takes longer than
reading it.

A statement is learned, that is, run in this way from then on, if the thread of a reader has answered it quickly and
compiled it in less than a millisecond. It runs under limits that let no instruction take long (`quick_policy.py`),
and is stopped after a millisecond. It never waits for a lock, and causes no error: if it can't be finished, for
whatever reason, a thread runs it from the beginning.

The schema may change between two reads. SQLite then compiles the statement again, and calls the policy. So if the
policy was not called, the schema is still the one for which the statement was compiled.
"""

import asyncio
import math
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from servers.common.sql.errors import SqlError

from ..errors import from_sqlite
from .deadline import Limits, StatementDeadline
from .entries import fetch_schema_rows
from .handle import Handle
from .opening import ConnectionOptions, GuardedConnection, OpenOptions

try:
    import resource
except ModuleNotFoundError:  # as on Windows
    _getrusage = _THREAD = None
else:
    _getrusage, _THREAD = getattr(resource, "getrusage", None), getattr(resource, "RUSAGE_THREAD", None)

_READ_SECONDS = 0.001
"""Maximum number of seconds for one read, and for compiling its statement."""
_MAX_THREAD_SECONDS = 0.1
"""A statement can be learned if a thread took at most this many seconds for it, including waits for other threads."""
_TURN_SECONDS = 0.05
"""Processor time, in seconds, after which no more reads are begun in one turn of the event loop. This is enough for
all requests that arrive together through a pipe."""
_CHECK_INSTRUCTIONS = 100
"""Number of instructions of SQLite's virtual machine between checks of the clock."""
_MAX_FAILURES = 3
"""A statement is left to threads after the event loop has failed to finish it this many times in a row."""
_MAX_KNOWN, _MAX_KNOWN_LENGTH = 100, 10_000
"""Maximum number of statements that are remembered, and maximum length of each in characters. The number is less than
that of the statements that a connection caches, so that remembered ones stay compiled."""
_MAX_SCHEMA = 100_000
"""Maximum number of characters of the SQL in the schema, since SQLite parses all of it after each change."""
_SLOW_SECONDS = 0.005
"""If a read takes more seconds than this, its statement is left to threads for a while."""
_LATE_SECONDS, _PAUSE_FACTOR = 0.05, 10
"""If a read takes more than `_LATE_SECONDS`, the disk or the machine is slow, or rows are large. All statements are
then left to threads for `_PAUSE_FACTOR` times as long as the read took."""
_MAX_DOUBLED = 10
"""Maximum number of times that this pause is doubled."""
_RELEARN_SECONDS, _MAX_DROPS = 5.0, 4
"""Seconds after which a statement that took too long may be learned again, since other processes may have caused the
delay, and the maximum number of times that this time is doubled."""
_REOPEN_SECONDS = 1.0
"""Seconds after which opening the file is tried again."""
_NO_LOCK = -1.0
"""Seconds to wait for a lock. A negative number means never to wait."""

T = TypeVar("T")

Work = Callable[[GuardedConnection, int], T]
"""A function that works with the connection, given the version of the schema."""
Parameters = Sequence[Any] | Mapping[str, Any]
RunInThread = Callable[[Callable[[GuardedConnection, StatementDeadline], bool]], Awaitable[bool]]
"""Runs work in the thread of a reader, on its connection. Raises SqlError."""


@dataclass(slots=True)
class _KnownStatement:
    """A statement that was learned, or that was too slow to be learned."""

    tries_left: int = 0
    """Number of further failures after which the statement is left to threads; 0 if it already is."""
    is_compiled: bool = False
    drops: int = 0
    """Number of times that the statement was left to threads because it took too long or failed."""
    relearn_time: float = math.inf
    """The time (`time.monotonic`) from which a statement without tries left may be learned again."""

    def drop(self) -> None:
        self.relearn_time = time.monotonic() + _RELEARN_SECONDS * 2 ** min(self.drops, _MAX_DROPS)
        self.tries_left = 0
        self.drops += 1

    def fail(self) -> None:
        if self.tries_left == 1:
            self.drop()
        else:
            self.tries_left -= 1


class QuickReader:
    """Runs quick statements of one database in one event loop."""

    def __init__(self, path: Path, limits: Limits, connection_options: ConnectionOptions) -> None:
        self._options = OpenOptions(
            path, "quick", limits._replace(busy_timeout=_NO_LOCK), connection_options=connection_options
        )
        self._max_seconds = min(_READ_SECONDS, limits.timeout)
        self._handle: Handle | None = None
        self._schema_version = 0
        self._known: OrderedDict[str, _KnownStatement] = OrderedDict()
        self._is_learning = False
        self._stop_time = self._paused_until = 0.0
        self._slow_reads = 0
        """Number of reads that took too long because of large rows. Each doubles the next pause, since the rows will
        probably still be large."""
        self._turn_began: float | None = None
        """Processor time that this thread had used before the first read in this turn of the event loop; None if
        there was none yet."""
        self._waits = 0
        """Number of times that this thread had waited (see `_count_waits`) before that read."""
        self._read_began = 0.0
        """Processor time that this thread had used before the last read."""

    def run(self, statement: str, work: Work[T | None], *, is_first: bool = True) -> T | None:
        """Return the result of `work`, which runs `statement`; None if a thread has to do it.

        It does not wait for locks, and errors of SQLite are not raised. `is_first` is False for a second attempt.
        """
        entry, handle, began = self._known.get(statement), self._handle, time.monotonic()
        if entry is None or not entry.tries_left or handle is None or began < self._paused_until:
            return None
        if not self._has_turn(handle):
            return None
        self._known.move_to_end(statement)
        self._stop_time = began + self._max_seconds
        result, is_temporary = None, False
        try:
            result = self._run(entry, handle.connection, work)
        except (sqlite3.Error, sqlite3.Warning, SqlError, MemoryError, OverflowError, UnicodeError) as error:
            # Some errors don't mean that the statement is not quick: the database is locked, or the parameters are
            # wrong.
            name = getattr(error, "sqlite_errorname", "")
            is_temporary = name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or isinstance(
                error, (sqlite3.ProgrammingError, OverflowError, UnicodeError)
            )
        duration = time.monotonic() - began
        if result is not None and duration <= _SLOW_SECONDS:
            entry.tries_left = _MAX_FAILURES
        elif (
            # The read took little processor time, and this thread did not wait for anything. So other processes used
            # the time, and another thread would not be faster.
            duration > _READ_SECONDS
            and _count_waits() == self._waits
            and time.thread_time() - self._read_began < _READ_SECONDS
        ):
            return self.run(statement, work, is_first=False) if result is None and is_first else result
        elif duration > _LATE_SECONDS:
            # To reach the column after a large value, a single instruction reads all pages of the value, so SQLite
            # could not be stopped.
            if self._turn_began is not None and time.thread_time() - self._turn_began > _LATE_SECONDS:
                entry.tries_left = 0
                self._slow_reads += 1
            else:
                entry.fail()
            self._paused_until = time.monotonic() + duration * _PAUSE_FACTOR * 2 ** min(
                self._slow_reads, _MAX_DOUBLED
            )
        elif duration > _SLOW_SECONDS:
            entry.drop()
        elif not is_temporary:
            entry.fail()
        return result

    def can_run(self, statement: str) -> bool:
        """Return True if the statement was learned, so that it is worth calling `run`."""
        entry = self._known.get(statement)
        return entry is not None and entry.tries_left > 0

    def should_learn(self, statement: str, duration: float) -> bool:
        """Return True if a statement that a thread has answered in `duration` seconds should be learned now."""
        if len(statement) > _MAX_KNOWN_LENGTH or self._options.connection_options.attached:
            return False
        entry = self._known.get(statement)
        if entry is not None and (entry.tries_left or time.monotonic() < entry.relearn_time):
            return False
        # Remember that it was slow: its next call may only be fast because the thread still has it compiled.
        if duration > _MAX_THREAD_SECONDS:
            self._remember(statement, 0).drop()
            return False
        return not self._is_learning and time.monotonic() >= self._paused_until

    async def learn(self, statement: str, parameters: Parameters, read: RunInThread) -> None:
        """Check in the thread of a reader, with `read`, whether the statement compiles quickly. If so, learn it:
        `run` can run it from now on."""
        self._is_learning = True
        try:
            is_quick = await read(partial(_compiles_quickly, statement, parameters))
            if is_quick and self._handle is None:
                handle = Handle(self._options)
                connection = handle.open()
                connection.set_progress_handler(lambda: time.monotonic() > self._stop_time, _CHECK_INSTRUCTIONS)
                try:
                    self._schema_version = _read_schema_version(connection)
                except sqlite3.Error as error:
                    connection.close()
                    raise from_sqlite(error) from None
                self._handle = handle
        except SqlError:
            self._paused_until = time.monotonic() + _REOPEN_SECONDS
            return
        finally:
            self._is_learning = False
        self._remember(statement, _MAX_FAILURES if is_quick else 0)

    def close(self) -> None:
        """Close the connection, if any, and forget all statements."""
        handle, self._handle = self._handle, None
        self._known.clear()
        if handle is not None:
            handle.connection.close()

    def _remember(self, statement: str, tries_left: int) -> _KnownStatement:
        known = self._known.get(statement)
        entry = self._known[statement] = _KnownStatement(tries_left, drops=0 if known is None else known.drops)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return entry

    def _run(self, entry: _KnownStatement, connection: GuardedConnection, work: Work[T | None]) -> T | None:
        if not entry.is_compiled and _read_schema_version(connection) != self._schema_version:
            self.close()
            return None
        connection.policy.reset()
        result = work(connection, self._schema_version)
        # If SQLite has just compiled the statement, it may have seen a newer schema.
        if connection.policy.action_count and _read_schema_version(connection) != self._schema_version:
            self.close()
            return None
        entry.is_compiled = True
        return result

    def _has_turn(self, handle: Handle) -> bool:
        """Return True if the event loop may do one more read in its current turn."""
        self._read_began = time.thread_time()
        if self._turn_began is not None:
            return self._read_began - self._turn_began < _TURN_SECONDS
        # Before the first read in a turn, check whether the file was replaced, and begin to measure the time.
        if handle.is_replaced:
            self.close()
            return False
        asyncio.get_running_loop().call_soon(self._end_turn)
        self._turn_began, self._waits = self._read_began, _count_waits()
        return True

    def _end_turn(self) -> None:
        self._turn_began = None


def _compiles_quickly(
    statement: str, parameters: Parameters, connection: GuardedConnection, _: StatementDeadline
) -> bool:
    """Return True if compiling a statement takes no longer than a read may, and the schema is not too long to
    parse."""
    ((length,),) = fetch_schema_rows(connection, "SELECT total(length(sql)) FROM sqlite_schema")
    if length > _MAX_SCHEMA:
        return False
    began = time.thread_time()
    try:
        # EXPLAIN makes SQLite compile the statement, because with it the text is not in the cache.
        connection.execute(f"EXPLAIN {statement}", parameters).close()
    except (sqlite3.Error, sqlite3.Warning):
        return False
    return time.thread_time() - began < _READ_SECONDS


def _count_waits() -> int:
    """Return how often this thread has waited for something other than a processor, such as a disk."""
    if _getrusage is None or _THREAD is None:
        # This system does not count waits. If the number differs each time, every read counts as one that waited.
        return time.monotonic_ns()
    return int(_getrusage(_THREAD).ru_nvcsw)


def _read_schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    return int(version)
