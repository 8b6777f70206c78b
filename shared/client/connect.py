"""Opens clients of servers that are child processes, or that have a URL."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urljoin, urlsplit

from ..contracts import ClosableTransport, Credentials, InteractiveCredentials
from ..errors import PeerError
from ..protocol.wire.codec import Codec, Framing
from ..transports.child.process import Stderr, inherited_environment, start_process
from ..transports.framed import framed
from .client import Client
from .connection.restart import Start
from .errors import EndedAtProbe
from .options import ClientOptions

if TYPE_CHECKING:
    import aiohttp

FALLBACK_SECONDS = 5.0
"""Seconds that a server that has refused a POST has to open a stream of HTTP+SSE, and then as many to name its
endpoint. They are few, because most servers that refuse a POST have no such stream, and other streams never name an
endpoint."""
LOGIN_SECONDS = 330.0
"""Minimum number of seconds that a server has to answer the first request if a person may have to log in for it."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
"""The pattern of a header value (RFC 9110, Field Values): no line ends, and no spaces at either end."""
_FRAMING_HEADERS = ("connection", "content-length", "transfer-encoding")
"""The headers that determine the end of a message; only the sender of the message can set them correctly."""
_DIALECT_WITH_HEADERS = "000"
"""The dialect with message headers on stdio (4.1.2 of its document)."""
_NOT_ABOUT_TRANSPORT = (401, 403, 429)
"""The statuses below 500 that say nothing about the transport (not authorized, too many requests). Any other status
from 400 to 499 may mean that the server supports only HTTP+SSE."""


def connect(
    target: str | Sequence[str],
    options: ClientOptions | None = None,
    *,
    dialect: str | None = None,
    **connect_options: Any,
) -> AbstractAsyncContextManager[Client]:
    """Connect to the server at a URL, over HTTP or WebSocket, or to the server that a command starts. `dialect`
    replaces the dialect in `options`; `connect_options`, and the errors raised, are those of `connect_http`,
    `connect_websocket` or `connect_stdio`.

    Raises ValueError for any other kind of URL, and TypeError if `connect_options` do not fit the target, or if the
    target is neither a URL nor a command.
    """
    if not isinstance(target, Sequence):
        raise TypeError(
            f"connect needs a URL or a command, not a {type(target).__name__}; for a Server in this process, use "
            "testing.connect_memory"
        )
    if dialect is not None:
        options = replace(options or ClientOptions(), dialect=dialect)
    if not isinstance(target, str):
        return connect_stdio(target, options, **connect_options)
    match urlsplit(target).scheme:
        case "http" | "https":
            return connect_http(target, options, **connect_options)
        case "ws" | "wss":
            return connect_websocket(target, options, **connect_options)
    raise ValueError(
        "the URL of a server must start with http://, https://, ws:// or wss://; a command must be a list"
    )


@asynccontextmanager
async def connect_stdio(
    command: Sequence[str],
    options: ClientOptions | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: Stderr = "log",
    framing: Framing | None = None,
) -> AsyncIterator[Client]:
    """Connect to the server that `command` starts; the connection and the server end with the block. The server's
    environment is `inherited_environment()`, with the variables in `env` replaced or added. `framing` applies to sent
    messages; the default is lines, or headers with Content-Length in dialect 000. Received messages may use either.

    Raises ValueError for an unknown framing, OSError if the command can't be started, and the same errors as entering
    a `Client`.
    """
    if framing not in (None, *get_args(Framing)):
        raise ValueError(f"the framing must be {' or '.join(get_args(Framing))}, not {framing!r}")
    dialect = None if options is None else options.dialect
    sent_framing = framing or ("content-length" if dialect == _DIALECT_WITH_HEADERS else "lines")
    environment = {**inherited_environment(), **(env or {})}

    @asynccontextmanager
    async def start() -> AsyncIterator[ClosableTransport]:
        async with start_process(command, env=environment, cwd=cwd, stderr=stderr) as stream:
            yield framed(stream, Codec(is_client=True, framing=sent_framing, dialect=dialect))

    keyed_options = _set_cache_key(options, (*command, str(cwd), frozenset(environment.items())))
    # A lost process is started again only if the option `restart` is set.
    keyed_options = replace(keyed_options, reconnect=keyed_options.restart)
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(_start_client(start, keyed_options))
        except EndedAtProbe:
            # Some servers, for example those that use the Rust SDK, end if the first request is not a handshake.
            handshake = replace(keyed_options, mode="handshake")
            client = await stack.enter_async_context(_start_client(start, handshake))
        yield client


