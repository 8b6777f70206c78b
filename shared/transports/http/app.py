"""The HTTP servers of one listener as one ASGI application: guards, endpoints, and what operators ask.

Every request is guarded before anything else looks at it: repeated headers, host and origin. Then the authenticator
is asked who sends it, once; whoever answers at its path refuses those who are not let in.
Pages of an allowed origin get the CORS headers without which browsers keep the answers from them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ...auth.tokens import StaticTokens
from ...contracts import Authenticator
from ...protocol.http.hosts import HostPolicy, is_loopback
from ...protocol.http.rules import Denial, Headers, Refusal, accepts_gzip, check_single, read_headers, refuse
from ...protocol.identity import Principal
from .limits import EndpointLimits
from .mount import Mount
from .probes import HEALTH, METRICS, READY, Probes, refused
from .quotas import client_name
from .reply import Http, Reply

__all__ = ["Front", "HttpApp", "HttpOptions"]

_METHODS = ("GET", "POST", "DELETE")
_EXPOSED = ("Mcp-Session-Id", "WWW-Authenticate")
"""What pages of an allowed origin may send, and which headers of the answers they may see."""
_PROBED = frozenset({HEALTH, READY, METRICS})
_SENDER = "mcp.sender"
"""Where the scope of a request says who sends it: a Principal, the Refusal of whoever is not let in, or None."""

Front = Callable[[Request, Refusal | None], Awaitable[Response]]
"""Answers a request, knowing the refusal of whoever may not use the servers."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where to listen, whom to serve, and how much."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free port."""
    path: str = "/mcp"
    """Where a server is that is alone."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that requests may name, besides this machine's own when bound to it; "*" for any."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of browser pages that may send requests, besides this machine's own; "*" for any."""
    tokens: tuple[str, ...] = ()
    """Bearer tokens, one of which every request needs; none: no token is needed."""
    limits: EndpointLimits = field(default_factory=EndpointLimits)
    backlog: int = 2_048


class HttpApp:
    """The ASGI application.

    The guards come first. A request for an endpoint then goes straight there, unless it comes from a page, which is
    Starlette's matter, as is everything else.
    """

    def __init__(self, mounts: Sequence[Mount], options: HttpOptions, front: Front | None = None) -> None:
        """`front` answers at `/`, where there are several servers. Raises ValueError for unusable options."""
        self.mounts = tuple(mounts)
        self.left_behind = False
        """Whether a server did not end when it should have."""
        self._hosts = HostPolicy(options.host, options.allowed_hosts, options.allowed_origins)
        # An orchestrator's check uses whatever address it has, and only a server of this machine alone has to fear
        # DNS rebinding.
        self._probed = frozenset() if is_loopback(options.host) else _PROBED
        self.authenticator: Authenticator = StaticTokens(options.tokens)
        self._gates = {path: _Gate(mount) for mount in self.mounts for path in mount.paths}
        probes = Probes(self.mounts, alone=front is None)
        routes = [
            *(Route(path, gate) for path, gate in self._gates.items()),
            Route(HEALTH, self._admitted(probes.health), methods=["GET"]),
            Route(READY, self._admitted(probes.ready), methods=["GET"]),
            Route(METRICS, self._admitted(probes.metrics), methods=["GET"]),
        ]
        if front is not None:
            routes.append(Route("/", self._admitted(front), methods=["GET"]))
        # Other origins have been refused by then. A preflight carries no token, so this comes before the gate.
        cors = Middleware(
            CORSMiddleware,
            allow_origins=["*"],
            allow_headers=["*"],
            allow_methods=_METHODS,
            expose_headers=_EXPOSED,
        )
        self._rest = Starlette(
            routes=routes,
            middleware=[cors],
            exception_handlers={HTTPException: self._refuse},
            lifespan=self._living,
        )
        self._rest.router.redirect_slashes = False
        self._nowhere = self._rest.router.default = _Nowhere([mount.path for mount in self.mounts])
        self._pages = _PROBED if front is None else {*_PROBED, "/"}

    def stop(self) -> None:
        """Takes no more requests; what is under way is finished."""
        for mount in self.mounts:
            mount.endpoint.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the life of the application."""
        if scope["type"] == "http":
            headers = read_headers(scope["headers"])
            gate = self._gates.get(scope["path"])
            refusal = self._check(scope, headers)
            if refusal is not None:
                if gate is not None:
                    gate.refused(refusal)
                await Reply(send).refuse(refusal)
                return
            scope[_SENDER] = await self._authenticate(headers)
            if headers.get("origin") is None and scope["path"] not in self._pages:
                await (gate or self._nowhere).serve(scope, headers, receive, send)
                return
        await self._rest(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> Refusal | None:
        """What is not for this server: repeated headers, other hosts and origins."""
        refusal = check_single(headers, all_of_them=False) or self._hosts.check_origin(headers)
        if refusal is None and scope["path"] not in self._probed:
            refusal = self._hosts.check_host(headers)
        return refusal

    async def _authenticate(self, headers: Headers) -> Principal | Refusal | None:
        sender = await self.authenticator.authenticate(headers)
        return refuse(401, sender.reason, WWW_Authenticate=sender.challenge) if isinstance(sender, Denial) else sender

    def _admitted(self, answer: Front) -> Callable[[Request], Awaitable[Response]]:
        """`answer` as Starlette calls it."""

        async def respond(request: Request) -> Response:
            sender = request.scope[_SENDER]
            return await answer(request, sender if isinstance(sender, Refusal) else None)

        return respond

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """A method that a page does not have, in the form of every other refusal."""
        refusal = request.scope[_SENDER]
        if not isinstance(refusal, Refusal):
            status = error.status_code if isinstance(error, HTTPException) else 500
            headers = error.headers if isinstance(error, HTTPException) else None
            refusal = refuse(status, "there is nothing here", **(headers or {}))
        return refused(refusal)

    @asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        for mount in self.mounts:
            await mount.open()
        yield
        ended = await asyncio.gather(*(mount.close() for mount in self.mounts))
        self.left_behind = not all(ended)


class _Gate:
    """Lets through to a server who is not refused."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        reply = Reply(send, gzip=accepts_gzip(headers.get("accept-encoding")))
        sender: Principal | Refusal | None = scope[_SENDER]
        if isinstance(sender, Refusal):
            self.refused(sender)
            await reply.refuse(sender)
        else:
            client = client_name(None if sender is None else sender.key, (scope.get("client") or ("",))[0])
            http = Http(headers, sender, client, receive, reply, scope["path"], scope["query_string"])
            await self._mount.serve(scope["method"], http)

    def refused(self, refusal: Refusal) -> None:
        self._mount.endpoint.refused[refusal.status] += 1


class _Nowhere:
    """Answers at every other path. Who is refused can't tell it from a server that is there, not even by the order
    of the headers."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._refusal = refuse(404, f"there is nothing here, only at {', '.join(paths)}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, _headers: Headers, _receive: Receive, send: Send) -> None:
        sender = scope[_SENDER]
        await Reply(send).refuse(sender if isinstance(sender, Refusal) else self._refusal)
