"""A connection in a thread of its own, whose work can be stopped and lets no caller wait longer than it may.

SQLite looks at the clock between two instructions of its virtual machine. A single instruction may be long, though:
`instr` of two large values takes hours. What calls such a function is refused by the policy of the thread, and done
by a process that is killed when its time is over (`process.py`). Of what else may take a moment too long, as a LIKE
of a large text, the caller is told in time all the same, and the connection is of no use until that has ended.

When another file takes the place of the one that is open, the connection follows. It looks for that with the first
work after it was lent, so nothing that belongs together is done on two files.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TypeVar

import aiosqlite
import anyio
from anyio import to_thread

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import Job
from servers.sqlite.engine.deadline import Limits, StatementDeadline, Uninterruptible
from servers.sqlite.engine.handle import OPENINGS, Handle, Work
from servers.sqlite.engine.opening import ConnectionOptions, Mode, OpenOptions
from servers.sqlite.engine.process import WorkerProcess

__all__ = ["Connection", "Work"]

T = TypeVar("T")

_GRACE = 0.2
"""Seconds beyond its time in which a statement should have noticed that it is over."""
_CLOSING = 10.0
"""Seconds that closing may take, which writes what is still to be written."""


class Connection(aiosqlite.Connection):
    """One connection to the database at `path`. Open it first, and close it at the end."""

    def __init__(
        self,
        path: Path,
        mode: Mode,
        limits: Limits,
        followed: Callable[[], None] = lambda: None,
        *,
        recovers: bool = False,
        connecting: ConnectionOptions = ConnectionOptions(),  # noqa: B008 - it is a tuple
    ) -> None:
        """`followed` is called, in the thread of the connection, whenever it has opened another file. Where it
        `recovers`, what a killed writer left half done is undone before anything is read."""
        opening = OpenOptions(path, mode, limits, recovers, connecting=connecting)
        self.opening = next(OPENINGS)
        """Another number says that it is another file now, or another connection."""
        self._limits = limits
        self._followed = followed
        self._handle = Handle(opening)
        self._worker = WorkerProcess(opening)
        self._lent = False
        self._at_work: StatementDeadline | None = None
        self._when_idle: Callable[[], None] | None = None
        super().__init__(self._handle.open, iter_chunk_size=64)
        # A thread in an endless instruction must not keep the process alive.
        self._thread = Thread(target=self._serve, args=(self._thread.run,), daemon=True)

    async def run(self, work: Work[T], elsewhere: Work[T] | None = None, job: Job | None = None) -> T:
        """Does `work`, within the time of a statement or of its `job`; where that can't be interrupted, a process
        that can be killed does it, or what is to be done `elsewhere` instead. Since such processes are few, work has
        the time of a statement there, whatever its job.

        Raises SqlError for what SQLite refuses, and `timeout` where it takes too long. When the caller is
        cancelled, SQLite stops at its next look at the clock.
        """
        try:
            return await self._run(work, job)
        except Uninterruptible:
            pass
        if await self._worker.ensure_started():
            self.opening = next(OPENINGS)
        return await self._worker.run(elsewhere or work)

    async def _run(self, work: Work[T], job: Job | None) -> T:
        seconds = self._limits.seconds if job is None else job.seconds
        deadline = StatementDeadline(seconds, self._limits.busy_seconds, job)
        self._at_work = deadline
        loop = asyncio.get_running_loop()
        try:
            with anyio.fail_after(seconds + _GRACE):
                # aiosqlite has no public way to do work of one's own in its thread.
                result: T = await self._execute(self._do, work, deadline, loop)  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise deadline.reason().at(deadline.where) from None
        finally:
            if deadline.abandon():
                # Some instructions look whether they were interrupted, though not at the clock.
                with suppress(ValueError, sqlite3.Error):
                    self._conn.interrupt()
            else:
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
        """Opens it. Raises SqlError."""
        try:
            await self
        except SqlError:
            # Its thread is about to end, and would speak to an event loop that may end before.
            await to_thread.run_sync(self._thread.join)
            raise

    async def close(self) -> None:
        """Closes it; leaves it to its thread where that does not end its work."""
        await self._worker.end()
        with anyio.move_on_after(_CLOSING if self._at_work is None else _GRACE, shield=True):
            await super().close()

    def _serve(self, serve: Callable[[], None]) -> None:
        try:
            serve()
        except RuntimeError:
            # The event loop ended before the work that was left to this thread, so nobody is there to be told.
            self._handle.connection.close()

    def _do(self, work: Work[T], deadline: StatementDeadline, loop: asyncio.AbstractEventLoop) -> T:
        try:
            if self._lent:
                if self._handle.follow():
                    self._connection = self._handle.connection
                    self.opening = self._handle.number
                    self._followed()
                self._lent = False
            return self._handle.do(work, deadline)
        finally:
            if deadline.end():
                loop.call_soon_threadsafe(self._idle)

    def _idle(self) -> None:
        self._at_work = None
        if self._when_idle is not None:
            callback, self._when_idle = self._when_idle, None
            callback()
