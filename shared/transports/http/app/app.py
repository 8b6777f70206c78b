"""The HTTP servers of one listener as one ASGI application: guards, endpoints, and what operators ask.

Every request is guarded before anything else looks at it: repeated headers, host and origin. Then the authenticator
is asked who sends it, once; whoever answers at its path refuses those who are not let in.
Pages of an allowed origin get the CORS headers without which browsers keep the answers from them.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ....auth.tokens import StaticTokens
from ....contracts import Authenticator, Limiter
from ....protocol.http.hosts import HostPolicy, is_loopback
from ....protocol.http.rules import (
    SESSION_ID,
    Denial,
    Headers,
    HttpRequest,
    Refusal,
    check_single,
    read_headers,
    refuse,
)
from ....protocol.identity import Principal
from ....telemetry.audit import Arrival, Audit, arrival
from ....telemetry.request_spans import traced
from ....telemetry.siblings import Siblings
from ....tracing.trace_context import TRACEPARENT, TRACESTATE, current, read_trace_context
from ..limits.endpoint_limits import EndpointLimits
from ..limits.failed_logins import Attempts
from ..limits.rate_limits import Allowances
from ..listener import BACKLOG
from ..streamable.reply import Reply
from .access_log import SENDER, address_of, session_digest
from .admission import RESOURCE, Admission, Nowhere
from .cards import Cards
from .mount import Mount
from .oauth_metadata import Issuers, Protection
from .probes import HEALTH, METRICS, READY, STATE, Probes, refused

if TYPE_CHECKING:
    from ....telemetry.otel import Telemetry  # an extra, which few need

_METHODS = ("GET", "POST", "DELETE")
_EXPOSED = ("Mcp-Session-Id", "WWW-Authenticate", "DPoP-Nonce", "Retry-After", "ETag")
"""What pages of an allowed origin may send, and which headers of the answers they may see."""
_CORS: dict[str, Any] = {
    "allow_origins": ["*"],
    "allow_headers": ["*"],
    "allow_methods": _METHODS,
    "expose_headers": _EXPOSED,
}
_PROBED = frozenset({HEALTH, READY, METRICS})
_RECORDED = frozenset({METRICS, STATE})
"""The pages whose readers are written down: they say what others do."""
_LISTENER = "http"
"""What is written down as the server where none is meant."""

Front = Callable[[Request], Awaitable[Response]]
"""Answers at `/` whoever is let in by host and origin, also without a token: what it says has to be for everybody."""
_Told = Callable[[Request, Refusal | None], Awaitable[Response]]
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
    authenticator: Authenticator | None = None
    """Who says who sends a request, in place of `tokens`."""
    issuers: Issuers | None = None
    """Whose tokens the authenticator takes, where others than the operator issue them."""
    public_url: str | None = None
    """At which clients reach the listener, where that is not what their requests name as the host."""
    cards: bool = False
    """Whether anybody is told who the servers are, and where."""
    connections: int | None = None
    """Connections of the process, of which one address has seven eighths; None for as many as the system allows."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of proxies that say, by X-Forwarded-For, from which address a request comes."""
    limits: EndpointLimits = field(default_factory=EndpointLimits)
    limiter: Limiter | None = None
    """What counts what clients do, where others share it; by itself a listener counts alone."""
    audit: Audit | None = None
    """Who writes down what is done, and what is refused."""
    telemetry: "Telemetry | None" = None
    """Who sends spans and counts to a collector."""
    access_log: bool = False
    """Whether each request is logged."""
    backlog: int = BACKLOG
    listener: socket.socket | None = None
    """The socket to accept connections on, where other processes do so, too: it is bound already."""
    siblings: Siblings | None = None
    """Those processes."""


