"""Runs requests in worker processes. Each process answers one request at a time.

A process is started when it is needed, and killed after a failure, a timeout or too many requests. The number of
processes is limited. Callers are served in order of arrival.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from shared.coded_errors import CodedError

from .frames import LENGTHS, Head, lengths_of, pack
from .process import kill_worker, start_worker

START_TIMEOUT = 60
"""Maximum number of seconds for a worker to start and load its libraries. This time is not part of a request's
timeout, because a slow disk is not the fault of the file that is read."""
_CHUNK_BYTES = 262_144
"""Number of bytes written to the process at a time."""
_CRASHES = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, OSError, RecursionError, ValueError)
_START_PROGRAM = """
import sys
sys.path[:] = sys.argv[5:]
from importlib import import_module
import_module(sys.argv[1]).main(float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
"""


class Limits(NamedTuple):
    """The limits of one request, and the number of requests that one process answers."""

    timeout: float
    """Maximum number of seconds for a request."""
    mebibytes: int
    """Maximum memory for a request, in MiB."""
    requests: int = 500
    """Number of requests after which a process ends, because not all memory is returned to the system."""


class Program(NamedTuple):
    """The program of a worker: a module with a function `main` that calls `serving.serve`."""

    module: str
    subject: str
    """The noun for a file that the worker reads, such as "page", for texts of errors."""


class WorkerError(CodedError):
    """Raised for a request that the worker could not answer; the code is `unreadable`."""

    def __init__(self, reason: str) -> None:
        super().__init__("unreadable", reason)


class Worker:
    """A worker with at most one process. The first request starts it, and a request after its end starts another
    one."""

    def __init__(self, program: Program, limits: Limits) -> None:
        self._program = program
        self._limits = limits
        self._process: Process | None = None
        self._lock = anyio.Lock()
        self._prepared: set[str] = set()

    @property
    def pid(self) -> int | None:
        """The process ID; None if no process is running."""
        return self._process.pid if self._process else None

    async def prepare(self, kind: str) -> None:
        """Start the process if none is running, and load the reader for files of `kind`."""
        async with self._lock, self._kill_on_failure():
            await self._prepare(kind)

    async def ask(self, kind: str, head: Head, body: bytes) -> tuple[Head, bytes]:
        """Return the answer to a request about a file of `kind`.

        The process is killed if the caller is cancelled or the process does not answer in time. Raises WorkerError.
        """
        async with self._lock, self._kill_on_failure():
            await self._prepare(kind)
            try:
                with anyio.fail_after(self._limits.timeout):
                    answer, text = await self._exchange({"kind": kind, **head}, body)
            except TimeoutError:
                reason = f"reading the {self._program.subject} takes longer than {self._limits.timeout:g} s"
                raise WorkerError(reason) from None
            if answer.get("last"):
                await self.end()
            return answer, text

    async def end(self) -> None:
        """Kill the process, if any, and wait until it has ended."""
        process, self._process = self._process, None
        self._prepared.clear()
        if process is None:
            return
        await kill_worker(process)

    @asynccontextmanager
    async def _kill_on_failure(self) -> AsyncIterator[None]:
        """Kill the process if the block fails, so that a later request does not read the rest of this answer."""
        succeeded = False
        try:
            yield
            succeeded = True
        except _CRASHES:
            raise WorkerError(f"the process that read the {self._program.subject} crashed") from None
        finally:
            if not succeeded:
                await self.end()

    async def _prepare(self, kind: str) -> None:
        if self._process is not None and self._process.returncode is not None:
            await self.end()
        if kind in self._prepared:
            return
        try:
            with anyio.fail_after(START_TIMEOUT):
                if self._process is None:
                    self._process = await start_worker(_START_PROGRAM, self._program.module, *map(str, self._limits))
                answer, _ = await self._exchange({"kind": kind}, b"")
        except TimeoutError:
            reason = f"the process that reads the {self._program.subject} was not ready within {START_TIMEOUT} s"
            raise WorkerError(reason) from None
        if "error" in answer:
            raise WorkerError(f"the library that reads this kind of {self._program.subject} can't be loaded")
        self._prepared.add(kind)

    async def _exchange(self, head: Head, body: bytes) -> tuple[Head, bytes]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(pack(head, len(body)))
        for start in range(0, len(body), _CHUNK_BYTES):
            await process.stdin.send(body[start : start + _CHUNK_BYTES])
        answers = BufferedByteReceiveStream(process.stdout)
        head_length, body_length = lengths_of(await answers.receive_exactly(LENGTHS.size))
        answer = json.loads(await answers.receive_exactly(head_length))
        if not isinstance(answer, dict):
            raise ValueError("the answer is not a JSON object")
        return answer, await answers.receive_exactly(body_length)


class Pool:
    """A pool of `size` workers. Only as many of them have a process as were needed at the same time."""

    def __init__(self, program: Program, size: int, limits: Limits) -> None:
        self._slots = anyio.Semaphore(size)
        self._workers = [Worker(program, limits) for _ in range(size)]
        self._idle = [*self._workers]

    @property
    def pids(self) -> list[int]:
        """The IDs of the running processes."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def warm(self, kind: str) -> None:
        """Start one process if none is running, before the first request. Raises WorkerError."""
        if not self.pids and self._idle:
            await self._idle[-1].prepare(kind)

    async def ask(self, kind: str, head: Head, body: bytes) -> tuple[Head, bytes]:
        """Return the answer of a worker. Raises WorkerError."""
        async with self._slots:
            # Use the worker that was used last, since it probably has a process.
            worker = self._idle.pop()
            try:
                return await worker.ask(kind, head, body)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        """Kill all processes."""
        for worker in self._workers:
            await worker.end()