@asynccontextmanager
async def connect_http(
    url: str,
    options: ClientOptions | None = None,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    http: aiohttp.ClientSession | None = None,
    auth: Credentials | None = None,
) -> AsyncIterator[Client]:
    """Connect to the server at `url`. `token` is sent as a bearer token; `headers` are sent with every request.
    `http` is a session to use instead of a new one, for proxies and certificates; it is not closed. `auth`, such as
    `OAuth`, replaces `token`, and obtains a token if the server requires one; if that fails, calls raise AuthError.

    If the server accepts no POST at this URL, HTTP+SSE is tried (2025-11-25, Transports, Backwards Compatibility). A
    redirect is followed only if it adds a slash to the end of the URL, or removes one. Raises the same errors as
    entering a `Client`. PeerError with code 401 or 403 means that the server requires a token, or a different token.
    """
    options = _set_cache_key(options, url)
    async with AsyncExitStack() as stack:
        connection = partial(_connect_http, options=options, token=token, headers=headers, http=http, auth=auth)
        try:
            client = await stack.enter_async_context(connection(url))
        except PeerError as error:
            other_url = _find_slash_redirect(url, error)
            if other_url is None:
                raise
            client = await stack.enter_async_context(connection(other_url))
        yield client


def _find_slash_redirect(url: str, error: PeerError) -> str | None:
    """Return `url` with a slash added to the end of its path, or removed from it, if `error` is a redirect there;
    None for any other error."""
    location = error.data.get("location") if 300 <= error.code < 400 and isinstance(error.data, dict) else None
    parts = urlsplit(url)
    path = parts.path[:-1] if parts.path.endswith("/") else f"{parts.path}/"
    try:
        is_same = isinstance(location, str) and urlsplit(urljoin(url, location)).path == path
    except ValueError:
        return None
    # Only the slash is used: behind a proxy, servers often redirect to an origin that their clients can't reach.
    return parts._replace(path=path).geturl() if is_same and path not in ("", "/") else None


@asynccontextmanager
async def _connect_http(
    url: str,
    *,
    options: ClientOptions,
    token: str | None,
    headers: Mapping[str, str] | None,
    http: aiohttp.ClientSession | None,
    auth: Credentials | None,
) -> AsyncIterator[Client]:
    from ..transports.http.client.client import open_http
    from ..transports.http.client.legacy_sse import open_sse
    from ..transports.http.client.pool import open_pool

    options, sent_headers = _allow_for_login(options, auth), fixed_headers(token, headers)
    async with open_pool(http, url) as pool, AsyncExitStack() as stack:
        try:
            start = partial(open_http, url, sent_headers, pool, auth, options.dialect)
            client = await stack.enter_async_context(_start_client(start, options))
        except PeerError as refusal:
            # HTTP+SSE is only possible if the options accept a version with a handshake.
            accepts_handshake = not options.accepted_versions()[0].stateless
            # 2025-11-25 names the statuses 400, 404 and 405, but older versions name any 4xx, and older servers send
            # these.
            if not (accepts_handshake and 400 <= refusal.code < 500 and refusal.code not in _NOT_ABOUT_TRANSPORT):
                raise
            start_older = partial(open_sse, url, sent_headers, pool, auth)
            transport = await stack.enter_async_context(_open_older(start_older, refusal))
            client = await stack.enter_async_context(_handshake_client(transport, options, start_older))
        yield client


