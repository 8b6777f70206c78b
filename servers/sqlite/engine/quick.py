"""Reads that end immediately, on a connection in the event loop's own thread, because passing a row between threads
takes longer than reading it.

A statement is run here once a reader's thread has answered it quickly and compiled it in less than a millisecond. It
is run under limits that let no instruction take long (`quick_policy.py`), and is stopped after a millisecond. Nothing
here waits or reports an error: if a statement is stopped, locked, refused, changed or invalid, a thread runs it from
the beginning, as if it had not been tried.

Between two reads the schema may change. SQLite then compiles the statement again, and calls the policy. So if the
policy was not called, the schema is the one for which the statement was compiled.
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
from servers.sqlite.engine.deadline import Limits, StatementDeadline
from servers.sqlite.engine.entries import fetch_schema_rows
from servers.sqlite.engine.handle import Handle
from servers.sqlite.engine.opening import ConnectionOptions, GuardedConnection, OpenOptions
from servers.sqlite.errors import from_sqlite

try:
    import resource
except ModuleNotFoundError:  # as on Windows
    _getrusage = _THREAD = None
else:
    _getrusage, _THREAD = getattr(resource, "getrusage", None), getattr(resource, "RUSAGE_THREAD", None)

_SECONDS = 0.001
"""Seconds for one read, and for compiling its statement."""
_MAX_THREAD_SECONDS = 0.1
"""A statement is tried here if a thread took at most this many seconds for it, including waits for other threads."""
_TURN_SECONDS = 0.05
"""Maximum seconds of processor time for one turn of the event loop, counted from its first read.

The requests in one read of a pipe take less. A call that is not answered immediately delays all calls after it.
"""
_CHECK_INSTRUCTIONS = 100
"""Number of instructions of SQLite's virtual machine between checks of the clock."""
_MAX_FAILURES = 3
"""Number of consecutive times that a statement may fail to finish here."""
_MAX_KNOWN, _MAX_KNOWN_LENGTH = 100, 10_000
"""Maximum number of statements that are remembered, and the maximum length of one in characters. SQLite caches more
compiled statements."""
_MAX_SCHEMA = 100_000
"""Maximum number of characters in SQL in the schema, which SQLite parses completely whenever it has changed."""
_SLOW_SECONDS = 0.005
"""Seconds of a read after which its statement is left to threads for a while."""
_LATE_SECONDS, _PAUSE_FACTOR = 0.05, 10
"""After a read that takes longer than the first number of seconds, none is tried for that read's time multiplied by
the second: the disk or the machine is slow, or a row is large.
"""
_MAX_DOUBLED = 10
"""The maximum factor by which repeated doubling extends the pause."""
_RELEARN_SECONDS, _MAX_DROPS = 5.0, 4
"""Seconds after which a statement that took too long is learned again, and the maximum number of times that they are
doubled.

The time may include time spent in other processes.
"""
_REOPEN_SECONDS = 1.0
"""Seconds after which opening a file is tried again."""
_NO_LOCK = -1.0
"""Seconds to wait for a lock: negative, so it never waits."""

T = TypeVar("T")

Work = Callable[[GuardedConnection, int], T]
"""A function that works with the connection, given the version of the schema."""
Parameters = Sequence[Any] | Mapping[str, Any]
Read = Callable[[Callable[[GuardedConnection, StatementDeadline], bool]], Awaitable[bool]]
"""Runs work on a thread's connection. Raises SqlError."""


@dataclass(slots=True)
class _KnownStatement:
    """A statement that was run before."""

    tries: int = 0
    is_compiled: bool = False
    drops: int = 0
    """Number of times that it took too long."""
    relearn_time: float = math.inf
    """The time at which it is learned again, once it has no tries left."""

    def drop(self) -> None:
        self.relearn_time = time.monotonic() + _RELEARN_SECONDS * 2 ** min(self.drops, _MAX_DROPS)
        self.tries = 0
        self.drops += 1

    def fail(self) -> None:
        if self.tries == 1:
            self.drop()
        else:
            self.tries -= 1


