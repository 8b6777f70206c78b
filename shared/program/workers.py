"""`--workers N`: runs one program as several processes that serve the same port, and a parent process.

The parent binds the port and starts the workers, each of which runs the same command line again and accepts
connections on the inherited socket. The parent serves no client itself, and imports no web server. A worker that dies
is started again, after a pause that doubles each time it dies soon. At SIGTERM and SIGINT all workers finish their
work and end; a second signal ends them at once. SIGHUP replaces one worker after another with a new process, which
reads its settings again, while the port stays open. If the parent itself is killed, the workers detect it and end
cleanly.
"""

import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup

from ..telemetry.merged import keep_counts, merge
from ..telemetry.metrics import Figures
from ..telemetry.siblings import Totals
from ..transports.http.listener import listen
from .messages import exit_with_error
from .process import Options, announce, explain_startup_errors, run_program, set_up_process
from .worker_process import WorkerProcess

log = logging.getLogger("shared.program")

FIRST_SECONDS = 0.1
"""Seconds from the death of a worker to the start of its successor; they double each time a worker dies soon."""
MAX_PAUSE_SECONDS = 30.0
STABLE_SECONDS = 60.0
"""Seconds after which a worker counts as stable: when it dies later, the pause is the first one again."""
REFUSED = 2
"""The exit code of a program with invalid settings, with which a restart would fail as well."""

_STATE_KEY = "MCP_STATE_KEY"


def check_workers(options: Options) -> None:
    """Raise ValueError if several processes are impossible, or if they would not behave like one server."""
    if sys.platform == "win32":
        raise ValueError("--workers: several processes can't share a port on Windows")
    if options.transport == "stdio":
        raise ValueError(
            "--workers: over stdio, one process serves one client; several processes need --transport http"
        )
    if options.store is None:
        raise ValueError(
            "--workers: several processes must share a --store. Without it, a request could reach a process that "
            "does not know its session or task, streams would miss the messages of other processes and could not be "
            "resumed there, and each limit would apply to each process separately"
        )


def supervise(program: str, options: Options, exposed: str | None = None) -> int:
    """Run `options.workers` processes until a signal ends them, and return the exit code. `exposed` is the location
    of a secret that other users can read. If the options can't be used, the program ends with a message that begins
    with its name `program`."""
    try:
        check_workers(options)
    except ValueError as error:
        exit_with_error(program, str(error))
    set_up_process(options, exposed)
    parent = _Parent(options)
    return run_program(program, parent.run, prefer_uvloop=False) or parent.code