class HttpApp:
    """The ASGI application.

    The guards come first. A request for an endpoint then goes straight there, unless it comes from a page, which is
    Starlette's matter, as is everything else.
    """

    def __init__(self, mounts: Sequence[Mount], options: HttpOptions, front: Front | None = None) -> None:
        """`front` answers at `/`, where there is a page. Raises ValueError for unusable options."""
        self.mounts = tuple(mounts)
        self.left_behind = False
        """Whether a server did not end when it should have."""
        self._hosts = HostPolicy(options.host, options.allowed_hosts, options.allowed_origins)
        # An orchestrator's check uses whatever address it has, and only a server of this machine alone has to fear
        # DNS rebinding.
        self._probed = frozenset() if is_loopback(options.host) else _PROBED
        self._authenticator: Authenticator = options.authenticator or StaticTokens(options.tokens)
        self._protection = None if options.issuers is None else Protection(self.mounts, options.issuers)
        self._is_open_to_all = isinstance(self._authenticator, StaticTokens) and not self._authenticator
        # Whoever logs in at an issuer needs no token of the operator.
        asks_for_token = not self._is_open_to_all and options.issuers is None
        self._cards = Cards(self.mounts, options.public_url, asks_for_token=asks_for_token) if options.cards else None
        self._open = frozenset[str]().union(
            *(one.paths for one in (self._protection, self._cards) if one is not None)
        )
        self._known_to_all = self._open | ({"/"} if front is not None else set())
        self._attempts = _limit(self.mounts, options, self._authenticator)
        self._audit = audit = options.audit
        if audit is not None:
            for mount in self.mounts:
                mount.keep_records(audit)
        self._notes_arrival = audit is not None or options.telemetry is not None
        if options.telemetry is not None:
            for mount in self.mounts:
                mount.extensions.append(traced(mount.name, over_http=True))
            counted = {mount.name: mount.metrics for mount in self.mounts}
            options.telemetry.watch(counted, lambda: [mount.figures() for mount in self.mounts])
        self._admissions = {path: Admission(mount) for mount in self.mounts for path in mount.paths}
        routes = self._routes(options, front)
        # Other origins have been refused by then. A preflight carries no token, so this comes before the gate.
        cors = Middleware(CORSMiddleware, **_CORS)
        self._rest = Starlette(
            routes=routes,
            middleware=[cors],
            exception_handlers={HTTPException: self._refuse},
            lifespan=self._living,
        )
        # No redirect from `/mcp/` to `/mcp`: whoever follows one may leave its token or its body behind.
        self._rest.router.redirect_slashes = False
        self._nowhere = self._rest.router.default = Nowhere([mount.path for mount in self.mounts])
        self._pages = {*_PROBED, STATE, *self._known_to_all}

    def _routes(self, options: HttpOptions, front: Front | None) -> list[Route]:
        is_exposed = self._is_open_to_all and bool(options.trusted_proxies or not is_loopback(options.host))
        probes = Probes(self.mounts, is_exposed=is_exposed, siblings=options.siblings)
        fronts = [] if front is None else [Route("/", front, methods=["GET"])]
        return [
            *(Route(path, admission) for path, admission in self._admissions.items()),
            *(() if self._protection is None else self._protection.routes()),
            *(() if self._cards is None else self._cards.routes()),
            Route(HEALTH, self._admitted(probes.health), methods=["GET"]),
            Route(READY, self._admitted(probes.ready), methods=["GET"]),
            Route(METRICS, self._admitted(probes.metrics), methods=["GET"]),
            Route(STATE, self._admitted(probes.state), methods=["GET"]),
            *fronts,
        ]

    def stop(self) -> None:
        """Takes no more requests; what is under way is finished."""
        for mount in self.mounts:
            mount.endpoint.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the life of the application."""
        if scope["type"] == "http":
            headers = read_headers(scope["headers"])
            admission = self._admissions.get(scope["path"])
            # Also where there is none: a request that was sent ahead begins in the task of the one before it.
            parent = headers.get(TRACEPARENT)
            current.set(None if parent is None else read_trace_context(parent, headers.get(TRACESTATE)))
            if self._notes_arrival:
                # For what is written down of the request, and of the calls that it brings.
                session = headers.get(SESSION_ID)
                arrival.set(Arrival(address_of(scope), None if session is None else session_digest(session)))
            refusal = self._check(scope, headers)
            if refusal is not None:
                if self._attempts is not None:
                    refusal = await self._attempts.refuse(refusal, address_of(scope))
                self._note(admission, refusal)
                await Reply(send).refuse(refusal)
                return
            # Before the token is looked at: it has to be for this very server, as its URL says (RFC 8707).
            scope[RESOURCE] = None if self._protection is None else self._protection.of(scope["path"], headers)
            scope[SENDER] = sender = await self._authenticate(scope, headers, admission)
            if admission is None and isinstance(sender, Refusal):
                self._note(admission, sender)
            # Nearly every request: past Starlette's middleware and router, of which it needs nothing.
            if headers.get("origin") is None and scope["path"] not in self._pages:
                await (admission or self._nowhere).serve(scope, headers, receive, send)
                return
        await self._rest(scope, receive, send)

    def _note(self, admission: Admission | None, refusal: Refusal) -> None:
        """Nobody known has sent a request that is refused."""
        if admission is not None:
            admission.refused(refusal)
        elif self._audit is not None:
            self._audit.refused(_LISTENER, refusal, None)

    def _check(self, scope: Scope, headers: Headers) -> Refusal | None:
        """What is not for this server: repeated headers, other hosts and origins."""
        refusal = check_single(headers, all_of_them=False)
        # Metadata of OAuth and cards are for everybody, pages of any origin too (RFC 9728, section 3).
        if refusal is None and scope["path"] not in self._open:
            refusal = self._hosts.check_origin(headers)
        if refusal is None and scope["path"] not in self._probed:
            refusal = self._hosts.check_host(headers)
        return refusal

    async def _authenticate(
        self, scope: Scope, headers: Headers, admission: Admission | None
    ) -> Principal | Refusal | None:
        if self._is_open_to_all or scope["path"] in self._known_to_all:
            return None
        address, query = address_of(scope), scope["query_string"]
        # What is no server's own can only be read.
        claim = None if admission is None else admission.claim
        request = HttpRequest(scope["method"], scope["path"], headers, query, address, scope[RESOURCE], claim)
        if self._attempts is None:
            sender = await self._authenticator.authenticate(request)
        else:
            sender = await self._attempts.authenticate(request)
        return sender.refusal() if isinstance(sender, Denial) else sender

    def _admitted(self, answer: _Told) -> Callable[[Request], Awaitable[Response]]:
        """`answer` as Starlette calls it."""

        async def respond(request: Request) -> Response:
            sender = request.scope[SENDER]
            response = await answer(request, sender if isinstance(sender, Refusal) else None)
            if self._audit is not None and not isinstance(sender, Refusal) and request.url.path in _RECORDED:
                self._audit.served(_LISTENER, request.method, request.url.path, sender, response.status_code)
            return response

        return respond

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """A method that a page does not have, in the form of every other refusal."""
        refusal = request.scope[SENDER]
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


def _limit(mounts: Sequence[Mount], options: HttpOptions, authenticator: Authenticator) -> Attempts | None:
    """Has `mounts` keep to the limits of their clients, where there are any; what guards the authenticator then."""
    if options.limits.clients is None:
        return None
    allowances = Allowances(options.limits.clients, options.limiter)
    for mount in mounts:
        mount.endpoint.allowances = allowances.of_server()
    return Attempts(authenticator, allowances)