class QuickReader:
    """Runs statements that end immediately, for one event loop."""

    def __init__(self, path: Path, limits: Limits, connection_options: ConnectionOptions) -> None:
        self._options = OpenOptions(
            path, "quick", limits._replace(busy_timeout=_NO_LOCK), connection_options=connection_options
        )
        self._seconds = min(_SECONDS, limits.timeout)
        self._handle: Handle | None = None
        self._schema_version = 0
        self._known: OrderedDict[str, _KnownStatement] = OrderedDict()
        self._is_learning = False
        self._stop_time = self._paused_until = 0.0
        self._slow_reads = 0
        """Number of reads that took too long because of large rows, which stay large. Each one doubles the pause."""
        self._turn_began: float | None = None
        """Processor time of the thread before the first read of this turn of the event loop."""
        self._waits = 0
        """Number of the thread's waits before that read."""
        self._read_began = 0.0
        """Processor time of the thread before the last read."""

    def run(self, statement: str, work: Work[T | None], *, is_first: bool = True) -> T | None:
        """Return the result of `work`, which runs `statement`; None if a thread has to do it. Never waits or
        raises."""
        entry, handle, began = self._known.get(statement), self._handle, time.monotonic()
        if entry is None or not entry.tries or handle is None or began < self._paused_until:
            return None
        if not self._has_turn(handle):
            return None
        self._known.move_to_end(statement)
        self._stop_time = began + self._seconds
        result, is_temporary = None, False
        try:
            result = self._run(entry, handle.connection, work)
        except (sqlite3.Error, sqlite3.Warning, SqlError, MemoryError, OverflowError, UnicodeError) as error:
            # These errors are not about the statement: the database is locked, or the parameters are of the wrong
            # kind.
            name = getattr(error, "sqlite_errorname", "")
            is_temporary = name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or isinstance(
                error, (sqlite3.ProgrammingError, OverflowError, UnicodeError)
            )
        seconds = time.monotonic() - began
        if result is not None and seconds <= _SLOW_SECONDS:
            entry.tries = _MAX_FAILURES
        elif (
            # Other processes used the processor: the read took no processor time, and this thread did not wait. Then
            # another thread would be slow as well, and take longer.
            seconds > _SECONDS and _count_waits() == self._waits and time.thread_time() - self._read_began < _SECONDS
        ):
            return self.run(statement, work, is_first=False) if result is None and is_first else result
        elif seconds > _LATE_SECONDS:
            # One instruction reads all pages of a large value to reach the column after it, so no progress handler is
            # called.
            if self._turn_began is not None and time.thread_time() - self._turn_began > _LATE_SECONDS:
                entry.tries = 0
                self._slow_reads += 1
            else:
                entry.fail()
            self._paused_until = time.monotonic() + seconds * _PAUSE_FACTOR * 2 ** min(self._slow_reads, _MAX_DOUBLED)
        elif seconds > _SLOW_SECONDS:
            entry.drop()
        elif not is_temporary:
            entry.fail()
        return result

    def can_run(self, statement: str) -> bool:
        """Return True if it is worthwhile to `run` a statement."""
        entry = self._known.get(statement)
        return entry is not None and entry.tries > 0

    def should_learn(self, statement: str, seconds: float) -> bool:
        """Return True if a statement that a thread has answered in `seconds` should be learned now."""
        if len(statement) > _MAX_KNOWN_LENGTH or self._options.connection_options.attached:
            return False
        entry = self._known.get(statement)
        if entry is not None and (entry.tries or time.monotonic() < entry.relearn_time):
            return False
        # Its next call is only fast because that thread has it compiled.
        if seconds > _MAX_THREAD_SECONDS:
            self._remember(statement, 0).drop()
            return False
        return not self._is_learning and time.monotonic() >= self._paused_until

    async def learn(self, statement: str, parameters: Parameters, read: Read) -> None:
        """Determine, on a connection from `read`, whether a statement should be run here from now on."""
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

    def _remember(self, statement: str, tries: int) -> _KnownStatement:
        before = self._known.get(statement)
        entry = self._known[statement] = _KnownStatement(tries, drops=0 if before is None else before.drops)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return entry

    def _run(self, entry: _KnownStatement, connection: GuardedConnection, work: Work[T | None]) -> T | None:
        if not entry.is_compiled and _read_schema_version(connection) != self._schema_version:
            self.close()
            return None
        connection.policy.reset()
        result = work(connection, self._schema_version)
        # A statement compiled just now may have seen a newer schema.
        if connection.policy.action_count and _read_schema_version(connection) != self._schema_version:
            self.close()
            return None
        entry.is_compiled = True
        return result

    def _has_turn(self, handle: Handle) -> bool:
        """Return True if one more read may be done now."""
        self._read_began = time.thread_time()
        if self._turn_began is not None:
            return self._read_began - self._turn_began < _TURN_SECONDS
        # The file is checked once in a turn of the event loop, by its first read, which also starts measuring the
        # turn.
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
    """Return True if compiling takes no longer than a read may, and the schema is short enough to parse."""
    ((length,),) = fetch_schema_rows(connection, "SELECT total(length(sql)) FROM sqlite_schema")
    if length > _MAX_SCHEMA:
        return False
    began = time.thread_time()
    try:
        # No other statement has this text, so it is not in the cache of compiled ones.
        connection.execute(f"EXPLAIN {statement}", parameters).close()
    except (sqlite3.Error, sqlite3.Warning):
        return False
    return time.thread_time() - began < _SECONDS


def _count_waits() -> int:
    """Return how often this thread has waited for something other than a processor, such as a disk."""
    if _getrusage is None or _THREAD is None:
        # The system does not count them. A number that is different each time makes every read count as one that
        # waited.
        return time.monotonic_ns()
    return int(_getrusage(_THREAD).ru_nvcsw)


def _read_schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    return int(version)