class _Parent:
    """The parent of the workers."""

    def __init__(self, options: Options) -> None:
        self.code = 0
        """The exit code of the program."""
        self._options = options
        self._listener: socket.socket
        self._tasks: TaskGroup
        self._serve_scope: CancelScope
        self._slots = [_Slot(self, number) for number in range(1, options.workers + 1)]
        self._workers: set[WorkerProcess] = set()
        self._ended_figures: list[Figures] = []
        self._restarts = 0
        self._renewal = anyio.Event()
        self._environment = dict(os.environ)
        if not self._environment.get(_STATE_KEY):
            log.warning(
                "%s is not set: using a random secret, which replicas on other machines do not know", _STATE_KEY
            )
            self._environment[_STATE_KEY] = secrets.token_urlsafe(32)

    async def run(self) -> None:
        """Run the workers until a signal ends them, or they can't be started."""
        if sys.platform == "win32":
            raise NotImplementedError("workers are not available on Windows")
        options = self._options
        with explain_startup_errors(f"can't listen on {options.host} port {options.port}"):
            self._listener = listen(options.host, options.port)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as self._tasks:
                with self._listener, CancelScope() as self._serve_scope:
                    self._tasks.start_soon(self._handle_signals, signals)
                    await self._serve()
                # The port is closed now, so that clients are refused at once.
                await self._end()
                self._tasks.cancel_scope.cancel()

    async def _end(self) -> None:
        async with anyio.create_task_group() as ending:
            for worker in self._workers:
                ending.start_soon(worker.end)

    async def _handle_signals(self, signals: AsyncIterator[signal.Signals]) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("workers are not available on Windows")
        async for number in signals:
            if number == signal.SIGHUP:
                self._renewal.set()
            elif not self._serve_scope.cancel_called:
                log.info("%s: ending", number.name)
                self._serve_scope.cancel()
            else:
                for worker in self._workers:
                    worker.kill()
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)

    async def _serve(self) -> None:
        async with anyio.create_task_group() as slot_tasks:
            # The first worker is started alone, so that errors in the settings are reported only once.
            slot_tasks.start_soon(self._slots[0].run)
            await self._slots[0].has_served.wait()
            for slot in self._slots[1:]:
                slot_tasks.start_soon(slot.run)
            for slot in self._slots:
                await slot.has_served.wait()
            announce(self._options, next(worker.announcement for worker in self._workers if worker.is_ready))
            while True:
                await self._renewal.wait()
                self._renewal = anyio.Event()
                await self._renew()

    async def _renew(self) -> None:
        """Replace one worker after another. If a new worker can't serve, the remaining old workers continue."""
        log.info("SIGHUP: replacing the workers one after another")
        for slot in self._slots:
            if not await slot.replace():
                log.error("the new worker failed to start: the remaining workers are not replaced")
                return
        log.info("all workers were replaced")

    async def start(self, number: int) -> WorkerProcess | None:
        """Return a new worker with this number; None if the process can't be started."""
        try:
            # Shielded, because a process that was started but not registered would continue forever.
            with CancelScope(shield=True):
                worker = await WorkerProcess.start(number, self._listener, self._environment)
        except OSError as error:
            log.error("worker %d can't be started: %s", number, error.strerror)
            return None
        self._workers.add(worker)
        self._tasks.start_soon(self._watch, worker)
        return worker

    async def _watch(self, worker: WorkerProcess) -> None:
        try:
            await worker.watch(self._collect_totals)
        finally:
            self._workers.discard(worker)
            # The counts of an ended worker are still included in the totals, because counters must not decrease.
            self._ended_figures = merge([self._ended_figures, keep_counts(worker.figures)])

    def handle_end(self, worker: WorkerProcess, pause: float) -> None:
        """Handle the unexpected end of a worker, whose successor is started after the pause. If the settings are
        invalid and no worker has served yet, the whole program ends; once a worker has served, the reason may be
        temporary, such as an unavailable store."""
        self._restarts += 1
        code = worker.code or 0
        if code == REFUSED and not any(slot.has_served.is_set() for slot in self._slots):
            self.code = REFUSED
            self._serve_scope.cancel()
            return
        how = f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        log.error("worker %d %s; restarting it in %g s", worker.number, how, pause)

    async def _collect_totals(self) -> Totals:
        async with anyio.create_task_group() as requests:
            for worker in self._workers:
                requests.start_soon(worker.request_figures)
        serving = [item for item in self._workers if item.is_ready and not item.is_leaving]
        others = [item for worker in self._workers - {*serving} for item in worker.figures]
        # The counts of workers that are finishing their last calls are included, but not what they report about the
        # state of the server.
        leaving = [item._replace(up=True, store_up=None) for item in others]
        processes = {str(item.number): item.pid for item in sorted(serving, key=lambda item: item.number)}
        figures = merge([*(item.figures for item in serving), leaving, self._ended_figures])
        return Totals(figures, {**processes, "parent": os.getpid()}, self._restarts)


class _Slot:
    """The place of one worker and its successors."""

    def __init__(self, parent: _Parent, number: int) -> None:
        self.has_served = anyio.Event()
        """Set when a worker of this slot has served."""
        self._parent = parent
        self._number = number
        self._worker: WorkerProcess | None = None
        self._lock = anyio.Lock()

    async def run(self) -> None:
        """Keep a worker running, except for a pause after one has died."""
        pause = 0.0
        while True:
            async with self._lock:
                if self._worker is None or self._worker.ended.is_set():
                    self._worker = await self._parent.start(self._number)
                worker = self._worker
            if worker is not None:
                await worker.settled.wait()
                if worker.is_ready:
                    self.has_served.set()
                await worker.ended.wait()
                if worker is not self._worker:
                    continue  # it was replaced
                if anyio.current_time() - worker.started_at >= STABLE_SECONDS:
                    pause = 0.0
            pause = min(MAX_PAUSE_SECONDS, 2 * pause) or FIRST_SECONDS
            if worker is not None:
                self._parent.handle_end(worker, pause)
            await anyio.sleep(pause)

    async def replace(self) -> bool:
        """Start another worker, and end the current one once the new one serves. Returns False if it does not."""
        worker = await self._parent.start(self._number)
        if worker is None:
            return False
        await worker.settled.wait()
        if not worker.is_ready:
            return False
        async with self._lock:
            previous, self._worker = self._worker, worker
        if previous is not None:
            await previous.end()
        return True
