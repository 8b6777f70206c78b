"""The HTTP connections of a client: one pool for each client, kept alive between calls.

No connection outlives the client, no cookie is stored, and no redirect is ever followed, so that another server can't
get the token. The proxy that is set in the environment is looked up once.
"""

import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from ....errors import AuthError, LoginRequired
from ....protocol.wire.jsonrpc import RequestId, Unanswered
from ....text import escape
from ....version import __version__

CONNECT_SECONDS = 30.0
"""Seconds to establish a connection, including TLS."""
IDLE_SECONDS = 4.0
"""Seconds for which an idle connection is reused: servers close theirs after 5 seconds (uvicorn, Node) or more, and a
request on a connection that is being closed may or may not have been carried out."""
MAX_POSTS_AT_ONCE = 100
"""Maximum number of notifications and answers that are sent at the same time, each on its own connection."""
MAX_PENDING_POSTS = 1_000
"""If this many notifications and answers are pending, further answers are dropped: a server could send requests
endlessly and never accept an answer."""
PROBE_SECONDS = 30
"""Seconds of silence before the system probes a connection. Without probes, the reader of a silent stream would not
notice that a router on the way has dropped the connection."""
MAX_HEADER_BYTES = 32_768
"""The maximum length in bytes of one header, and of the status line."""

TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
"""No time limit on the total: a stream is silent while nothing happens, and requests have their own limits."""
FAILURES = (aiohttp.ClientError, HttpProcessingError, OSError, AuthError)
"""The errors of an exchange over HTTP that failed, or that was not authorized."""
_CONNECT_ERRORS = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)


def parse_url(text: str) -> URL:
    """Parse the URL of a server. Raises ValueError, which omits the URL, for one that is invalid or not HTTP."""
    url = URL(text if text.isprintable() and " " not in text else "")
    if url.scheme not in ("http", "https") or not url.host or not url.port:
        raise ValueError("that is not an HTTP URL")
    return url


@dataclass(frozen=True, slots=True)
class Pool:
    """The connections of a client."""

    session: aiohttp.ClientSession
    is_plain: bool = False
    """True if the session adds nothing to requests: it has neither a proxy nor custom settings, so `exchange.py`
    may use connections of its own."""


@asynccontextmanager
async def open_pool(session: aiohttp.ClientSession | None, url: str) -> AsyncIterator[Pool]:
    """Yield a pool that uses `session`, and leave the session open. If it is None, yield a new pool for `url`, and
    close it at the end of the block.

    Raises ValueError for an invalid URL, and ConnectionError if the environment's proxy can't be used.
    """
    if session is not None:
        yield Pool(session)
        return
    proxy = _find_proxy(parse_url(url))
    # No limit here: `client.py` limits the simultaneous requests, and does not count listening streams.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=_open_socket)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"user-agent": f"mcp-server-bundle/{__version__}", "accept-encoding": "gzip, deflate"},
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        proxy=proxy,
        timeout=TIMEOUT,
    ) as session:
        yield Pool(session, is_plain=proxy is None)


def _open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Open a socket that the system probes after silence (RFC 9293, TCP Keep-Alives)."""
    family, kind, protocol, _, _ = address
    opened_socket = socket.socket(family, kind, protocol)
    opened_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL"):  # each system has some of them
        if (option := getattr(socket, name, None)) is not None:
            opened_socket.setsockopt(socket.IPPROTO_TCP, option, PROBE_SECONDS)
    return opened_socket


def _find_proxy(url: URL) -> URL | None:
    proxies = getproxies()
    proxy_url = proxies.get(url.scheme) or proxies.get("all")
    if not proxy_url or proxy_bypass(f"{url.host}:{url.port}"):
        return None
    try:
        proxy = URL(proxy_url if "://" in proxy_url else f"http://{proxy_url}")
    except ValueError:
        proxy = URL()
    if proxy.scheme not in ("http", "https") or not proxy.host:
        # The URL of a proxy may contain a password, and is not repeated.
        raise ConnectionError("the proxy that is set in the environment can't be used: it is not an HTTP proxy")
    return proxy


def failed_exchange(id: RequestId, error: Exception) -> Unanswered:
    """Return the message that the client gets for the request `id`, whose exchange failed with `error`."""
    if isinstance(error, AuthError):
        return Unanswered(id, str(error), "no login" if isinstance(error, LoginRequired) else "unauthorized")
    return Unanswered(id, reason_of(error), "unreached" if isinstance(error, _CONNECT_ERRORS) else "unknown")


def reason_of(error: Exception) -> str:
    """Return the reason of a failure as text, without the URL, whose query may contain a secret."""
    match error:
        case AuthError():
            return str(error)
        case aiohttp.ClientConnectorCertificateError():
            return f"no connection to {error.host}:{error.port}: its certificate was not accepted"
        case aiohttp.ClientConnectorError(os_error=OSError() as cause):
            # For a system error, asyncio's text says what was attempted instead of what failed, so the text for its
            # errno is used. Name resolution and TLS have other codes, which `os.strerror` does not know.
            has_own_text = isinstance(cause, socket.gaierror | ssl.SSLError) or not cause.errno
            reason = cause.strerror or str(cause) if has_own_text else os.strerror(cause.errno or 0)
            return f"no connection to {error.host}:{error.port}: {reason}"
        case aiohttp.ConnectionTimeoutError():
            return f"no connection within {CONNECT_SECONDS:g} s"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without an answer"
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return f"the answer is not valid HTTP: {escape(str(error.message))[:200]}"
    return f"{type(error).__name__}: {escape(str(error))[:200]}"
