"""A worker, as its parent sees it: a process that is started, observed and ended.

starting ──▶ ready ──▶ leaving ──▶ ended
   └───────────┴──────────────────────▲
"""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import Process, TaskGroup

from ..telemetry.merged import from_json, to_json
from ..telemetry.metrics import Figures
from ..telemetry.siblings import Totals, encode_message
from .worker import VARIABLE, encode_worker

log = logging.getLogger("shared.program")

REPORT_SECONDS = 1.0
"""Seconds that a worker has to send its counts; after that the parent uses the last ones that it has sent."""
MARGIN_SECONDS = 2.0
"""Seconds from a worker's own time limit for its end until its parent kills it."""
_MAX_LINE = 64 * 1_048_576
"""Maximum number of bytes of one message from a worker."""

CollectTotals = Callable[[], Awaitable[Totals]]


class WorkerProcess:
    """One worker process, created by `start`."""

    def __init__(self, number: int, process: Process, channel: socket.socket) -> None:
        self.number = number
        self.pid = process.pid
        self.started_at = anyio.current_time()
        self.is_ready = False
        """True once the worker serves."""
        self.is_leaving = False
        """True if the worker was told to end."""
        self.announcement = ""
        """The message with which the worker has reported that it serves."""
        self.code: int | None = None
        """The exit code of the worker, negative for a signal; None while it runs."""
        self.figures: Sequence[Figures] = ()
        """The last counts that the worker has sent."""
        self.settled = anyio.Event()
        """Set when the worker serves, or when it has ended before it served."""
        self.ended = anyio.Event()
        self._drain_seconds = 0.0
        self._process = process
        self._channel = channel
        self._writer: asyncio.StreamWriter | None = None
        self._reported: asyncio.Event = asyncio.Event()

    @classmethod
    async def start(cls, number: int, listener: socket.socket, environment: Mapping[str, str]) -> "WorkerProcess":
        """Start another process of this program, with the same arguments, as the worker with that number. Raises
        OSError if the process can't be started."""
        parent_end, worker_end = socket.socketpair()
        descriptors = listener.fileno(), worker_end.fileno()
        try:
            with worker_end:
                process = await anyio.open_process(
                    [sys.executable, *sys.orig_argv[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=None,
                    stderr=None,
                    env={**environment, VARIABLE: encode_worker(number, *descriptors)},
                    pass_fds=descriptors,
                    # In a session of its own: Ctrl-C is for the parent, which stops its workers. A second signal,
                    # directly from the terminal, would keep a worker from finishing its calls.
                    start_new_session=True,
                )
        except OSError:
            parent_end.close()
            raise
        return cls(number, process, parent_end)

    async def watch(self, collect_totals: CollectTotals) -> None:
        """Receive the worker's messages until it has ended. `collect_totals` returns the counts of all workers, which
        the worker may request."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_messages, collect_totals, tasks)
                self.code = await self._process.wait()
                # Its last messages may still have to be read.
                tasks.cancel_scope.deadline = anyio.current_time() + REPORT_SECONDS
        finally:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._channel.close()
            for event in (self._reported, self.settled, self.ended):
                event.set()

    async def request_figures(self) -> None:
        """Request the worker's counts, and wait briefly for them."""
        if self._writer is None:
            return
        self._reported.clear()
        self._writer.write(encode_message(tell=True))
        with anyio.move_on_after(REPORT_SECONDS):
            await self._reported.wait()

    async def end(self) -> None:
        """Ask the worker to finish its work and end; kill it if it does not end in time."""
        self.is_leaving = True
        self._signal(signal.SIGTERM)
        with anyio.move_on_after(2 * self._drain_seconds + MARGIN_SECONDS):
            await self.ended.wait()
        if not self.ended.is_set():
            log.error("worker %d did not stop in time and was killed", self.number)
            self.kill()
            await self.ended.wait()

    def kill(self) -> None:
        """Kill the worker."""
        if sys.platform != "win32":
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def _read_messages(self, collect_totals: CollectTotals, tasks: TaskGroup) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("workers are not available on Windows")
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=_MAX_LINE)
        # A reset of the connection, or a line that is too long, also counts as the end of the messages.
        with suppress(ConnectionError, ValueError):
            while line := await reader.readline():
                try:
                    message: dict[str, Any] = json.loads(line)
                except ValueError:
                    continue  # truncated by the end of the worker
                if "figures" in message:
                    self.figures = from_json(message["figures"])
                    self._reported.set()
                elif "ready" in message:
                    self.is_ready, self.announcement, self._drain_seconds = True, message["ready"], message["drain"]
                    self.settled.set()
                if "ask" in message:
                    tasks.start_soon(self._answer, collect_totals, message["ask"])

    async def _answer(self, collect_totals: CollectTotals, number: int) -> None:
        totals = await collect_totals()
        if self._writer is not None:
            counts = {"figures": to_json(totals.figures), "processes": totals.processes, "restarts": totals.restarts}
            self._writer.write(encode_message(all=number, **counts))
