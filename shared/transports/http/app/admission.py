"""Admission: the checks of a request after the guards of a listener (headers, host and origin, see `app`) and before
the endpoint of a server."""

from collections.abc import Iterable
from functools import partial

from starlette.types import Receive, Scope, Send

from ....protocol.http.rules import Headers, Refusal, accepts_gzip, limit_exceeded, read_headers, refuse
from ....protocol.identity import Principal
from ....telemetry.logs import server_name
from ..limits.client_shares import client_name
from ..limits.failed_logins import TOO_MANY_REQUESTS
from ..streamable.reply import HttpExchange, Reply
from .access_log import SENDER, address_of
from .mount import Mount

RESOURCE = "mcp.resource"
"""ASGI scope key: the resource for which the request's token must be issued."""

_AUDIT_UNAVAILABLE = refuse(
    503, "the audit log can't be written, so no requests are accepted; try again later", Retry_After="5"
)


class Admission:
    """The admission of requests to one server. It refuses senders that are not authenticated, all requests while the
    audit log can't be written, and clients that exceed their quotas."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount
        self.claim = mount.claim

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request from a browser, which Starlette routes for CORS."""
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Serve one request whose sender has been determined."""
        reply = Reply(send, gzip=accepts_gzip(headers.get("accept-encoding")))
        sender: Principal | Refusal | None = scope[SENDER]
        if isinstance(sender, Refusal):
            quotas = self._mount.endpoint.quotas
            if sender.status == TOO_MANY_REQUESTS and quotas is not None:
                quotas.refused["attempts"] += 1
            self.count_refusal(sender)
            await reply.refuse(sender)
            return
        client, mount = client_name(None if sender is None else sender.key, address_of(scope)), self._mount
        audit, quotas, refusal = mount.audit, mount.endpoint.quotas, None
        if audit is not None and audit.is_blocked:
            refusal = _AUDIT_UNAVAILABLE
        elif quotas is not None:
            error = await quotas.check(client)
            refusal = None if error is None else limit_exceeded(error)
        if refusal is not None:
            self.count_refusal(refusal, sender)
            await reply.refuse(refusal)
            return
        if quotas is not None:
            reply.spend = partial(quotas.spend, client)
        query, resource = scope["query_string"], scope[RESOURCE]
        http = HttpExchange(headers, sender, client, receive, reply, scope["path"], query, resource)
        if not mount.is_only_server:  # a single server would be named in every line of the log
            server_name.set(mount.name)
        await mount.endpoint.serve(scope["method"], http)
        reply.report_bytes()

    def count_refusal(self, refusal: Refusal, principal: Principal | None = None) -> None:
        """Count a refused request, and record it in the audit log, with its `principal` if known."""
        if refusal is _AUDIT_UNAVAILABLE:  # not recorded, since the audit log can't be written
            self._mount.endpoint.refused[refusal.status] += 1
        else:
            self._mount.endpoint.count_refusal(refusal, principal)


class NotFound:
    """Answers requests at paths without a server. A sender who is not authenticated gets the same refusal as at the
    path of a server, even with the headers in the same order, and so can't tell whether a server exists."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._refusal = refuse(404, f"nothing is served here; try {', '.join(paths)}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request from a browser, which Starlette routes for CORS."""
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, _headers: Headers, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        sender = scope[SENDER]
        await Reply(send).refuse(sender if isinstance(sender, Refusal) else self._refusal)
