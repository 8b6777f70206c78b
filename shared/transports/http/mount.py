"""One server at a path of an HTTP listener: its endpoint, its life, its readiness and its counts.

A server that was opened already, by whoever runs it alone, is served at once. One of several is opened here, in a
task of its own, so that whatever becomes of it happens to nobody else: while it starts, and after it failed, its
endpoint refuses with the reason, and the others serve on.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio import create_task_group
from anyio.abc import TaskGroup
from pydantic import BaseModel

from ...contracts import Observer
from ...extensions.dialects import DIALECTS
from ...kit.tasks import first_error
from ...ops.logs import server_name
from ...ops.metrics import Figures, Metrics
from ...ops.readiness import Phase, Readiness, State
from ...protocol.http.rules import refuse
from ...server.running import Running
from ...server.server import Server
from .endpoint import Endpoint
from .legacy_sse import sse_paths
from .limits import EndpointLimits
from .reply import Http

__all__ = ["Mount"]

log = logging.getLogger("shared.transports.http")

_FAILED = refuse(503, "this server has failed; its operator finds the reason in the log")
_FAILING = "it failed while it served"
LAST_SECONDS = 1.0
"""How long a server has that was cancelled, because it did not end by itself in time."""


class Mount:
    """One server at its path. It lives from `open` to `close`."""

    def __init__(
        self,
        served: Server[Any] | Running[Any],
        path: str,
        limits: EndpointLimits,
        settings: BaseModel | None = None,
        name: str = "",
    ) -> None:
        """A server is opened here, with `settings`, and log lines name it; one that runs is served as it is."""
        self.running = served if isinstance(served, Running) else None
        """The server, from when it runs."""
        self.server = served.server if isinstance(served, Running) else served
        self.path = path
        self.paths = (path, *sse_paths(path))
        """Where it answers."""
        self.name = name or self.server.implementation.name
        self.trace: Observer | None = None
        """Who sees what it receives and sends, where it is opened here."""
        self.endpoints: list[tuple[str, int]] = [] if self.running is None else self.running.endpoints
        """The addresses and ports of its listener."""
        self.endpoint = Endpoint(limits, path)
        self.readiness = Readiness()
        self.metrics = Metrics()
        self.serve = self.endpoint.serve if settings is None else self._serve
        """Serves one request, which has passed the guards."""
        self._settings = settings
        self._extensions = [DIALECTS] if limits.dialects else []
        self._opened = anyio.Event()
        self._closing = anyio.Event()
        self._life: asyncio.Task[None] | None = None
        self._scope: anyio.CancelScope | None = None

    async def _serve(self, method: str, http: Http) -> None:
        server_name.set(self.name)
        await self.endpoint.serve(method, http)

    async def state(self) -> State:
        """How the server is now. Takes two seconds at most, and raises nothing."""
        if self._settings is not None:
            server_name.set(self.name)
        return await self.readiness.state()

    def figures(self) -> Figures:
        """What there is to tell of the server at this moment."""
        endpoint = self.endpoint
        return Figures(
            server=self.name,
            metrics=self.metrics,
            up=self.readiness.phase is Phase.READY,
            sessions=endpoint.sessions,
            streams=endpoint.streams,
            subscriptions=0 if self.running is None else self.running.changes.held,
            refused=endpoint.refused,
        )

    @property
    def drain_seconds(self) -> float:
        """How long what is under way may take to finish at the end."""
        return (self.running or self.server).limits.drain_seconds

    # Its life

    async def open(self) -> None:
        """Begins to serve; returns at once where the server has yet to be opened."""
        self._scope = anyio.CancelScope()
        self._life = asyncio.get_running_loop().create_task(self._live(self._scope))
        self._life.add_done_callback(self._ended)
        if self._settings is None:
            await self._opened.wait()

    async def close(self) -> bool:
        """Ends what is left of all sessions, and then the server; whether it did end. One that does not in the time
        of its limits is cancelled, and one that ignores that is left behind."""
        self._closing.set()
        life, scope = self._life, self._scope
        if life is None or scope is None:
            return True
        # There is nothing to wait for in a server that has not started.
        await asyncio.wait([life], timeout=self.drain_seconds if self._opened.is_set() else 0)
        if not life.done():
            # Not `life.cancel()`, which would tear what is shielded from the thread it waits for.
            scope.cancel()
            await asyncio.wait([life], timeout=LAST_SECONDS)
        if not life.done():
            server_name.set(self.name)
            log.error("the server did not end in time and is left behind")
        return life.done()

    async def _live(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                async with self._run() as running, create_task_group() as tasks:
                    await self._take_requests(running, tasks)
                    tasks.cancel_scope.cancel()
        except SystemExit as error:
            # asyncio would end the program for it, and with that all other servers.
            raise RuntimeError("the server wanted to end the program") from error

    async def _take_requests(self, running: Running[Any], tasks: TaskGroup) -> None:
        """Serves until it is closed, or what the server has opened fails."""
        self.metrics.count(running)
        self.endpoint.start(running, tasks)
        self.readiness.served(running)
        self._opened.set()
        try:
            await self._closing.wait()
        finally:
            if self._closing.is_set():
                self.endpoint.stop()
            else:
                self._fail(_FAILING)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[Running[Any]]:
        if self.running is not None:
            yield self.running
            return
        server_name.set(self.name)
        async with self.server.open(self._settings, extensions=self._extensions) as self.running:
            self.running.endpoints, self.running.trace = self.endpoints, self.trace
            log.info("started")
            yield self.running

    def _ended(self, life: "asyncio.Task[None]") -> None:
        error = None if life.cancelled() else life.exception()
        if self._settings is not None:
            server_name.set(self.name)
        if self._closing.is_set():
            self.readiness.stopped()
            if error is not None:
                log.error("the server did not end in order", exc_info=error)
            return
        begun, first = self._opened.is_set(), None if error is None else first_error(error)
        kind = "it ended by itself" if first is None else type(first).__name__
        self._fail(f"{_FAILING if begun else 'it could not start'} ({kind}); the log says more")
        # What an operator can mend is told as it is where a server runs alone: in one line.
        if not begun and isinstance(first, OSError | ValueError):
            log.error("can't start: %s", " ".join(str(first).split()))
        else:
            log.error("the server failed", exc_info=error)

    def _fail(self, reason: str) -> None:
        self.endpoint.fail(_FAILED)
        self.readiness.failed(reason)
