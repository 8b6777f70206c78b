"""A worker from its parent's point of view: a process that is started, observed and ended.

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
"""Seconds for a worker to send its counts; after that its last ones are used."""
MARGIN_SECONDS = 2.0
"""Seconds beyond the maximum time to end, after which a worker is killed."""
_MAX_LINE = 64 * 1_048_576
"""Maximum number of bytes of one message from a worker."""

Ask = Callable[[], Awaitable[Totals]]


class WorkerProcess:
    """One process, created by `start`."""

    def __init__(self, number: int, process: Process, channel: socket.socket) -> None:
        self.number = number
        self.pid = process.pid
        self.started_at = anyio.current_time()
        self.is_ready = False
        """True once it has served."""
        self.is_leaving = False
        """True if it was told to end."""
        self.announcement = ""
        """Its message once it serves."""
        self.code: int | None = None
        """Its exit code, or the number of a signal, negative."""
        self.figures: Sequence[Figures] = ()
        """Its last counts."""
        self.settled = anyio.Event()
        """Set when it serves, or has ended before."""
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
        ours, theirs = socket.socketpair()
        descriptors = listener.fileno(), theirs.fileno()
        try:
            with theirs:
                process = await anyio.open_process(
                    [sys.executable, *sys.orig_argv[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=None,
                    stderr=None,
                    env={**environment, VARIABLE: encode_worker(number, *descriptors)},
                    pass_fds=descriptors,
                    # Ctrl-C is for the parent, which stops its workers. After two signals they could not drain.
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        return cls(number, process, ours)

    async def watch(self, ask: Ask) -> None:
        """Receive its messages until it has ended; `ask` returns the counts of all workers, which it may request."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_messages, ask, tasks)
                self.code = await self._process.wait()
                # Its last messages arrive before its end.
                tasks.cancel_scope.deadline = anyio.current_time() + REPORT_SECONDS
        finally:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._channel.close()
            for event in (self._reported, self.settled, self.ended):
                event.set()

    async def request_figures(self) -> None:
        """Request its counts, and wait briefly for them."""
        if self._writer is None:
            return
        self._reported.clear()
        self._writer.write(encode_message(tell=True))
        with anyio.move_on_after(REPORT_SECONDS):
            await self._reported.wait()

    async def end(self) -> None:
        """Ask it to finish its work and end; kill it if it does not end in time."""
        self.is_leaving = True
        self._signal(signal.SIGTERM)
        with anyio.move_on_after(2 * self._drain_seconds + MARGIN_SECONDS):
            await self.ended.wait()
        if not self.ended.is_set():
            log.error("worker %d did not stop in time and was killed", self.number)
            self.kill()
            await self.ended.wait()

    def kill(self) -> None:
        """End it at once."""
        if sys.platform != "win32":
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def _read_messages(self, ask: Ask, tasks: TaskGroup) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("workers are not available on Windows")
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=_MAX_LINE)
        # A reset also counts as the end, and so does a line that is too long.
        with suppress(ConnectionError, ValueError):
            while line := await reader.readline():
                try:
                    message: dict[str, Any] = json.loads(line)
                except ValueError:
                    continue  # cut off by its end
                if "figures" in message:
                    self.figures = from_json(message["figures"])
                    self._reported.set()
                elif "ready" in message:
                    self.is_ready, self.announcement, self._drain_seconds = True, message["ready"], message["drain"]
                    self.settled.set()
                if "ask" in message:
                    tasks.start_soon(self._answer, ask, message["ask"])

    async def _answer(self, ask: Ask, number: int) -> None:
        totals = await ask()
        if self._writer is not None:
            counts = {"figures": to_json(totals.figures), "processes": totals.processes, "restarts": totals.restarts}
            self._writer.write(encode_message(all=number, **counts))
