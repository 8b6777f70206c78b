"""A connection in its own thread, whose work can be stopped, so that no caller waits longer than its time limit.

The time limit is checked between two instructions of SQLite's virtual machine. However, a single instruction may take
long: `instr` of two large values takes hours. In the thread, the policy refuses statements that call such functions;
they are run by a process that is killed after the time limit (`process.py`). Other instructions may take slightly too
long, such as a LIKE on a large text. The caller still gets its error in time, but the connection can't be used until
the instruction has ended.

If another file replaces the open one, the connection switches to it. This is only checked before the first work after
the connection was lent, so that all work of one call is done on the same file.
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
from servers.sqlite.engine.handle import OPENING_NUMBERS, Handle, Work
from servers.sqlite.engine.opening import ConnectionOptions, Mode, OpenOptions
from servers.sqlite.engine.process import WorkerProcess

__all__ = ["Connection", "Work"]

T = TypeVar("T")

_GRACE_SECONDS = 0.2
"""Seconds after its time limit for a statement to stop. After that, its caller no longer waits for it."""
_CLOSE_SECONDS = 10.0
"""Maximum number of seconds for closing the connection, since that writes pending data."""


class Connection(aiosqlite.Connection):
    """One connection to the database at `path`. Open it first, and close it at the end."""

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
        """Prepare the connection, which `open` opens.

        `on_reopened` is called in the connection's thread whenever it has opened another file. With `recovers`,
        changes that a killed writer left unfinished are undone before anything is read.
        """
        options = OpenOptions(path, mode, limits, recovers, connection_options=connection_options)
        self.opening_number = next(OPENING_NUMBERS)
        """A number that changes when the connection opens another file, or is replaced."""
        self._limits = limits
        self._on_reopened = on_reopened
        self._handle = Handle(options)
        self._worker = WorkerProcess(options)
        self._may_be_replaced = False
        """True until the next work has checked that the open file is still the one at the path."""
        self._deadline: StatementDeadline | None = None
        self._when_idle: Callable[[], None] | None = None
        super().__init__(self._handle.open, iter_chunk_size=64)
        # A thread in an endless instruction must not keep the process alive.
        self._thread = Thread(target=self._serve, args=(self._thread.run,), daemon=True)

    async def run(self, work: Work[T], process_work: Work[T] | None = None, job: Job | None = None) -> T:
        """Do `work` within the timeout of a statement or of its `job`, and return the result.

        Work that can't be interrupted is done by a process that can be killed; if `process_work` is given, the
        process does that instead. Since there are few of these processes, the timeout there is always that of a
        statement.
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
            raise deadline.reason().add_place(deadline.position) from None
        finally:
            if deadline.abandon():
                # Some instructions can be interrupted, although the time limit is not checked during them.
                with suppress(ValueError, sqlite3.Error):
                    self._conn.interrupt()
            else:
                self._deadline = None
        if await self._worker.ensure_started():
            self.opening_number = next(OPENING_NUMBERS)
        return await self._worker.run(process_work or work)

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` once this connection is idle: now, or when its abandoned work has ended."""
        if self._deadline is None:
            callback()
        else:
            self._when_idle = callback

    def lend(self) -> None:
        """Make the next work check first that the file at the path is still the open one."""
        self._may_be_replaced = True

    async def open(self) -> None:
        """Open the connection. Raises SqlError."""
        try:
            await self
        except SqlError:
            # Wait for its thread to end. Otherwise the thread might call the event loop after that has ended.
            await to_thread.run_sync(self._thread.join)
            raise

    async def close(self) -> None:
        """Close the connection. If its work does not end now, its thread closes it later."""
        await self._worker.end()
        with anyio.move_on_after(_CLOSE_SECONDS if self._deadline is None else _GRACE_SECONDS, shield=True):
            await super().close()

    def _serve(self, serve: Callable[[], None]) -> None:
        try:
            serve()
        except RuntimeError:
            # The event loop has ended before the abandoned work of this thread, so nothing can be reported.
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
