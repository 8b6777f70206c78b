"""The HTTP servers of one listener as one ASGI application: guards, endpoints, and pages for operators.

Every request passes the guards first: repeated headers, host and origin. Then the authenticator determines its
sender, once; the handler of its path refuses senders who are not admitted. Web pages from an allowed origin get the
CORS headers without which browsers hide the responses from them.
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
from ....concurrency import background
from ....contracts import Authenticator, Limiter, RemoteAuthenticator
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
from ....server.dispatch.portions import Memory
from ....telemetry.arrival import Arrival, arrival
from ....telemetry.audit import Audit
from ....telemetry.request_spans import trace_calls
from ....telemetry.siblings import Siblings
from ....tracing.trace_context import TRACEPARENT, TRACESTATE, current, read_trace_context
from ..limits.endpoint_limits import EndpointLimits
from ..limits.failed_logins import FailedLogins
from ..limits.rate_limits import ClientQuotas
from ..listener import BACKLOG
from ..streamable.bodies import Bodies
from ..streamable.reply import Reply
from .access_log import SENDER, address_of, session_digest
from .admission import RESOURCE, Admission, NotFound
from .cards import Cards
from .mount import Mount
from .oauth_metadata import Issuers, OAuthMetadata
from .probes import HEALTH, METRICS, READY, STATE, Probes, refusal_response

if TYPE_CHECKING:
    from ....telemetry.otel import Telemetry  # an extra, which few need

_CORS: dict[str, Any] = {
    "allow_origins": ["*"],
    "allow_headers": ["*"],
    "allow_methods": ("GET", "POST", "DELETE"),
    "expose_headers": ("Mcp-Session-Id", "WWW-Authenticate", "DPoP-Nonce", "Retry-After", "ETag"),
}
"""The CORS rules. They allow every origin, because the guards refuse the origins that are not allowed."""
_PROBE_PAGES = frozenset({HEALTH, READY, METRICS})
_AUDITED_PAGES = frozenset({METRICS, STATE})
"""The pages whose readers are recorded in the audit log, because these pages show what other users do."""
_LISTENER = "http"
"""The server name in audit records that concern no particular server."""

RootPage = Callable[[Request], Awaitable[Response]]
"""The handler of `/`. Requests need an allowed host and origin but no token: the content must be public."""
_PageHandler = Callable[[Request, Refusal | None], Awaitable[Response]]
"""The handler of a page for operators. The second argument is the refusal if the sender may not use the servers,
otherwise None."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The address, clients and limits of a listener."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 selects any free port."""
    path: str = "/mcp"
    """The path of a single server."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that requests may name, in addition to this machine's own if the listener is bound to it; "*" for any."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of browser pages that may send requests, in addition to this machine's own; "*" for any."""
    tokens: tuple[str, ...] = ()
    """Bearer tokens, one of which every request needs; if empty, tokens are not needed."""
    authenticator: Authenticator | None = None
    """Determines the sender of a request; replaces `tokens`."""
    issuers: Issuers | None = None
    """The issuers whose tokens the authenticator accepts, if the operator does not issue them."""
    public_url: str | None = None
    """The URL of the listener for clients, if it differs from the host in their requests."""
    cards: bool = False
    """True if server cards, which show the servers and their paths to everyone, are published."""
    connections: int | None = None
    """The maximum number of connections of the process; one address may hold seven eighths of them; None for as many
    as the system allows."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of proxies that report the address of a request in X-Forwarded-For."""
    limits: EndpointLimits = field(default_factory=EndpointLimits)
    limiter: Limiter | None = None
    """Counts the requests of clients together with other processes; by default each listener counts separately."""
    audit: Audit | None = None
    """Records served and refused requests."""
    telemetry: "Telemetry | None" = None
    """Sends spans and counts to a collector."""
    access_log: bool = False
    """True if each request is logged."""
    backlog: int = BACKLOG
    listener: socket.socket | None = None
    """The bound socket on which to accept connections, if other processes share it; `host` and `port` are then
    unused."""
    siblings: Siblings | None = None
    """The processes that share the socket."""


