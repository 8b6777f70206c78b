"""Admission: the checks of a request between the guards of a listener and the endpoint of a server."""

from collections.abc import Iterable
from functools import partial

from starlette.types import Receive, Scope, Send

from ....protocol.http.rules import Headers, Refusal, accepts_gzip, limit_exceeded, read_headers, refuse
from ....protocol.identity import Principal
from ....telemetry.logs import server_name
from ..limits.client_shares import client_name
from ..limits.failed_logins import TOO_MANY_REQUESTS
from ..streamable.reply import Http, Reply
from .access_log import SENDER, address_of
from .mount import Mount

RESOURCE = "mcp.resource"
"""Where the scope of a request says what a token has to be for."""

_UNWRITTEN = refuse(503, "the audit log can't be written, so no work is taken on; try again later", Retry_After="5")


class Admission:
    """Admits requests to one server. It refuses what the guards refused, all work while the audit log can't be
    written, and clients that have used up their rate."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount
        self.claim = mount.claim

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request that comes by way of Starlette, from a page."""
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Serves one request, whose sender is known."""
        reply = Reply(send, gzip=accepts_gzip(headers.get("accept-encoding")))
        sender: Principal | Refusal | None = scope[SENDER]
        if isinstance(sender, Refusal):
            allowances = self._mount.endpoint.allowances
            if sender.status == TOO_MANY_REQUESTS and allowances is not None:
                allowances.refused["attempts"] += 1
            self.refused(sender)
            await reply.refuse(sender)
            return
        client, mount = client_name(None if sender is None else sender.key, address_of(scope)), self._mount
        audit, allowances, refusal = mount.audit, mount.endpoint.allowances, None
        if audit is not None and audit.is_blocked:
            refusal = _UNWRITTEN
        elif allowances is not None:
            error = await allowances.check(client)
            refusal = None if error is None else limit_exceeded(error)
        if refusal is not None:
            self.refused(refusal, sender)
            await reply.refuse(refusal)
            return
        if allowances is not None:
            reply.spend = partial(allowances.spend, client)
        query, resource = scope["query_string"], scope[RESOURCE]
        http = Http(headers, sender, client, receive, reply, scope["path"], query, resource)
        if not mount.is_alone:  # else every line of the log would say the same
            server_name.set(mount.name)
        await mount.endpoint.serve(scope["method"], http)
        reply.settle()

    def refused(self, refusal: Refusal, principal: Principal | None = None) -> None:
        """Counts a refusal, of a request of `principal` where that is known."""
        if refusal is _UNWRITTEN:  # of which nothing can be written down
            self._mount.endpoint.refused[refusal.status] += 1
        else:
            self._mount.endpoint.note(refusal, principal)


class Nowhere:
    """Answers at every other path. Who is refused can't tell it from a server that is there, not even by the order
    of the headers."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._refusal = refuse(404, f"there is nothing here, only at {', '.join(paths)}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request that comes by way of Starlette, from a page."""
        await self.serve(scope, read_headers(scope["headers"]), receive, send)

    async def serve(self, scope: Scope, _headers: Headers, _receive: Receive, send: Send) -> None:
        """Answers one request."""
        sender = scope[SENDER]
        await Reply(send).refuse(sender if isinstance(sender, Refusal) else self._refusal)
