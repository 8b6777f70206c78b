"""One server at a path of an HTTP listener: its endpoint, lifecycle, readiness and counts.

If a program has only one server, the program has already opened it, and it is served at once. If there are several,
each is opened here, in a separate task, so that its failure does not affect the others: while it starts, and after it
has failed, its endpoint refuses requests with the reason, and the others continue. A failed server is opened again,
as if it were new.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import anyio
from anyio import create_task_group
from pydantic import BaseModel

from ....contracts import Observer, Stores
from ....errors import Unavailable
from ....extensions.dialects import DIALECTS
from ....protocol.http.rules import refuse
from ....protocol.types.base import Implementation
from ....server.extension import Extension
from ....server.run import Run
from ....server.server import Server
from ....telemetry.audit import Audit, audit_calls
from ....telemetry.logs import server_name
from ....telemetry.metrics import Figures, Metrics
from ....telemetry.readiness import Phase, Readiness, State
from ....telemetry.supervised import SupervisedServer
from ..legacy_sse.endpoint import sse_paths
from ..limits.endpoint_limits import EndpointLimits
from .endpoint import Endpoint

_MAX_VERSION_LENGTH = 100
"""The maximum length of a server's reported version."""


class Mount:
    """One server at its path, from `open` to `close`."""

    def __init__(
        self,
        served: Server[Any] | Run[Any],
        path: str,
        limits: EndpointLimits,
        settings: BaseModel | None = None,
        name: str = "",
    ) -> None:
        """`served` is a server to open here, with `settings`, or a run that is already open. A server that is opened
        here is named in log lines."""
        self.server = served.server if isinstance(served, Run) else served
        self.path = path
        self.paths = (path, *sse_paths(path))
        """The paths at which the server answers."""
        self.name = name or self.server.implementation.name
        self.is_only_server = settings is None
        """True if this server is the whole program, and not one of several."""
        self.trace: Observer | None = None
        """Observes received and sent messages, if the server is opened here."""
        self.before_opening: Callable[[], Awaitable[None]] | None = None
        """Awaited before each opening of the server here."""
        self.scopes: Callable[[], tuple[Sequence[str], Sequence[str]]] = self._scopes
        """Returns the scopes that the server knows, and those that clients should request first."""
        self.audit: Audit | None = None
        """Records requests."""
        self.stores: Stores | None = None
        """The storage shared with other replicas, if the server is opened here."""
        self.endpoints: list[tuple[str, int]] = served.hooks.endpoints if isinstance(served, Run) else []
        """The addresses and ports of the listener."""
        self.endpoint = Endpoint(limits, path)
        self.readiness = Readiness()
        self.metrics = Metrics()
        self.supervised = SupervisedServer(self.name, self._run, alone=self.is_only_server)
        """The supervised server, whose state other parts of the program may watch."""
        self.supervised.watch(self._on_state_change)
        self._served = served
        self._settings = settings
        self.extensions: list[Extension[Any]] = [DIALECTS] if limits.dialects else []
        """The extensions with which the server is opened here."""
        self._is_open = anyio.Event()

    def set_audit(self, audit: Audit) -> None:
        """Record in `audit` the refused requests and, if the server is opened here, its calls."""
        self.audit = audit
        self.endpoint.on_refused = partial(audit.log_refusal, self.name)
        self.endpoint.on_served = partial(audit.log_request, self.name)
        self.extensions.append(audit_calls(audit, self.name))

    @property
    def running(self) -> Run[Any] | None:
        """The server while it runs."""
        return self._served if isinstance(self._served, Run) else self.supervised.running

    @property
    def implementation(self) -> Implementation:
        """The server's description of itself. A proxy has the description of the server behind it, if known."""
        running = self.running
        return (self.server if running is None else running.identity).implementation

    async def claim(self, name: str, seconds: float) -> bool:
        """Claim `name` for `seconds` for all replicas. Return False if another claim of it is still valid; always
        True without replicas. Raises Unavailable while the server is not open, and OSError if the replicas can't be
        reached."""
        running = self.running
        if running is None and self.stores is not None:
            raise Unavailable
        replica = None if running is None else running.replication.replica
        return replica is None or await replica.blobs.claim(name, seconds)

    def _scopes(self) -> tuple[Sequence[str], Sequence[str]]:
        running = self.running
        sources = (
            ()
            if running is None
            else (extension.scopes for extension in running.extensions if extension.scopes is not None)
        )
        return next((scopes(running) for scopes in sources if running is not None), ((), ()))

    async def state(self) -> State:
        """Return the current state of the server, within two seconds. Never raises."""
        if not self.is_only_server:
            server_name.set(self.name)
        state = await self.readiness.state()
        if state.phase is Phase.READY and self.audit is not None and self.audit.is_blocked:
            return State(Phase.DEGRADED, "the audit log can't be written, so no requests are accepted")
        return state

    def figures(self) -> Figures:
        """Return the current counts of the server."""
        endpoint, running = self.endpoint, self.running
        replica = None if running is None else running.replication.replica
        return Figures(
            server=self.name,
            metrics=self.metrics,
            up=self.readiness.phase is Phase.READY and running is not None and running.hooks.is_reachable(),
            sessions=endpoint.sessions,
            streams=endpoint.streams,
            subscriptions=0
            if running is None
            else sum(part.changes.subscribed_resources for part in running.parts.all),
            refused=endpoint.refused,
            unwritten=None if self.audit is None else self.audit.lost_lines,
            limited={} if endpoint.quotas is None else endpoint.quotas.refused,
            store_up=None if replica is None else replica.disconnect_reason is None,
            store_lost=self.metrics.losses,
            path=self.path,
            version=self.implementation.version[:_MAX_VERSION_LENGTH],
            state=self.readiness.phase.value,
        )

    @property
    def drain_seconds(self) -> float:
        """How long pending requests may take to finish when the server is closed, in seconds."""
        limits = self.server.limits if self.running is None else self.running.calls.limits
        return limits.drain_seconds

    # Its lifecycle

    async def open(self) -> None:
        """Begin to serve. Waits until a program's only server is open; one of several is opened in the background."""
        self.supervised.start()
        if self.is_only_server:
            await self._is_open.wait()

    async def close(self) -> bool:
        """End the remaining sessions, and then the server. If the server does not end within its limits, it is
        cancelled; if it ignores the cancellation, it is abandoned, and the result is False."""
        return await self.supervised.close(self.drain_seconds)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[Run[Any]]:
        """Open the server and serve its sessions during the block."""
        opening = nullcontext(self._served) if isinstance(self._served, Run) else self._open_server(self._served)
        async with opening as running, create_task_group() as tasks:
            self.metrics.attach(running)
            self.endpoint.start(running, tasks)
            yield running
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _open_server(self, server: Server[Any]) -> AsyncIterator[Run[Any]]:
        if self.before_opening is not None:
            await self.before_opening()
        async with server.open(self._settings, extensions=self.extensions, stores=self.stores) as running:
            running.hooks.endpoints, running.hooks.trace = self.endpoints, self.trace
            yield running

    def _on_state_change(self) -> None:
        """Handle the opening, closing or failure of the server."""
        server = self.supervised
        if server.running is not None:
            self.readiness.on_start(server.running)
            self._is_open.set()
        elif not server.is_closing:
            reason = f"this server has failed: {server.reason}. It is being restarted; try again later"
            self.endpoint.fail(refuse(503, reason, Retry_After=str(max(1, math.ceil(server.pause)))))
            self.readiness.on_failure(server.reason)
        elif self.readiness.phase is not Phase.STOPPED:
            self.endpoint.stop()
            self.readiness.on_stop()
