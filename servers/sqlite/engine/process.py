"""Does work that can't be interrupted in a process, which is killed after the time limit.

The process does the same work as a thread would, on a connection of its own. It is also killed when the caller is
cancelled, and SQLite rolls back its uncommitted changes. Few such processes work at once, since each needs memory.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.lowlevel import RunVar
from anyio.streams.buffered import BufferedByteReceiveStream

from servers.common.sql.errors import SqlError
from servers.common.workers.process import kill_worker, start_worker

from .deadline import StatementDeadline
from .handle import Work
from .opening import OpenOptions, recover
from .worker import LENGTH, RemoteCursor, pack, unpack

T = TypeVar("T")

_MAX_PROCESSES = 2
"""Maximum number of processes that work at once in the whole server."""
_MEMORY_DIVISOR = 4
"""The memory limit of each process is that of the server divided by this."""
_MIN_MEBIBYTES = 16
"""Minimum memory limit of a process, in mebibytes."""
_GRACE_SECONDS = 0.5
"""A process is killed this many seconds after the timeout of its statement. Until then most stop by themselves."""
_START_TIMEOUT = 60
"""Maximum number of seconds for starting a process. It is not part of a statement's timeout, since a slow disk says
nothing about the statement."""
_IDLE_SECONDS = 45.0
"""Seconds for which an idle process is kept for the next statement. This is longer than an unfinished query is kept
(`SOURCE_SECONDS`), so that the process of the query still exists when a client continues it."""
_PROCESS_ERRORS = (TimeoutError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, OSError)
"""Errors of a process that has ended or does not respond."""
_START_SCRIPT = """
import sys
sys.path[:] = sys.argv[2:]
from importlib import import_module
import_module(sys.argv[1]).main()
"""

_slots: RunVar[anyio.Semaphore] = RunVar("servers.sqlite.processes")


class WorkerProcess:
    """Starts a process for work that can't be interrupted when it is needed, and another one if that has ended."""

    def __init__(self, options: OpenOptions) -> None:
        memory = max(options.limits.memory_mebibytes // _MEMORY_DIVISOR, _MIN_MEBIBYTES)
        limits = options.limits._replace(memory_mebibytes=memory)
        self._options = options._replace(killable=True, limits=limits)
        self._process: Process | None = None
        self._output: BufferedByteReceiveStream | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """The process ID; None if no process is running."""
        return self._process.pid if self._process else None

    async def ensure_started(self) -> bool:
        """Start a process and return True, or return False if one is already running. Raises SqlError."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._process is not None and self._process.returncode is None:
            return False
        await self.end()
        async with self._kill_on_failure():
            with anyio.fail_after(_START_TIMEOUT):
                process = self._process = await start_worker(_START_SCRIPT, f"{__package__}.worker")
                assert process.stdout is not None
                self._output = BufferedByteReceiveStream(process.stdout)
                await self._send(self._options)
                _, refused = await self._receive()
            if isinstance(refused, SqlError):
                raise refused
        return True

    async def run(self, work: Work[T]) -> T:
        """Do `work` within the timeout of a statement, and return the result. If the work takes longer or the caller
        is cancelled, kill the process. Raises SqlError."""
        limits = self._options.limits
        async with _acquire_slot(limits.timeout), self._kill_on_failure():
            # Until the process sends "begun", it imports modules for the work. That is not part of the timeout.
            with anyio.fail_after(_START_TIMEOUT):
                await self._send(work)
                kind, value = await self._receive()
            deadline = StatementDeadline(limits.timeout, limits.busy_timeout)
            with _limit_time(deadline, limits.timeout + _GRACE_SECONDS):
                while kind != "done":
                    deadline.is_committing = kind == "committing" and bool(value)
                    kind, value = await self._receive()
        self._idle_timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._end_idle_process)
        if isinstance(value, SqlError):
            raise value
        result: T = value
        return result

    async def end(self) -> None:
        """Kill the process, if any, and wait until it has ended."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        process, self._process = self._process, None
        if process is None:
            return
        await kill_worker(process)

    def _end_idle_process(self) -> None:
        """Kill the process. Unlike `end`, don't wait until it has ended."""
        if self._process is not None:
            self._process.kill()

    @asynccontextmanager
    async def _kill_on_failure(self) -> AsyncIterator[None]:
        succeeded = False
        try:
            yield
            succeeded = True
        except _PROCESS_ERRORS:
            raise SqlError("failed", "the process that ran the statement has ended", "Ask for less.") from None
        finally:
            if not succeeded:
                await self.end()
            if not succeeded and self._options.mode == "rw":
                # The killed process may have left a hot journal, and readers can't read until a writer has rolled it
                # back. If this fails, the next writer does it.
                with anyio.CancelScope(shield=True), suppress(SqlError, sqlite3.Error, OSError):
                    timeout = self._options.limits.busy_timeout
                    await to_thread.run_sync(recover, self._options.path, StatementDeadline(timeout, timeout))

    async def _send(self, value: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        frame = pack(value, lambda item: item.number if isinstance(item, RemoteCursor) else None)
        await self._process.stdin.send(frame)

    async def _receive(self) -> tuple[str, Any]:
        """Return the kind and value of the next message from the process."""
        output = self._output
        assert output is not None
        (length,) = LENGTH.unpack(await output.receive_exactly(LENGTH.size))
        kind, value = unpack(await output.receive_exactly(length), RemoteCursor)
        return kind, value


@contextmanager
def _limit_time(deadline: StatementDeadline, timeout: float) -> Iterator[None]:
    try:
        with anyio.fail_after(timeout):
            yield
    except TimeoutError:
        raise deadline.error() from None


@asynccontextmanager
async def _acquire_slot(max_wait: float) -> AsyncIterator[None]:
    """Wait until another process may work. Raises SqlError with code `busy`."""
    slots = _slots.get(None)
    if slots is None:
        slots = anyio.Semaphore(_MAX_PROCESSES)
        _slots.set(slots)
    try:
        with anyio.fail_after(max_wait):
            await slots.acquire()
    except TimeoutError:
        reason = "other long-running statements are in progress"
        raise SqlError("busy", reason, "Try again when they have finished.") from None
    try:
        yield
    finally:
        slots.release()
