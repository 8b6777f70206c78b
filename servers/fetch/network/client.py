"""The HTTP client, which only connects to hosts that the policy allows."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import NamedTuple

import anyio
import httpcore
import httpx
from h2.exceptions import H2Error

from ..errors import TRY_LATER, FetchError
from .address_policy import Policy
from .connecting import CheckedBackend, Resolver, resolve_allowed
from .proxy import parse_proxy
from .streams import Http2Stream, TlsStream, record_streams, tls_context
from .urls import host_of, port_of

MAX_IDLE_CONNECTIONS = 20
IDLE_SECONDS = 15
"""Maximum number of unused connections that are kept, and the number of seconds for which each is kept."""

# The first class that matches an exception applies. The exceptions' own texts are not used: sites can influence them.
_FAILURES: list[tuple[type[Exception], str, str]] = [
    (httpcore.PoolTimeout, "busy", "too many pages are being fetched already"),
    (httpcore.TimeoutException, "timeout", "the site sent nothing for {seconds:g} s"),
    (httpcore.ProxyError, "connect", "the proxy refused to connect to the site"),
    (httpcore.NetworkError, "connect", "the site ended the connection"),
    (httpcore.ProtocolError, "bad_response", "the site's answer is not valid HTTP"),
    (H2Error, "bad_response", "the site's answer is not valid HTTP/2"),
    # httpcore raises ValueError for an HTTP/2 status that is not a number.
    (ValueError, "bad_response", "the site's answer is not valid HTTP/2"),
    (httpcore.UnsupportedProtocol, "bad_url", "only http and https URLs can be fetched"),
]


class ClientOptions(NamedTuple):
    """The operator's settings for connections."""

    timeout: float = 20
    """Time limit for resolving and connecting, for TLS, and for each read and write. The caller limits the total."""
    connections: int = 50
    ca_file: Path | None = None
    proxy_url: str | None = None


@asynccontextmanager
async def open_client(options: ClientOptions, policy: Policy, resolver: Resolver) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client that resolves each host once, checks all of its addresses, and connects to one of them.

    It follows no redirects, stores no cookies, and reads neither environment variables nor .netrc. Every failure to
    send a request or to read the response is a FetchError. Raises ValueError for unusable options.
    """
    proxy = None if options.proxy_url is None else parse_proxy(options.proxy_url)
    backend: httpcore.AsyncNetworkBackend = CheckedBackend(policy, resolver)
    httpcore_proxy = None
    if proxy is not None:
        backend = _ProxyBackend()
        url = httpcore.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target="/")
        context = tls_context(options.ca_file) if proxy.scheme == "https" else None
        httpcore_proxy = httpcore.Proxy(url, auth=proxy.credentials, ssl_context=context)
    pool = httpcore.AsyncConnectionPool(
        ssl_context=tls_context(options.ca_file),
        proxy=httpcore_proxy,
        max_connections=options.connections,
        max_keepalive_connections=MAX_IDLE_CONNECTIONS,
        keepalive_expiry=IDLE_SECONDS,
        http2=True,
        network_backend=backend,
    )
    transport = _Transport(pool, None if proxy is None else HostRules(policy, resolver))
    client = httpx.AsyncClient(
        transport=transport,
        timeout=options.timeout,
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
    async with client:
        yield client


class HostRules(NamedTuple):
    """The policy and the resolver that decide whether a host may be requested."""

    policy: Policy
    resolver: Resolver


class _ProxyBackend(httpcore.AnyIOBackend):
    """Connects to the operator's proxy, at any address."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's name)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to the proxy."""
        try:
            stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        except httpcore.ConnectTimeout as error:
            raise FetchError("timeout", f"the proxy was not reached within {timeout:g} s", TRY_LATER) from error
        except httpcore.ConnectError as error:
            advice = "Try again later. The operator can check --proxy-url."
            raise FetchError("connect", "the proxy can't be reached", advice) from error
        return TlsStream(stream, host)  # TLS begins when httpcore asks for it


class _Transport(httpx.AsyncBaseTransport):
    """httpcore's connection pool as an httpx transport. Every failure is a FetchError."""

    def __init__(self, pool: httpcore.AsyncConnectionPool, host_rules: HostRules | None) -> None:
        """Wrap the pool. A pool that connects to a proxy does not check the hosts of requests. With `host_rules`,
        this transport checks the host before each request."""
        self._pool = pool
        self._host_rules = host_rules

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        if self._host_rules is not None:
            policy, resolver = self._host_rules
            host, port = host_of(request.url), port_of(request.url)
            try:
                await resolve_allowed(policy, resolver, host, port)
            except FetchError as error:
                # The proxy may resolve the name of a private host that this machine can't resolve.
                if error.code != "dns" or not policy.may_be_private(host, port):
                    raise
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        content = request.stream if isinstance(request.stream, httpx.AsyncByteStream) else None
        core_request = httpcore.Request(
            request.method, target, headers=request.headers.raw, content=content, extensions=request.extensions
        )
        seconds = request.extensions["timeout"]["read"]
        with _explain_errors(seconds), record_streams() as streams:
            try:
                response = await self._pool.handle_async_request(core_request)
            except (ValueError, httpcore.LocalProtocolError):
                # An HTTP/2 stream that httpcore could not read stays open, and after a hundred of them the connection
                # would accept no more. So the connection is closed.
                await _close_all(streams)
                raise
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response, seconds), extensions=response.extensions
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


async def _close_all(streams: list[Http2Stream]) -> None:
    with anyio.CancelScope(shield=True):
        for stream in streams:
            await stream.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response, seconds: float) -> None:
        self._response = response
        self._seconds = seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _explain_errors(self._seconds):
            async for part in self._response.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _explain_errors(seconds: float) -> Iterator[None]:
    try:
        yield
    except tuple(kind for kind, _, _ in _FAILURES) as error:
        code, reason = next((code, reason) for kind, code, reason in _FAILURES if isinstance(error, kind))
        suggestion = TRY_LATER if code == "timeout" else ""
        raise FetchError(code, reason.format(seconds=seconds), suggestion) from error
