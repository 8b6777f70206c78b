"""One of several servers in a process, reopened whenever it fails.

opening ──▶ open ──▶ failed ──▶ pause ──▶ opening again
   └──▶ failed                   └──▶ closed

It runs in a separate task, so that its failure affects nothing else. Its state can be watched. The pause before the
server is opened again is short if it has run for a while, and doubles with each short run. So a server that can't run
takes little time, and a repaired one is available soon.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from ..concurrency import first_error
from ..server.run import Run
from .logs import server_name

log = logging.getLogger("shared.ops")

FIRST_PAUSE_SECONDS = 1.0
"""Seconds from the failure of a server that has run for a while until it is opened again."""
MAX_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""Seconds that a server must have run so that the next pause is the first one again."""
CANCEL_SECONDS = 1.0
"""Seconds that a server has to end after it was cancelled."""

_STARTING = "it is starting"
_FAILING = "it failed while serving"
_STOPPED = "it has stopped"


class SupervisedServer:
    """A server that is reopened whenever it stops, between `start` and `close`."""

    def __init__(
        self, name: str, open: Callable[[], AbstractAsyncContextManager[Run[Any]]], *, alone: bool = False
    ) -> None:
        """`open` opens the server. Log lines contain its name, unless it is `alone` in the process."""
        self.name = name
        self.running: Run[Any] | None = None
        """The run of the server while it is open; else None."""
        self.reason = _STARTING
        """Why the server is not open, in words for clients, without secrets; empty while it is open."""
        self.pause = 0.0
        """Seconds from the last failure until the server is opened again; 0 before the first failure."""
        self._alone = alone
        self._task: asyncio.Task[None] | None = None
        self._open = open
        self._watchers: list[Callable[[], None]] = []
        self._closing = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._opened: float | None = None
        """The time at which the server was opened; None if it is not open."""
        self._last_logged: str | None = None

    @property
    def is_closing(self) -> bool:
        """True if the server is to be closed and not opened again."""
        return self._closing.is_set()

    def watch(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after the server has opened, before it closes, and each time that `reason` changes. `notify`
        must neither wait nor raise. Return a function that stops these calls; call it at most once."""
        # A list, not a set, since the same function may be registered twice.
        self._watchers.append(notify)
        return lambda: self._watchers.remove(notify)

    def start(self) -> None:
        """Open the server, and open it again whenever it fails, until `close`. Errors are logged, not raised. Call
        this only once."""
        self._task = asyncio.get_running_loop().create_task(self._keep_running())

    def begin_closing(self) -> None:
        """Begin to close the server. If it is just being opened, that is cancelled."""
        self._closing.set()
        if self._opened is None and self._scope is not None:
            self._scope.cancel()

    async def close(self, seconds: float) -> bool:
        """Close the server. If it does not end within `seconds`, it is cancelled. Return False if it does not end
        then either; it is abandoned."""
        self.begin_closing()
        if self._task is None:
            return True
        await asyncio.wait([self._task], timeout=seconds)
        if not self._task.done() and self._scope is not None:
            # Cancel the scope, not the task: the latter would also cancel shielded work, which waits for a thread.
            self._scope.cancel()
            await asyncio.wait([self._task], timeout=CANCEL_SECONDS)
        if not self._task.done():
            self._set_server_name()
            log.error("the server did not stop in time and was abandoned")
        return self._task.done()

    def _set_server_name(self) -> None:
        if not self._alone:
            server_name.set(self.name)

    async def _keep_running(self) -> None:
        self._set_server_name()
        while not self.is_closing:
            self._opened, self._scope = None, anyio.CancelScope()
            # In a separate task, whose exception `_on_end` handles.
            run = asyncio.get_running_loop().create_task(self._run(self._scope))
            run.add_done_callback(self._on_end)
            await asyncio.wait([run])
            with anyio.move_on_after(self.pause):
                await self._closing.wait()
        self._set_state(None, _STOPPED)

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                async with self._open() as run:
                    await self._serve(run)
        except SystemExit as error:
            # asyncio lets SystemExit through, which would end the program and all other servers.
            raise RuntimeError("the server tried to exit the program") from error

    async def _serve(self, run: Run[Any]) -> None:
        """Set the state to open, and wait until the server is to be closed, or fails."""
        log.info("started")
        self._opened = anyio.current_time()
        self._set_state(run, "")
        try:
            await self._closing.wait()
        finally:
            self._set_state(None, _STOPPED if self.is_closing else _FAILING)

    def _on_end(self, run: "asyncio.Task[None]") -> None:
        error = None if run.cancelled() else run.exception()
        if not self.is_closing:
            self._schedule_restart(None if error is None else first_error(error))
        elif error is not None:
            log.error("the server did not stop cleanly", exc_info=error)

    def _schedule_restart(self, error: BaseException | None) -> None:
        was_open = self._opened is not None
        if self._opened is not None and anyio.current_time() - self._opened >= STEADY_SECONDS:
            self.pause, self._last_logged = 0.0, None
        self.pause = min(MAX_PAUSE_SECONDS, 2 * self.pause) or FIRST_PAUSE_SECONDS
        # Log the traceback the first time, and only one line if the same error repeats.
        previous, self._last_logged = self._last_logged, repr(error)
        if previous == self._last_logged:
            log.warning("the server failed again in the same way; restarting it in %g s", self.pause)
        # An error that the operator can fix needs no traceback.
        elif not was_open and isinstance(error, OSError | ValueError):
            log.error("can't start: %s", " ".join(str(error).split()))
        else:
            log.error("the server failed", exc_info=error)
        kind = "it stopped by itself" if error is None else type(error).__name__
        self._set_state(None, f"{_FAILING if was_open else 'it could not start'} ({kind}); the log says more")

    def _set_state(self, run: Run[Any] | None, reason: str) -> None:
        self.running, self.reason = run, reason
        for notify in tuple(self._watchers):
            notify()
