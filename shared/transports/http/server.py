"""Runs uvicorn for the servers of one listener: binds the socket, serves it, and closes it cleanly."""

import asyncio
import math
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from typing import Any, cast

import anyio
import uvicorn
from anyio import CancelScope, create_task_group

from ...server.run import Run
from ...telemetry.footprint import fill_free_lists
from .app.access_log import AccessLog
from .app.app import HttpApp, HttpOptions, RootPage
from .app.mount import Mount
from .engine.capacity import Capacity, max_connections
from .engine.connections import Connection
from .engine.graceful_close import stop_accepting, wait_accepted
from .engine.write_backlog import Unread
from .listener import LINGER_SECONDS, listen

__all__ = ["HttpOptions", "http_app", "run_http", "run_mounts"]

KEEP_ALIVE_SECONDS = 30
"""Seconds for which an unused connection stays open: longer than in common clients, so that the client closes the
connection first."""

_ACCEPT_SECONDS = 0.05
"""Seconds in which uvicorn registers the connections that were accepted last. Each of them also ends with its next
answer, because its class has `all_closed` by then."""

OnStarted = Callable[[str, int], None]
"""Called with the address and the port of the listener."""


def http_app(running: Run[Any], options: HttpOptions) -> HttpApp:
    """Return the ASGI application that serves `running`. Raises ValueError for unusable options."""
    return HttpApp([Mount(running, options.path, options.limits)], options)


async def run_http(
    running: Run[Any], options: HttpOptions, *, started: OnStarted | None = None, stop: anyio.Event | None = None
) -> None:
    """Serve `running` until `stop` is set or this is cancelled.

    `started` is called with the address and port once requests are accepted. At the end, pending requests have
    `running.calls.limits.drain_seconds` to finish. Raises OSError, before anything starts, if the address can't be
    bound; ValueError for unusable options.
    """
    await _run(http_app(running, options), options, started, stop)


async def run_mounts(
    mounts: Sequence[Mount],
    options: HttpOptions,
    root_page: RootPage | None,
    *,
    started: OnStarted | None = None,
    stop: anyio.Event | None = None,
) -> bool:
    """Serve several servers like `run_http`, and open and close each of them here. `root_page` answers at `/`, if
    given. Returns False if a server did not end in time."""
    asgi = HttpApp(mounts, options, root_page)
    await _run(asgi, options, started, stop)
    return not asgi.has_unstopped_servers


async def _run(asgi: HttpApp, options: HttpOptions, started: OnStarted | None, stop: anyio.Event | None) -> None:
    drain_seconds = max(mount.drain_seconds for mount in asgi.mounts)
    with _bind(asgi.mounts, options) as listener:
        limit = options.connections or max_connections()
        # Behind a proxy all connections come from the same address, so a limit for each address would not help.
        capacity = None if options.trusted_proxies else Capacity(limit)
        attributes = {"body_seconds": options.limits.body_seconds, "capacity": capacity, "unread": Unread()}
        connection_class = type("Limited", (Connection,), attributes)
        server = _Uvicorn(_config(asgi, options, connection_class, math.ceil(drain_seconds) + 1), connection_class)
        if started is not None:
            host, port = listener.getsockname()[:2]
            server.on_started = lambda: started(host, port)
        fill_free_lists()  # before the first request, so that objects of a burst do not keep its memory in use
        async with create_task_group() as tasks:
            tasks.start_soon(_serve, server, listener, tasks.cancel_scope)
            try:
                await (stop or anyio.Event()).wait()
                await _retire(server, asgi.mounts, options, listener)
            finally:
                asgi.stop()
                server.stop()


async def _retire(server: "_Uvicorn", mounts: Sequence[Mount], options: HttpOptions, listener: socket.socket) -> None:
    """Let clients move to other processes, if there are any: workers on the same socket, or replicas elsewhere."""
    if options.listener is not None:
        await server.retire()
    elif any(mount.running is not None and mount.running.replication.replica is not None for mount in mounts):
        await server.retire(listener)


def _config(
    asgi: HttpApp, options: HttpOptions, connection_class: type[Connection], stop_seconds: int
) -> uvicorn.Config:
    return uvicorn.Config(
        AccessLog(asgi) if options.access_log else asgi,
        http=connection_class,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=[form for proxy in options.trusted_proxies for form in _network_forms(proxy)],
        backlog=options.backlog,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=stop_seconds,
    )


def _network_forms(network: str) -> tuple[str, ...]:
    """Return the network, and for IPv4 also its IPv4-mapped IPv6 network: a dual-stack socket reports IPv4 addresses
    in that form (RFC 4291, 2.5.5.2)."""
    parsed = ip_network(network, strict=False)
    if parsed.version == 6:
        return (network,)
    return network, f"::ffff:{parsed.network_address}/{96 + parsed.prefixlen}"


async def _serve(server: "_Uvicorn", listener: socket.socket, scope: CancelScope) -> None:
    # Shielded, because a cancelled uvicorn would leave its connections open. It ends within bounded time after
    # `stop`.
    with CancelScope(shield=True):
        await server.serve([listener])
    scope.cancel()


@contextmanager
def _bind(mounts: Sequence[Mount], options: HttpOptions) -> Iterator[socket.socket]:
    with options.listener or listen(options.host, options.port, options.backlog) as listener:
        host, port = listener.getsockname()[:2]
        with ExitStack() as registered:
            for mount in mounts:
                mount.endpoints.append((host, port))
                registered.callback(mount.endpoints.remove, (host, port))
            yield listener


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that ignores signals, reports its start, and waits for its stop without polling, so that it
    sleeps when idle."""

    def __init__(self, config: uvicorn.Config, connection_class: type[Connection]) -> None:
        """`connection_class` is the class of its connections. No other server may use this class, because `retire`
        sets an attribute of it."""
        super().__init__(config)
        self.connection_class = connection_class
        self.on_started: Callable[[], None] = lambda: None
        self._stopped = anyio.Event()

    async def retire(self, listener: socket.socket | None = None) -> None:
        """Accept no more connections, and let clients move to other processes: for `LINGER_SECONDS`, requests on
        existing connections are still served, and each connection ends with its next answer. `listener` is the
        socket, given only if no other process shares it."""
        if listener is not None:
            stop_accepting(listener)
        for server in self.servers:
            await wait_accepted(server)
            server.close()
        self.connection_class.all_closed = all_closed = asyncio.Event()
        for connection in self.server_state.connections:
            cast("Connection", connection).end_with_answer()
        await anyio.sleep(_ACCEPT_SECONDS)
        if self.server_state.connections:
            with anyio.move_on_after(LINGER_SECONDS):
                await all_closed.wait()

    def stop(self) -> None:
        """Let the server close its connections and return."""
        self.should_exit = True
        self._stopped.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `on_started`."""
        await super().startup(sockets)
        self.on_started()

    async def main_loop(self) -> None:
        """Wait for `stop`. uvicorn's own loop wakes up regularly, among other things to compute the `date` header;
        here each `Connection` computes it when a request arrives."""
        await self._stopped.wait()
