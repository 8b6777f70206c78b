"""One server of several in a process, opened again whenever it fails.

opening ──▶ open ──▶ failed ──▶ (after a pause) ──▶ opening
   └──▶ failed                        └──▶ left

It lives in a task of its own, so that whatever becomes of it happens to nobody else. What it says of itself is for
those who are served by it, and whoever serves it: they watch it. The pause is short where the server has lived for a
while, and doubles with each life that was short: who can't live costs little, and who was mended is not waited for
long.
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
"""From a failure to the next opening, where the server has lived for a while; it doubles with each that has not."""
LONGEST_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""Who has lived so long is no longer one that can't."""
LAST_SECONDS = 1.0
"""How long a server has that was cancelled, because it did not end by itself in time."""

_STARTING = "it is starting"
_FAILING = "it failed while it served"
_STOPPED = "it has stopped"


class Supervised:
    """A server that is opened by `open`, again and again, from `start` to `close`."""

    def __init__(
        self, name: str, open: Callable[[], AbstractAsyncContextManager[Run[Any]]], *, alone: bool = False
    ) -> None:
        """Log lines name it, but where it is `alone` in its process."""
        self.name = name
        self.running: Run[Any] | None = None
        """The server while it is open."""
        self.reason = _STARTING
        """Why it is not open, in words without secrets that anybody may read; empty while it is."""
        self.pause = 0.0
        """Seconds from its last failure to when it is opened again; 0 before the first."""
        self._alone = alone
        self._life: asyncio.Task[None] | None = None
        self._open = open
        self._watching: list[Callable[[], None]] = []
        self._leaving = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._opened: float | None = None
        """When it was opened; None in a life that has not come so far."""
        self._told: str | None = None

    @property
    def is_leaving(self) -> bool:
        """Whether it is to end."""
        return self._leaving.is_set()

    def watch(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Has `heard` called after it was opened, when it begins to close, and when more is known of why. `heard` may
        not wait or raise. Gives what ends that, and may be called once."""
        # A list: the same function may watch twice.
        self._watching.append(heard)
        return lambda: self._watching.remove(heard)

    def start(self) -> None:
        """Opens it, and again whenever it fails, until `close`. Of what goes wrong the log hears; nothing is raised.
        It is called once."""
        self._life = asyncio.get_running_loop().create_task(self._live())

    def leave(self) -> None:
        """Has it begin to close; nobody waits for what has not opened yet."""
        self._leaving.set()
        if self._opened is None and self._scope is not None:
            self._scope.cancel()

    async def close(self, seconds: float) -> bool:
        """Closes it; whether it did end. Where it does not within `seconds` it is cancelled, and where it ignores
        that it is left behind."""
        self.leave()
        if self._life is None:
            return True
        await asyncio.wait([self._life], timeout=seconds)
        if not self._life.done() and self._scope is not None:
            # Not by the task, which would tear what is shielded from the thread it waits for.
            self._scope.cancel()
            await asyncio.wait([self._life], timeout=LAST_SECONDS)
        if not self._life.done():
            self._name_it()
            log.error("the server did not end in time and is left behind")
        return self._life.done()

    def _name_it(self) -> None:
        if not self._alone:
            server_name.set(self.name)

    async def _live(self) -> None:
        self._name_it()
        while not self.is_leaving:
            self._opened, self._scope = None, anyio.CancelScope()
            # Whatever is raised in a task is there to be looked at, and harms nobody.
            life = asyncio.get_running_loop().create_task(self._run(self._scope))
            life.add_done_callback(self._ended)
            await asyncio.wait([life])
            with anyio.move_on_after(self.pause):
                await self._leaving.wait()
        self._tell(None, _STOPPED)

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                async with self._open() as running:
                    await self._serve(running)
        except SystemExit as error:
            # asyncio would end the program for it, and with that all other servers.
            raise RuntimeError("the server wanted to end the program") from error

    async def _serve(self, running: Run[Any]) -> None:
        """Until it is to leave, or what the server has opened fails."""
        log.info("started")
        self._opened = anyio.current_time()
        self._tell(running, "")
        try:
            await self._leaving.wait()
        finally:
            self._tell(None, _STOPPED if self.is_leaving else _FAILING)

    def _ended(self, life: "asyncio.Task[None]") -> None:
        error = None if life.cancelled() else life.exception()
        if not self.is_leaving:
            self._fail(None if error is None else first_error(error))
        elif error is not None:
            log.error("the server did not end in order", exc_info=error)

    def _fail(self, error: BaseException | None) -> None:
        begun = self._opened is not None
        if self._opened is not None and anyio.current_time() - self._opened >= STEADY_SECONDS:
            self.pause, self._told = 0.0, None
        self.pause = min(LONGEST_SECONDS, 2 * self.pause) or FIRST_SECONDS
        # Tells the log: all of it the first time, one line where the same goes wrong again.
        said, self._told = self._told, repr(error)
        if said == self._told:
            log.warning("the server failed again as before; it is opened again in %g s", self.pause)
        # What an operator can mend is told as it is where a server runs alone: in one line.
        elif not begun and isinstance(error, OSError | ValueError):
            log.error("can't start: %s", " ".join(str(error).split()))
        else:
            log.error("the server failed", exc_info=error)
        kind = "it ended by itself" if error is None else type(error).__name__
        self._tell(None, f"{_FAILING if begun else 'it could not start'} ({kind}); the log says more")

    def _tell(self, running: Run[Any] | None, reason: str) -> None:
        self.running, self.reason = running, reason
        for heard in tuple(self._watching):
            heard()
