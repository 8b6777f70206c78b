"""Runs work on a connection in a thread of its own, and stops the work at its time limit.

SQLite checks the time limit between two instructions of its virtual machine. However, a single instruction may take
long: `instr` of two large values takes hours. In the thread, the policy refuses statements that call such functions;
a process runs them instead, and is killed after the time limit (`process.py`). Other instructions may take slightly
too long, such as a LIKE on a large text. The caller still gets its error in time, but the connection can't be used
until the instruction has ended.

If another file replaces the open one, the connection switches to it. This is only checked before the first work after
the pool has lent the connection, so that all work of one call is done on the same file.
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

from .deadline import Limits, StatementDeadline, Uninterruptible
from .handle import OPENING_NUMBERS, Handle, Work
from .opening import ConnectionOptions, Mode, OpenOptions
from .process import WorkerProcess

__all__ = ["Connection", "Work"]

T = TypeVar("T")

_GRACE_SECONDS = 0.2
"""Seconds that the caller waits for a statement to stop after its time limit."""
_CLOSE_SECONDS = 10.0
"""Maximum number of seconds for closing the connection. Closing writes pending data."""


class Connection(aiosqlite.Connection):
    """A connection to the database at `path`. Call `open` first, and `close` at the end."""

    def __init__(
        self,
        path: Path,
        mode: Mode,
        limits: Limits,
        on_reopened: Callable[[], None] = lambda: None,
        *,
        recovers: bool = False,
        connection_options: ConnectionOptions = ConnectionOptions(),  # noqa: B008 - it is a tuple
    ) -> None:
        """`on_reopened` is called in the connection's thread whenever the connection has switched to another file.
        If `recovers`, changes that a killed writer left unfinished are rolled back before anything is read.
        """
        options = OpenOptions(path, mode, limits, recovers, connection_options=connection_options)
        self.opening_number = next(OPENING_NUMBERS)
        """A number that changes when the connection switches to another file, or a new worker process starts.
        Versions that were read under different numbers can't be compared."""
        self._limits = limits
        self._on_reopened = on_reopened
        self._handle = Handle(options)
        self._worker = WorkerProcess(options)
        self._may_be_replaced = False
        """True if the next work must first check whether the file at the path is still the open one."""
        self._deadline: StatementDeadline | None = None
        self._when_idle: Callable[[], None] | None = None
        super().__init__(self._handle.open, iter_chunk_size=64)
        # A thread in an endless instruction must not keep the process alive.
        self._thread = Thread(target=self._serve, args=(self._thread.run,), daemon=True)

    async def run(self, work: Work[T], process_work: Work[T] | None = None, job: Job | None = None) -> T:
        """Do `work` within the timeout of its `job`, or of a statement if there is none, and return the result.

        A process that can be killed does work that can't be interrupted, or `process_work` instead if that is given.
        There are few of these processes, so their timeout is always that of a statement. Raises SqlError.
        """
        timeout = self._limits.timeout if job is None else job.timeout
        deadline = StatementDeadline(timeout, self._limits.busy_timeout, job)
        self._deadline = deadline
        loop = asyncio.get_running_loop()
        try:
            with anyio.fail_after(timeout + _GRACE_SECONDS):
                # aiosqlite has no public way to run a function in its thread.
                result: T = await self._execute(self._do, work, deadline, loop)  # type: ignore[no-untyped-call]
                return result
        except Uninterruptible:
            pass
        except TimeoutError:
            raise deadline.error().add_place(deadline.position) from None
        finally:
            if deadline.abandon():
                # SQLite does not check the time limit within an instruction, but `interrupt` stops some of them.
                with suppress(ValueError, sqlite3.Error):
                    self._conn.interrupt()
            else:
                self._deadline = None
        if await self._worker.ensure_started():
            self.opening_number = next(OPENING_NUMBERS)
        return await self._worker.run(process_work or work)

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` as soon as this connection is idle: now, or when its abandoned work has ended."""
        if self._deadline is None:
            callback()
        else:
            self._when_idle = callback

    def lend(self) -> None:
        """Make the next work check first whether the file at the path is still the open one."""
        self._may_be_replaced = True

    async def open(self) -> None:
        """Open the connection. Raises SqlError."""
        try:
            await self
        except SqlError:
            # Wait for the thread to end. Otherwise it might call the event loop after the loop has been closed.
            await to_thread.run_sync(self._thread.join)
            raise

    async def close(self) -> None:
        """Close the connection. If abandoned work is still running, the thread closes it afterwards."""
        await self._worker.end()
        with anyio.move_on_after(_CLOSE_SECONDS if self._deadline is None else _GRACE_SECONDS, shield=True):
            await super().close()

    def _serve(self, serve: Callable[[], None]) -> None:
        try:
            serve()
        except RuntimeError:
            # The event loop was closed before the abandoned work of this thread ended, so nobody gets its result.
            self._handle.connection.close()

    def _do(self, work: Work[T], deadline: StatementDeadline, loop: asyncio.AbstractEventLoop) -> T:
        try:
            if self._may_be_replaced:
                if self._handle.reopen_replaced():
                    self._connection = self._handle.connection
                    self.opening_number = self._handle.number
                    self._on_reopened()
                self._may_be_replaced = False
            return self._handle.do(work, deadline)
        finally:
            if deadline.end():
                loop.call_soon_threadsafe(self._become_idle)

    def _become_idle(self) -> None:
        self._deadline = None
        if self._when_idle is not None:
            callback, self._when_idle = self._when_idle, None
            callback()