@asynccontextmanager
async def connect_sse(
    url: str,
    options: ClientOptions | None = None,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    http: aiohttp.ClientSession | None = None,
    auth: Credentials | None = None,
) -> AsyncIterator[Client]:
    """Connect to the server whose HTTP+SSE event stream is at `url`; the arguments are as for `connect_http`.

    Raises the same errors as `open_sse` and as entering a `Client`.
    """
    from ..transports.http.client.legacy_sse import open_sse
    from ..transports.http.client.pool import open_pool

    options, sent_headers = _allow_for_login(_set_cache_key(options, url), auth), fixed_headers(token, headers)
    async with open_pool(http, url) as pool:
        start = partial(open_sse, url, sent_headers, pool, auth, options.dialect)
        async with start() as transport, _handshake_client(transport, options, start) as client:
            yield client


@asynccontextmanager
async def connect_websocket(
    url: str,
    options: ClientOptions | None = None,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    auth: Credentials | None = None,
) -> AsyncIterator[Client]:
    """Connect to the server at `url`, which begins with ws:// or wss://. `token`, as a bearer token, and `headers`
    are sent in the handshake only; `auth` is as in `connect_http`.

    Raises the same errors as `open_websocket`, including PeerError 401 and 403, and as entering a `Client`.
    """
    from ..transports.websocket import open_websocket

    options = _allow_for_login(_set_cache_key(options, url), auth)
    start = partial(open_websocket, url, fixed_headers(token, headers), auth, options.dialect)
    async with _start_client(start, options) as client:
        yield client


@asynccontextmanager
async def _start_client(start: Start, options: ClientOptions) -> AsyncIterator[Client]:
    async with start() as transport, _client(transport, options, start) as client:
        yield client


@asynccontextmanager
async def _open_older(
    start: Callable[..., AbstractAsyncContextManager[ClosableTransport]], refusal: PeerError
) -> AsyncIterator[ClosableTransport]:
    """Open an HTTP+SSE transport to a server that answered a POST with `refusal`. Raises `refusal` if the server does
    not support HTTP+SSE, because the answer to the POST explains more than the error of this attempt."""
    async with AsyncExitStack() as stack:
        try:
            transport = await stack.enter_async_context(start(endpoint_timeout=FALLBACK_SECONDS))
        except PeerError as error:
            # There may be a stream, but the client may not open it, which the user must learn.
            raise error if error.code in _NOT_ABOUT_TRANSPORT else refusal from None
        except (ConnectionError, TimeoutError):
            raise refusal from None
        yield transport


def _allow_for_login(options: ClientOptions, auth: Credentials | None) -> ClientOptions:
    """Return the options with enough time for a person to log in: a login is lost if its request times out."""
    if not isinstance(auth, InteractiveCredentials) or not auth.may_wait_for_person:
        return options
    probe, opening = (max(LOGIN_SECONDS, limit or 0.0) for limit in (options.probe_seconds, options.opening_seconds))
    return replace(options, probe_seconds=probe, opening_seconds=opening)


def _client(transport: ClosableTransport, options: ClientOptions, start: Start) -> Client:
    return Client(transport, options, reopen=start if options.reconnect else None)


def _handshake_client(transport: ClosableTransport, options: ClientOptions, start: Start) -> Client:
    """Return a client that opens the session with a handshake: HTTP+SSE servers are never stateless, and a server
    that does not know `server/discover` may never answer it."""
    mode = "handshake" if options.mode == "auto" and options.dialect is None else options.mode
    return _client(transport, replace(options, mode=mode), start)


def _set_cache_key(options: ClientOptions | None, server: Hashable) -> ClientOptions:
    """Return the options with a key that identifies `server` in a shared cache."""
    base = options or ClientOptions()
    return base if base.cache_key is not None else replace(base, cache_key=server)


def fixed_headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers that are sent with every request.

    Raises ValueError for a header that can't be sent; the message omits the values, which may be secrets.
    """
    # Names are compared in lower case; otherwise a given header and our own header of the same name would both be
    # sent.
    lowercase_headers = {name.lower(): value for name, value in (headers or {}).items()}
    sent_headers = {**lowercase_headers, **({} if token is None else {"authorization": f"Bearer {token}"})}
    for name, value in sent_headers.items():
        if not _NAME.fullmatch(name) or name in _FRAMING_HEADERS:
            raise ValueError(f"not the name of an HTTP header that can be set: {name[:100]!r}")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the value of the HTTP header {name[:100]} has characters that can't be sent")
    return sent_headers
