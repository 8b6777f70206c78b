"""The HTTP server: the endpoint, its guards and the health check as one ASGI application, and uvicorn around it.

Every request is guarded before anything else looks at it: repeated headers, host and origin; then the token.
Pages of an allowed origin get the CORS headers without which browsers keep the answers from them.
"""

import math
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import uvicorn
from anyio import CancelScope, create_task_group
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..auth.tokens import Tokens
from ..ops.health import health
from ..protocol.http_rules import JSON, Headers, Refusal, accepts_gzip, check_single, read_headers, refuse
from ..protocol.jsonrpc import encode
from ..protocol.sites import Sites, is_loopback
from ..server.app import Server
from .http_connections import Connection
from .http_endpoint import Endpoint, EndpointLimits
from .http_streams import Http, Reply

__all__ = ["HttpApp", "HttpOptions", "http_app", "run_http"]

HEALTH = "/healthz"
KEEP_ALIVE = 30
"""Seconds an unused connection stays open: longer than common clients keep theirs, so that they close first."""


_METHODS = ("GET", "POST", "DELETE")
_EXPOSED = ("Mcp-Session-Id", "WWW-Authenticate")
"""What pages of an allowed origin may send, and which headers of the answers they may see."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where to listen, whom to serve, and how much."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free port."""
    path: str = "/mcp"
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that requests may name, besides this machine's own when bound to it; "*" for any."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of browser pages that may send requests, besides this machine's own; "*" for any."""
    tokens: tuple[str, ...] = ()
    """Bearer tokens, one of which every request needs; none: no token is needed."""
    limits: EndpointLimits = field(default_factory=EndpointLimits)
    backlog: int = 2_048
    connections: int | None = None
    """Connections served at once; more get 503."""


class HttpApp:
    """The ASGI application; `endpoint` is what serves the protocol in it.

    The guards come first. A request for the endpoint then goes straight there, unless it comes from a page, which
    is Starlette's matter, as is everything else.
    """

    def __init__(self, app: Server[Any], options: HttpOptions) -> None:
        self.endpoint = Endpoint(app, options.limits)
        self._path = options.path
        self._sites = Sites(options.host, options.allowed_hosts, options.allowed_origins)
        # An orchestrator's health check uses whatever address it has, and only a server of this machine alone has
        # to fear DNS rebinding.
        self._probed = not is_loopback(options.host)
        self._tokens = Tokens(options.tokens)
        self._gate = _Gate(self.endpoint, self._tokens)

        async def healthz(_request: Request) -> Response:
            counts = {"sessions": self.endpoint.sessions, "streams": self.endpoint.streams}
            return JSONResponse(health(app, **counts))

        # Other origins have been refused by then. A preflight carries no token, so this comes before the gate.
        cors = Middleware(
            CORSMiddleware,
            allow_origins=["*"],
            allow_headers=["*"],
            allow_methods=_METHODS,
            expose_headers=_EXPOSED,
        )
        self._rest = Starlette(
            routes=[Route(options.path, self._gate), Route(HEALTH, healthz, methods=["GET"])],
            middleware=[cors],
            exception_handlers={HTTPException: self._refuse},
            lifespan=self._living,
        )
        self._rest.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the life of the application."""
        if scope["type"] == "http":
            headers = read_headers(scope["headers"])
            refusal = self._check(scope, headers)
            if refusal is not None:
                await Reply(send).refuse(refusal)
                return
            if scope["path"] == self._path and headers.get("origin") is None:
                await self._gate.serve(scope, headers, receive, send)
                return
        await self._rest(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> Refusal | None:
        """What is not for this server: repeated headers, other hosts and origins."""
        refusal = check_single(headers, all_of_them=False) or self._sites.check_origin(headers)
        if refusal is None and not (self._probed and scope["path"] == HEALTH):
            refusal = self._sites.check_host(headers)
        return refusal

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """What no route serves, in the form of every other refusal. Without a token not even that is told."""
        refusal = self._tokens.admit(read_headers(request.scope["headers"]))
        if not isinstance(refusal, Refusal):
            status = error.status_code if isinstance(error, HTTPException) else 500
            headers = error.headers if isinstance(error, HTTPException) else None
            refusal = refuse(status, "there is nothing here", **(headers or {}))
        return Response(encode(refusal.failure), refusal.status, dict(refusal.headers), media_type=JSON)

    @asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        async with create_task_group() as tasks:
            self.endpoint.start(tasks)
            yield
            self.endpoint.stop()
            tasks.cancel_scope.cancel()


def http_app(app: Server[Any], options: HttpOptions) -> HttpApp:
    """The ASGI application that serves `app`, which must be running. Raises ValueError for unusable options."""
    return HttpApp(app, options)


class _Gate:
    """Lets through to the endpoint who brings a token."""

    def __init__(self, endpoint: Endpoint, tokens: Tokens) -> None:
        self._endpoint = endpoint
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        reply = Reply(send, gzip=accepts_gzip(headers.get("accept-encoding")))
        principal = self._tokens.admit(headers)
        if isinstance(principal, Refusal):
            await reply.refuse(principal)
        else:
            await self._endpoint.serve(scope["method"], Http(headers, principal, receive, reply))


# Running


async def run_http(
    app: Server[Any],
    options: HttpOptions,
    *,
    started: Callable[[str, int], None] | None = None,
    stop: anyio.Event | None = None,
) -> None:
    """Serves `app`, which must be running, until `stop` is set or this is cancelled.

    `started` is told the address and port once requests are taken. Then what is under way gets the seconds of
    `app.limits.drain_seconds` to finish. Raises OSError, before anything starts, where the address can't be
    bound; ValueError for unusable options.
    """
    asgi = http_app(app, options)
    with _bound(app, options) as listener:
        server = _Uvicorn(_config(asgi, options, math.ceil(app.limits.drain_seconds) + 1))
        if started is not None:
            host, port = listener.getsockname()[:2]
            server.on_started = lambda: started(host, port)
        async with create_task_group() as tasks:
            tasks.start_soon(_serve, server, listener, tasks.cancel_scope)
            try:
                await (stop or anyio.Event()).wait()
            finally:
                asgi.endpoint.stop()
                server.stop()


def _config(asgi: HttpApp, options: HttpOptions, stop_seconds: int) -> uvicorn.Config:
    class Timed(Connection):
        body_seconds = options.limits.body_seconds

    return uvicorn.Config(
        asgi,
        http=Timed,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=options.connections,
        backlog=options.backlog,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=stop_seconds,
    )


async def _serve(server: "_Uvicorn", listener: socket.socket, around: CancelScope) -> None:
    # Shielded: uvicorn, cancelled, would leave its connections open. It ends by `stop`, within bounded time.
    with CancelScope(shield=True):
        await server.serve([listener])
    around.cancel()


@contextmanager
def _bound(app: Server[Any], options: HttpOptions) -> Iterator[socket.socket]:
    host = options.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio turns Nagle's delay off only where it sees that a socket is TCP.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, options.port))
        listener.listen(options.backlog)
        listener.setblocking(False)
        host, port = listener.getsockname()[:2]
        app.endpoints.append((host, port))
        try:
            yield listener
        finally:
            app.endpoints.remove((host, port))


class _Uvicorn(uvicorn.Server):
    """uvicorn that leaves signals alone, says when it has started, and stops without polling: idle, it sleeps."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.on_started: Callable[[], None] = lambda: None
        self._stopped = anyio.Event()

    def stop(self) -> None:
        """Has it close its connections and return."""
        self.should_exit = True
        self._stopped.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the caller's."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and says so."""
        await super().startup(sockets)
        self.on_started()

    async def main_loop(self) -> None:
        """Does nothing until stopped: there is no limit to look after, and connections see to the date."""
        await self._stopped.wait()
