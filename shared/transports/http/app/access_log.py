"""The access log: one line for each HTTP request that has ended, with its sender and outcome.

The log contains no tokens and no query strings, and session ids only as digests.
"""

import logging
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....protocol.http.rules import SESSION_ID
from ....protocol.identity import Principal
from ....text import plain

SENDER = "mcp.sender"
"""The ASGI scope key of a request's sender: a Principal, None without authentication, or the Refusal for a sender who
is not admitted."""
log = logging.getLogger("shared.access")

_MAX_PATH_LENGTH = 500
"""The maximum length of a logged path, in characters."""


def address_of(scope: Scope) -> str:
    """Return the address of a request."""
    return _unmap((scope.get("client") or ("",))[0])


@lru_cache(1_024)
def _unmap(address: str) -> str:
    """Return the IPv4 address in an IPv4-mapped IPv6 address, which a dual-stack socket reports (RFC 4291, section
    2.5.5.2): otherwise all IPv4 clients would be in one IPv6 network."""
    try:
        inner = IPv6Address(address).ipv4_mapped
    except ValueError:  # IPv4, or a name that a proxy has sent
        return address
    return address if inner is None else str(inner)


@lru_cache(1_024)  # called for each request of a session
def session_digest(session: str) -> str:
    """Return a digest that replaces the id of a session in logs: the id itself gives access to the session."""
    return sha256(session.encode()).hexdigest()[:16]


class AccessLog:
    """An ASGI middleware that logs each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve and log one request, or serve the lifespan of the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response, began = _SentResponse(send), perf_counter()
        try:
            await self._app(scope, receive, response.send)
        finally:
            seconds = perf_counter() - began
            sender = scope.get(SENDER)
            sessions = [value for name, value in scope["headers"] if name == SESSION_ID.encode()]
            path = plain(scope["path"][:_MAX_PATH_LENGTH]).replace('"', "%22")
            fields: dict[str, Any] = {
                "address": address_of(scope),
                "principal": sender.key if isinstance(sender, Principal) else None,
                "method": scope["method"],
                "path": path,
                "status": response.status,
                "bytes": response.size,
                "seconds": round(seconds, 6),
                "session": session_digest(sessions[0].decode("latin-1")) if sessions else None,
            }
            values = {name: "-" if value is None else value for name, value in fields.items()}
            text = '%(address)s %(principal)s "%(method)s %(path)s" %(status)s %(bytes)s %(seconds)s %(session)s'
            log.info(text, values, extra={"fields": fields})


class _SentResponse:
    """The status and the size of a response, recorded while it is sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        """None if there was no response, because the client has disconnected or has switched to WebSocket."""
        self.size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)
