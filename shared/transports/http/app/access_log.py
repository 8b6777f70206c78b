"""A line in the log for each HTTP request, when it is over: who asked for what, and what became of it.

It holds no token, no query string and no id of a session, which stands there as a digest.
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
"""Where the scope of a request says who sends it: a Principal, the Refusal of whoever is not let in, or None."""
log = logging.getLogger("shared.access")

_LONGEST = 500
"""Characters of a path."""


def address_of(scope: Scope) -> str:
    """Where a request comes from."""
    return _unmapped((scope.get("client") or ("",))[0])


@lru_cache(1_024)
def _unmapped(address: str) -> str:
    """The IPv4 address that stands in an IPv6 address, as a socket for both has it (RFC 4291, section 2.5.5.2): else
    all clients of one kind would be in one network of the other."""
    try:
        inner = IPv6Address(address).ipv4_mapped
    except ValueError:  # IPv4, or a name that a proxy has sent
        return address
    return address if inner is None else str(inner)


def session_digest(session: str) -> str:
    """What stands for the id of a session where others read it: who has the id has the session."""
    return sha256(session.encode()).hexdigest()[:16]


class AccessLog:
    """An ASGI application around another one, which notes who sends a request in its scope."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, and logs it; or the life of the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer, began = _Answer(send), perf_counter()
        try:
            await self._app(scope, receive, answer.send)
        finally:
            _write(scope, answer, perf_counter() - began)


class _Answer:
    """What is sent of an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        """None where there was none, as with a client that has gone away, or went over to WebSocket."""
        self.size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
        await self._send(message)


def _write(scope: Scope, answer: _Answer, seconds: float) -> None:
    sender = scope.get(SENDER)
    sessions = [value for name, value in scope["headers"] if name == SESSION_ID.encode()]
    path = plain(scope["path"][:_LONGEST]).replace('"', "%22")
    fields: dict[str, Any] = {
        "address": address_of(scope),
        "principal": sender.key if isinstance(sender, Principal) else None,
        "method": scope["method"],
        "path": path,
        "status": answer.status,
        "bytes": answer.size,
        "seconds": round(seconds, 6),
        "session": session_digest(sessions[0].decode("latin-1")) if sessions else None,
    }
    shown = {name: "-" if value is None else value for name, value in fields.items()}
    text = '%(address)s %(principal)s "%(method)s %(path)s" %(status)s %(bytes)s %(seconds)s %(session)s'
    log.info(text, shown, extra={"fields": fields})
