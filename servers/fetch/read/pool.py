"""The processes that pages are read in, seen from the server: each started when it is needed, asked one thing at a
time, and killed; so many at once, and callers in the order they came.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from servers.common.worker import kill_worker, start_worker
from servers.fetch.errors import FetchError
from servers.fetch.read.page import KindName
from servers.fetch.read.pipe_frames import LENGTHS, Head, lengths_of, pack

STARTING = 60
"""Seconds that a worker may take to start and to load what it needs: a slow disk is not the fault of a page."""
_CHUNK = 262_144
_BROKEN = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, OSError, RecursionError, ValueError)
# OpenSSL is a tenth of the memory: no connection is made here, and Python has hashes of its own.
_START = """
import sys
sys.path[:] = sys.argv[4:]
sys.modules["_ssl"] = sys.modules["_hashlib"] = None
from servers.fetch.read.worker import main
main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""


class Limits(NamedTuple):
    """What reading one page may take, and one process may read."""

    seconds: float
    mebibytes: int
    pages: int = 500
    """How many pages one process reads. Memory that was taken once does not all come back."""


class Worker:
    """One process at most. It is started when it is first asked, and again when it has ended since."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: Process | None = None
        self._lock = anyio.Lock()
        self._prepared: set[KindName] = set()

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        return self._process.pid if self._process else None

    async def prepare(self, kind: KindName) -> None:
        """Starts the process, where there is none, and has it load what pages of `kind` need."""
        async with self._lock, self._killed_on_failure():
            await self._ready(kind)

    async def ask(self, kind: KindName, head: Head, body: bytes) -> tuple[Head, bytes]:
        """The answer to a request about a page of `kind`.

        The process is killed where the caller is cancelled, or where it does not answer in time or at all. Raises
        FetchError `unreadable`.
        """
        async with self._lock, self._killed_on_failure():
            await self._ready(kind)
            try:
                with anyio.fail_after(self._limits.seconds):
                    answer, text = await self._answer({"kind": kind, **head}, body)
            except TimeoutError:
                reason = f"reading the page takes longer than {self._limits.seconds:g} s"
                raise FetchError("unreadable", reason) from None
            if answer.get("last"):
                await self.end()
            return answer, text

    async def end(self) -> None:
        """Kills the process, if there is one, and waits until nothing is left of it."""
        process, self._process = self._process, None
        self._prepared.clear()
        if process is None:
            return
        await kill_worker(process)

    @asynccontextmanager
    async def _killed_on_failure(self) -> AsyncIterator[None]:
        """Has no half of a question or an answer stay in a pipe that is used again."""
        whole = False
        try:
            yield
            whole = True
        except _BROKEN:
            raise FetchError("unreadable", "the page broke the process that was to read it") from None
        finally:
            if not whole:
                await self.end()

    async def _ready(self, kind: KindName) -> None:
        if self._process is not None and self._process.returncode is not None:
            await self.end()
        if kind in self._prepared:
            return
        try:
            with anyio.fail_after(STARTING):
                if self._process is None:
                    self._process = await start_worker(_START, *map(str, self._limits))
                answer, _ = await self._answer({"kind": kind}, b"")
        except TimeoutError:
            raise FetchError("unreadable", f"no process to read it was ready within {STARTING} s") from None
        if "error" in answer:
            raise FetchError("unreadable", "what reads such pages can't be loaded")
        self._prepared.add(kind)

    async def _answer(self, head: Head, body: bytes) -> tuple[Head, bytes]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(pack(head, len(body)))
        for start in range(0, len(body), _CHUNK):
            await process.stdin.send(body[start : start + _CHUNK])
        answers = BufferedByteReceiveStream(process.stdout)
        head_length, body_length = lengths_of(await answers.receive_exactly(LENGTHS.size))
        answer = json.loads(await answers.receive_exactly(head_length))
        if not isinstance(answer, dict):
            raise ValueError("an answer is an object")
        return answer, await answers.receive_exactly(body_length)


class Pool:
    """At most `size` workers, of which only those have a process that were needed at the same time."""

    def __init__(self, size: int, limits: Limits) -> None:
        self._slots = anyio.Semaphore(size)
        self._workers = [Worker(limits) for _ in range(size)]
        self._idle = [*self._workers]

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes there are."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def warm(self, kind: KindName) -> None:
        """Starts one process, where there is none, for the first page to come."""
        if not self.pids and self._idle:
            await self._idle[-1].prepare(kind)

    async def ask(self, kind: KindName, head: Head, body: bytes) -> tuple[Head, bytes]:
        """What a worker answers. Raises FetchError `unreadable`."""
        async with self._slots:
            # The one that was used last: it is likely to have a process.
            worker = self._idle.pop()
            try:
                return await worker.ask(kind, head, body)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        """Ends all processes."""
        for worker in self._workers:
            await worker.end()
