"""A connection in a thread of its own, whose work can be stopped and lets no caller wait longer than it may.

SQLite looks at the clock between two instructions of its virtual machine. A single instruction may be long, though:
`instr` of two large values takes hours. Then the caller is told in time all the same, and the connection is of no use
until that instruction has ended.

When another file takes the place of the one that is open, as when a backup is restored, the connection follows. It
looks for that with the first work after it was lent, so nothing that belongs together is done on two files.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

import aiosqlite
import anyio
from anyio import to_thread

from servers.sqlite.access.limits import Limits
from servers.sqlite.access.opening import Mode, is_unrecovered, open_database, recover
from servers.sqlite.access.policy import Policy
from servers.sqlite.access.stopping import Stop
from servers.sqlite.describing.suggesting import suggestion
from servers.sqlite.errors import SqliteError, from_sqlite

__all__ = ["Connection", "Work"]

T = TypeVar("T")

_OPENINGS = count()

Work = Callable[[sqlite3.Connection, Stop], T]
"""What is done in the thread of a connection. It asks the `Stop` wherever SQLite is not at work for long."""

_GRACE = 0.2
"""Seconds beyond its time in which a statement should have noticed that it is over."""
_CLOSING = 10.0
"""Seconds that closing may take, which writes what is still to be written."""


class Connection(aiosqlite.Connection):
    """One connection to the database at `path`. Open it first, and close it at the end."""

    policy: Policy

    def __init__(
        self,
        path: Path,
        mode: Mode,
        limits: Limits,
        followed: Callable[[], None] = lambda: None,
        *,
        recovers: bool = False,
    ) -> None:
        """`followed` is called, in the thread of the connection, whenever it has opened another file. Where it
        `recovers`, what a killed writer left half done is undone before anything is read."""
        self.opening = next(_OPENINGS)
        """Another number says that it is another file now, or another connection."""
        self._path = path
        self._mode = mode
        self._limits = limits
        self._followed = followed
        self._recovers = recovers
        self._file: tuple[int, int] | None = None
        self._lent = False
        self._at_work: Stop | None = None
        self._when_idle: Callable[[], None] | None = None
        super().__init__(self._opened, iter_chunk_size=64)
        # A thread in an endless instruction must not keep the process alive.
        self._thread.daemon = True

    async def run(self, work: Work[T]) -> T:
        """Does `work`, within the time of a statement.

        Raises SqliteError for what SQLite refuses, and `timeout` where it takes too long. When the caller is
        cancelled, SQLite stops at its next look at the clock.
        """
        seconds = self._limits.seconds
        stop = Stop(seconds, self._limits.busy_seconds)
        self._at_work = stop
        loop = asyncio.get_running_loop()
        try:
            with anyio.fail_after(seconds + _GRACE):
                result: T = await self._execute(self._do, work, stop, loop)  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise stop.reason() from None
        finally:
            if not stop.abandon():
                self._at_work = None
        return result

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Calls back once no work is done here: at once, or when work that was abandoned has ended."""
        if self._at_work is None:
            callback()
        else:
            self._when_idle = callback

    def lend(self) -> None:
        """Has the next work look first whether the file under its path is still the one that is open."""
        self._lent = True

    async def open(self) -> None:
        """Opens it. Raises SqliteError."""
        try:
            await self
        except SqliteError:
            # Its thread is about to end, and would speak to an event loop that may end before.
            await to_thread.run_sync(self._thread.join)
            raise

    async def close(self) -> None:
        """Closes it; leaves it to its thread where that does not end its work."""
        with anyio.move_on_after(_CLOSING if self._at_work is None else _GRACE, shield=True):
            await super().close()

    def _opened(self) -> sqlite3.Connection:
        file = _identity(self._path)
        connection, self.policy = open_database(
            self._path, self._mode, self._limits, self._stopped, recovers=self._recovers
        )
        self._file = file
        return connection

    def _follow(self) -> None:
        if _identity(self._path) != self._file:
            left, self._connection = self._conn, self._opened()
            self.opening = next(_OPENINGS)
            self._followed()
            left.close()
        self._lent = False

    def _stopped(self) -> bool:
        return self._at_work is not None and self._at_work()

    def _do(self, work: Work[T], stop: Stop, loop: asyncio.AbstractEventLoop) -> T:
        try:
            if self._lent:
                self._follow()
            self.policy.forget()
            return self._done(work, stop)
        except (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, UnicodeError) as error:
            raise self._explained(error, stop) from None
        finally:
            if stop.end():
                loop.call_soon_threadsafe(self._idle)

    def _done(self, work: Work[T], stop: Stop) -> T:
        try:
            return work(self._conn, stop)
        except sqlite3.OperationalError as error:
            if not (self._recovers and is_unrecovered(error)):
                raise
        recover(self._path, stop)
        return work(self._conn, stop)

    def _idle(self) -> None:
        self._at_work = None
        if self._when_idle is not None:
            callback, self._when_idle = self._when_idle, None
            callback()

    def _explained(self, error: Exception, stop: Stop) -> SqliteError:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_INTERRUPT":
            return stop.reason()
        # Of what a view or a generated column does, SQLite says that it is not authorized, or names the view.
        if self.policy.refused is not None:
            return SqliteError("refused", f"the statement is not allowed: {self.policy.refused}")
        found = from_sqlite(error)
        if name == "SQLITE_ERROR":
            found.suggestion = suggestion(self._conn, str(error), self.policy.closes)
        return found


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - twice as fast, and done for each query
    except OSError:
        return None
    return status.st_dev, status.st_ino
