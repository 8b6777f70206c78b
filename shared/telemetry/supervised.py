"""One of several servers in a process, reopened whenever it fails.

opening ──▶ open ──▶ failed ──▶ (after a pause) ──▶ opening
   └──▶ failed                        └──▶ left

It runs in a separate task, so that its failure affects nothing else. Its clients and the program can watch its state.
The pause is short if the server has run for a while, and doubles with each short run: a server that can't run costs
little, and a repaired one is available soon.
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

FIRST_SECONDS = 1.0
"""Seconds from a failure to the next opening, if the server has run for a while; they double with each short run."""
MAX_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""Seconds after which a server is considered steady."""
LAST_SECONDS = 1.0
"""Seconds for a server to end after it was cancelled because it did not end in time."""

_STARTING = "it is starting"
_FAILING = "it failed while serving"
_STOPPED = "it has stopped"


class SupervisedServer:
    """A server that is reopened whenever it stops, between `start` and `close`."""

    def __init__(
        self, name: str, open: Callable[[], AbstractAsyncContextManager[Run[Any]]], *, alone: bool = False
    ) -> None:
        """Log lines contain the name, unless the server is `alone` in its process."""
        self.name = name
        self.running: Run[Any] | None = None
        """The server while it is open."""
        self.reason = _STARTING
        """The public reason why the server is not open, without secrets; empty while it is open."""
        self.pause = 0.0
        """Seconds from the last failure to the next opening; 0 before the first failure."""
        self._alone = alone
        self._task: asyncio.Task[None] | None = None
        self._open = open
        self._watchers: list[Callable[[], None]] = []
        self._closing = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._opened: float | None = None
        """The time at which the server was opened; None before that."""
        self._last_logged: str | None = None

    @property
    def is_closing(self) -> bool:
        """True if the server is to end."""
        return self._closing.is_set()

    def watch(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after the server has opened, when it begins to close, and when there is a more precise
        reason. `notify` must neither wait nor raise. Return a function that stops the notifications; call it at most
        once."""
        # The watchers are a list, since the same function may watch twice.
        self._watchers.append(notify)
        return lambda: self._watchers.remove(notify)

    def start(self) -> None:
        """Open the server, and reopen it whenever it fails, until `close`. Errors are logged and not raised. Call
        this only once."""
        self._task = asyncio.get_running_loop().create_task(self._keep_running())

    def leave(self) -> None:
        """Begin to close the server; an opening in progress is cancelled."""
        self._closing.set()
        if self._opened is None and self._scope is not None:
            self._scope.cancel()

    async def close(self, seconds: float) -> bool:
        """Close the server, and return False if it did not end. If it does not end within `seconds`, it is cancelled;
        if it ignores the cancellation, it is abandoned."""
        self.leave()
        if self._task is None:
            return True
        await asyncio.wait([self._task], timeout=seconds)
        if not self._task.done() and self._scope is not None:
            # Cancelling the task would separate shielded work from the thread that it waits for.
            self._scope.cancel()
            await asyncio.wait([self._task], timeout=LAST_SECONDS)
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
            # In a separate task, an exception can be inspected, and affects nothing else.
            run = asyncio.get_running_loop().create_task(self._run(self._scope))
            run.add_done_callback(self._on_end)
            await asyncio.wait([run])
            with anyio.move_on_after(self.pause):
                await self._closing.wait()
        self._set_state(None, _STOPPED)

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                async with self._open() as running:
                    await self._serve(running)
        except SystemExit as error:
            # asyncio would end the program because of it, and with it all other servers.
            raise RuntimeError("the server tried to exit the program") from error

    async def _serve(self, running: Run[Any]) -> None:
        """Wait until the server is to end, or fails."""
        log.info("started")
        self._opened = anyio.current_time()
        self._set_state(running, "")
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
        self.pause = min(MAX_PAUSE_SECONDS, 2 * self.pause) or FIRST_SECONDS
        # The whole error is logged the first time, and one line if it is repeated.
        previous, self._last_logged = self._last_logged, repr(error)
        if previous == self._last_logged:
            log.warning("the server failed again in the same way; restarting it in %g s", self.pause)
        # An error that an operator can fix is logged in one line, as for a server that runs alone.
        elif not was_open and isinstance(error, OSError | ValueError):
            log.error("can't start: %s", " ".join(str(error).split()))
        else:
            log.error("the server failed", exc_info=error)
        kind = "it stopped by itself" if error is None else type(error).__name__
        self._set_state(None, f"{_FAILING if was_open else 'it could not start'} ({kind}); the log says more")

    def _set_state(self, running: Run[Any] | None, reason: str) -> None:
        self.running, self.reason = running, reason
        for notify in tuple(self._watchers):
            notify()