class HttpApp:
    """The ASGI application of a listener.

    After the guards, a request for an endpoint is passed straight to it, unless the request comes from a web page;
    Starlette handles such requests and everything else.
    """

    def __init__(self, mounts: Sequence[Mount], options: HttpOptions, root_page: RootPage | None = None) -> None:
        """`root_page`, if given, answers at `/`. Raises ValueError for unusable options."""
        self.mounts = tuple(mounts)
        self.has_unstopped_servers = False
        """True if a server did not stop in time."""
        self._hosts = HostPolicy(options.host, options.allowed_hosts, options.allowed_origins)
        # The probes of an orchestrator may name the server by any address. The check of the host protects against DNS
        # rebinding, to which only a server for local clients is exposed.
        self._pages_for_any_host = frozenset() if is_loopback(options.host) else _PROBE_PAGES
        self._authenticator: Authenticator = options.authenticator or StaticTokens(options.tokens)
        self._oauth_metadata = None if options.issuers is None else OAuthMetadata(self.mounts, options.issuers)
        self._is_open_to_all = isinstance(self._authenticator, StaticTokens) and not self._authenticator
        # Users who log in at an issuer need no token from the operator.
        needs_token = not self._is_open_to_all and options.issuers is None
        self._cards = Cards(self.mounts, options.public_url, needs_token=needs_token) if options.cards else None
        self._pages_for_any_origin = frozenset[str]().union(
            *(pages.paths for pages in (self._oauth_metadata, self._cards) if pages is not None)
        )
        self._public_paths = self._pages_for_any_origin | ({"/"} if root_page is not None else set())
        if len(self.mounts) > 1:
            # One client may use all of the servers at once.
            memory = Memory(max(mount.server.limits.call_bytes for mount in self.mounts))
            bodies = Bodies(options.limits.body_bytes)
            for mount in self.mounts:
                mount.endpoint.share_memory(memory, bodies)
        self._failed_logins = _apply_client_limits(self.mounts, options, self._authenticator)
        self._audit = audit = options.audit
        if audit is not None:
            for mount in self.mounts:
                mount.set_audit(audit)
        self._records_arrival = audit is not None or options.telemetry is not None
        if options.telemetry is not None:
            for mount in self.mounts:
                mount.extensions.append(trace_calls(mount.name, over_http=True))
            metrics_by_name = {mount.name: mount.metrics for mount in self.mounts}
            options.telemetry.watch(metrics_by_name, lambda: [mount.figures() for mount in self.mounts])
        self._admissions = {path: Admission(mount) for mount in self.mounts for path in mount.paths}
        routes = self._routes(options, root_page)
        # The guards have refused origins that are not allowed. A preflight request has no token, so CORS is handled
        # before admission.
        cors = Middleware(CORSMiddleware, **_CORS)
        self._starlette = Starlette(
            routes=routes,
            middleware=[cors],
            exception_handlers={HTTPException: self._refuse},
            lifespan=self._lifespan,
        )
        self._starlette.router.redirect_slashes = False
        self._not_found = self._starlette.router.default = NotFound([mount.path for mount in self.mounts])
        self._paths_without_slash = {*self._admissions, *self._pages_for_any_origin}
        self._pages = {*_PROBE_PAGES, STATE, *self._public_paths}

    def _routes(self, options: HttpOptions, root_page: RootPage | None) -> list[Route]:
        is_exposed = self._is_open_to_all and bool(options.trusted_proxies or not is_loopback(options.host))
        probes = Probes(
            self.mounts, is_exposed=is_exposed, siblings=options.siblings, authenticator=self._authenticator
        )
        root_routes = [] if root_page is None else [Route("/", root_page, methods=["GET"])]
        return [
            *(Route(path, admission) for path, admission in self._admissions.items()),
            *(() if self._oauth_metadata is None else self._oauth_metadata.routes()),
            *(() if self._cards is None else self._cards.routes()),
            Route(HEALTH, self._starlette_endpoint(probes.health), methods=["GET"]),
            Route(READY, self._starlette_endpoint(probes.ready), methods=["GET"]),
            Route(METRICS, self._starlette_endpoint(probes.metrics), methods=["GET"]),
            Route(STATE, self._starlette_endpoint(probes.state), methods=["GET"]),
            *root_routes,
        ]

    def stop(self) -> None:
        """Stop accepting requests; pending ones are finished."""
        for mount in self.mounts:
            mount.endpoint.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan of the application."""
        if scope["type"] == "http":
            headers = read_headers(scope["headers"])
            path: str = scope["path"]
            # Users and hosts add a slash. It is no redirect, because clients that follow one lose their token, their
            # session id or their body.
            if path.endswith("/") and path[:-1] in self._paths_without_slash:
                scope["path"] = path[:-1]
            admission = self._admissions.get(scope["path"])
            # Also set without a header: a pipelined request is served in the task of the previous request, and would
            # otherwise inherit its trace context.
            parent = headers.get(TRACEPARENT)
            current.set(None if parent is None else read_trace_context(parent, headers.get(TRACESTATE)))
            if self._records_arrival:
                # For the audit records of the request, and of its calls.
                session = headers.get(SESSION_ID)
                arrival.set(Arrival(address_of(scope), None if session is None else session_digest(session)))
            refusal = self._check(scope, headers)
            if refusal is not None:
                if self._failed_logins is not None:
                    refusal = await self._failed_logins.refuse(refusal, address_of(scope))
                self._count_refusal(admission, refusal)
                await Reply(send).refuse(refusal)
                return
            # Set before the token is checked, because the token must be issued for the URL of this very server (RFC
            # 8707).
            scope[RESOURCE] = (
                None if self._oauth_metadata is None else self._oauth_metadata.resource_at(scope["path"], headers)
            )
            scope[SENDER] = sender = await self._authenticate(scope, headers, admission)
            if admission is None and isinstance(sender, Refusal):
                self._count_refusal(admission, sender)
            # Nearly every request needs neither Starlette's middleware nor its router.
            if headers.get("origin") is None and scope["path"] not in self._pages:
                await (admission or self._not_found).serve(scope, headers, receive, send)
                return
        await self._starlette(scope, receive, send)

    def _count_refusal(self, admission: Admission | None, refusal: Refusal) -> None:
        """Record the refusal of a request from an unknown sender."""
        if admission is not None:
            admission.count_refusal(refusal)
        elif self._audit is not None:
            self._audit.log_refusal(_LISTENER, refusal, None)

    def _check(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Return the refusal of repeated headers, and of other hosts and origins; None for a permitted request."""
        refusal = check_single(headers, all_of_them=False)
        # Metadata of OAuth and cards are public, even for pages of any origin (RFC 9728, section 3).
        if refusal is None and scope["path"] not in self._pages_for_any_origin:
            refusal = self._hosts.check_origin(headers)
        if refusal is None and scope["path"] not in self._pages_for_any_host:
            refusal = self._hosts.check_host(headers)
        return refusal

    async def _authenticate(
        self, scope: Scope, headers: Headers, admission: Admission | None
    ) -> Principal | Refusal | None:
        if self._is_open_to_all or scope["path"] in self._public_paths:
            return None
        address, query = address_of(scope), scope["query_string"]
        # Nothing can be changed at a path without a server, so a replayed proof does no harm there and need not be
        # claimed.
        claim = None if admission is None else admission.claim
        request = HttpRequest(scope["method"], scope["path"], headers, query, address, scope[RESOURCE], claim)
        if self._failed_logins is None:
            sender = await self._authenticator.authenticate(request)
        else:
            sender = await self._failed_logins.authenticate(request)
        return sender.refusal() if isinstance(sender, Denial) else sender

    def _starlette_endpoint(self, handler: _PageHandler) -> Callable[[Request], Awaitable[Response]]:
        """Return `handler` as a function that Starlette can call, which records the readers of audited pages."""

        async def respond(request: Request) -> Response:
            sender = request.scope[SENDER]
            response = await handler(request, sender if isinstance(sender, Refusal) else None)
            if self._audit is not None and not isinstance(sender, Refusal) and request.url.path in _AUDITED_PAGES:
                self._audit.log_request(_LISTENER, request.method, request.url.path, sender, response.status_code)
            return response

        return respond

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """Refuse a method that a page does not support, in the same form as every other refusal."""
        refusal = request.scope[SENDER]
        if not isinstance(refusal, Refusal):
            status = error.status_code if isinstance(error, HTTPException) else 500
            headers = error.headers if isinstance(error, HTTPException) else None
            refusal = refuse(status, "nothing is served here", **(headers or {}))
        return refusal_response(refusal)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        async with background() as tasks:
            if isinstance(self._authenticator, RemoteAuthenticator):
                tasks.start_soon(self._authenticator.reach_issuers)
            for mount in self.mounts:
                await mount.open()
            yield
            ended = await asyncio.gather(*(mount.close() for mount in self.mounts))
        self.has_unstopped_servers = not all(ended)


def _apply_client_limits(
    mounts: Sequence[Mount], options: HttpOptions, authenticator: Authenticator
) -> FailedLogins | None:
    """Apply the limits of clients to `mounts`. Returns the limit of failed logins; None if clients have none."""
    if options.limits.clients is None:
        return None
    quotas = ClientQuotas(options.limits.clients, options.limiter)
    for mount in mounts:
        mount.endpoint.quotas = quotas.for_server()
    return FailedLogins(authenticator, quotas)
