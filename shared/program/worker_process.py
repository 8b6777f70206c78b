"""A worker as its parent sees it: a process that is started, heard and ended.

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
from ..telemetry.siblings import Whole, line
from .worker import VARIABLE, described

log = logging.getLogger("shared.program")

TELL_SECONDS = 1.0
"""How long a worker has to say what it has counted; what it said last counts where it does not."""
MARGIN_SECONDS = 2.0
"""How much longer than it should need at most a worker has to end before it is killed."""
_LONGEST_LINE = 64 * 1_048_576

Ask = Callable[[], Awaitable[Whole]]


class WorkerProcess:
    """One process. It is made by `start`."""

    def __init__(self, number: int, process: Process, channel: socket.socket) -> None:
        self.number = number
        self.pid = process.pid
        self.begun = anyio.current_time()
        self.is_ready = False
        """Whether it has served."""
        self.is_leaving = False
        """Whether it was told to end."""
        self.text = ""
        """What it says once it serves."""
        self.code: int | None = None
        """How it has ended: its exit code, or the number of a signal, negative."""
        self.figures: Sequence[Figures] = ()
        """What it has counted, as it said last."""
        self.settled = anyio.Event()
        """Set when it serves, or has ended before."""
        self.ended = anyio.Event()
        self._drain_seconds = 0.0
        self._process = process
        self._channel = channel
        self._writer: asyncio.StreamWriter | None = None
        self._told: asyncio.Event = asyncio.Event()

    @classmethod
    async def start(cls, number: int, listener: socket.socket, environment: Mapping[str, str]) -> "WorkerProcess":
        """Starts this program once more, with the same arguments, as the worker of that number. Raises OSError where
        there can be no process."""
        ours, theirs = socket.socketpair()
        descriptors = listener.fileno(), theirs.fileno()
        try:
            with theirs:
                process = await anyio.open_process(
                    [sys.executable, *sys.orig_argv[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=None,
                    stderr=None,
                    env={**environment, VARIABLE: described(number, *descriptors)},
                    pass_fds=descriptors,
                    # Ctrl-C is for the parent, which tells its workers to end. Told twice, they could not drain.
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        return cls(number, process, ours)

    async def watch(self, ask: Ask) -> None:
        """Hears it until it has ended; `ask` gives what all workers have counted, which it may want to know."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, ask, tasks)
                self.code = await self._process.wait()
                # Its last words come before its end.
                tasks.cancel_scope.deadline = anyio.current_time() + TELL_SECONDS
        finally:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._channel.close()
            for waited_for in (self._told, self.settled, self.ended):
                waited_for.set()

    async def tell(self) -> None:
        """Has it say what it has counted, if it can do so soon."""
        if self._writer is None:
            return
        self._told.clear()
        self._writer.write(line(tell=True))
        with anyio.move_on_after(TELL_SECONDS):
            await self._told.wait()

    async def end(self) -> None:
        """Has it finish what is under way and end; kills it where it does not in time."""
        self.is_leaving = True
        self._signal(signal.SIGTERM)
        with anyio.move_on_after(2 * self._drain_seconds + MARGIN_SECONDS):
            await self.ended.wait()
        if not self.ended.is_set():
            log.error("worker %d did not end in time and is killed", self.number)
            self.kill()
            await self.ended.wait()

    def kill(self) -> None:
        """Ends it at once."""
        if sys.platform != "win32":
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def _hear(self, ask: Ask, tasks: TaskGroup) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("there are no workers on Windows")
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=_LONGEST_LINE)
        # A reset is an end as well, and so is what is longer than anything it has to say.
        with suppress(ConnectionError, ValueError):
            while said := await reader.readline():
                if (number := self._heed(said)) is not None:
                    tasks.start_soon(self._answer, ask, number)

    def _heed(self, data: bytes) -> int | None:
        """Takes in what it said; the number of its question, if it was one."""
        try:
            said: dict[str, Any] = json.loads(data)
        except ValueError:
            return None  # cut off by its end
        if "figures" in said:
            self.figures = from_json(said["figures"])
            self._told.set()
        elif "ready" in said:
            self.is_ready, self.text, self._drain_seconds = True, said["ready"], said["drain"]
            self.settled.set()
        return said.get("ask")

    async def _answer(self, ask: Ask, number: int) -> None:
        whole = await ask()
        if self._writer is not None:
            told = {"figures": to_json(whole.figures), "processes": whole.processes, "restarts": whole.restarts}
            self._writer.write(line(all=number, **told))
