"""The HTTP client: requests, proxies, HTTP/2 and errors."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import h2.config
import h2.connection
import h2.events
import httpcore
import httpx
import pytest
from h2.settings import SettingCodes

from servers.fetch.errors import TRY_LATER, FetchError
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions, _Transport, open_client
from servers.fetch.network.proxy import parse_proxy
from servers.fetch.network.urls import parse_url
from servers.fetch.read.page import LoadedPage
from shared import Implementation, Server
from shared.transports.http.server import HttpOptions, run_http
from tests.servers.fetch.loaders import AGENT, refused
from tests.servers.fetch.reaching import ANSWER, PATIENCE, Answers, listening, reaching

NAMES = Answers(
    site_test=["127.0.0.1"], public_test=["93.184.215.14"], localhost=["127.0.0.1"], own_test=["127.0.0.1"]
)
LOCAL = ["site.test:*", "127.0.0.1:*"]


async def test_the_client_stores_no_cookies() -> None:
    async with listening() as site, reaching(NAMES, allow_private=LOCAL) as web:
        for _ in range(2):
            await web.get(f"http://site.test:{site.port}/")
        assert b"ookie" not in site.requests[1]
        assert not web.client.cookies


async def test_the_client_follows_no_redirects() -> None:
    async with listening() as site, reaching(NAMES, allow_private=LOCAL) as web:
        site.answer = ANSWER.replace(b"200 OK", b"302 Found\r\nLocation: /other")
        answer = await web.client.get(f"http://site.test:{site.port}/")
        assert answer.status_code == 302
        assert await site.count() == 1


async def test_proxy_variables_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as site, listening() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, allow_private=LOCAL) as web:
            assert await web.get(f"http://site.test:{site.port}/") == "hello"
        assert await proxy.count() == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk",
    ],
)
async def test_an_invalid_http_response_is_a_bad_response(answer: bytes) -> None:
    async with listening() as site, reaching(NAMES, allow_private=LOCAL) as web:
        site.answer = answer
        error = await web.refused(f"http://site.test:{site.port}/")
    assert (error.code, str(error)) == ("bad_response", "the site's answer is not valid HTTP")


async def test_a_silent_site_times_out() -> None:
    async with listening() as site, reaching(NAMES, ClientOptions(timeout=0.1), allow_private=LOCAL) as web:
        site.answer = None
        error = await web.refused(f"http://site.test:{site.port}/")
    assert (error.code, str(error)) == ("timeout", f"the site sent nothing for 0.1 s. {TRY_LATER}")


# Proxies


async def test_a_proxy_gets_the_url_and_its_own_credentials() -> None:
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://me:hunt%65r2@127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options) as web:
            assert await web.get("http://public.test/page") == "hello"
        (request,) = proxy.requests
    assert request.startswith(b"GET http://public.test/page HTTP/1.1\r\n")
    assert httpx.BasicAuth("me", "hunter2")._auth_header.encode() in request


async def test_https_through_a_proxy_uses_connect() -> None:
    async with listening() as proxy:
        proxy.answer = b"HTTP/1.1 403 hunter2\r\nContent-Length: 0\r\n\r\n"
        async with reaching(NAMES, ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")) as web:
            error = await web.refused("https://public.test/page")
        assert proxy.requests[0].startswith(b"CONNECT public.test:443 HTTP/1.1\r\n")
    assert (error.code, error.reason) == ("connect", "the proxy refused to connect to the site")


async def test_a_proxy_gets_no_request_for_a_blocked_url() -> None:
    rows = {
        "http://site.test/": "blocked_address",
        "http://127.0.0.1/": "blocked_address",
        "http://169.254.169.254/": "blocked_address",
        "http://public.test:22/": "blocked_host",
        "http://denied.test/": "blocked_host",
        "http://unknown.test/": "dns",
    }
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options, deny_host=["denied.test"]) as web:
            assert {url: (await web.refused(url)).code for url in rows} == rows
        async with reaching(NAMES, options, allow_port=[8080]) as web:
            for scheme, port in (("http", 80), ("https", 443)):
                assert str(await web.refused(f"{scheme}://public.test/")).startswith(f"port {port} is not allowed")
        assert await proxy.count() == 0


async def test_a_proxy_may_resolve_a_name_in_allow_private() -> None:
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options, allow_private=["unknown.test"]) as web:
            assert await web.get("http://unknown.test/") == "hello"


async def test_an_unreachable_proxy_is_reported_without_its_password() -> None:
    async with listening() as closed:
        pass
    options = ClientOptions(proxy_url=f"http://me:hunter2@127.0.0.1:{closed.port}")
    async with reaching(NAMES, options) as web:
        error = await web.refused("http://public.test/")
    assert (error.code, error.reason) == ("connect", "the proxy can't be reached")
    assert "--proxy-url" in error.suggestion


def test_the_repr_of_a_proxy_hides_its_credentials() -> None:
    proxy = parse_proxy("https://me:p%40ss@[::1]:3128/")
    assert proxy == ("https", "::1", 3128, (b"me", b"p@ss"))
    assert repr(proxy) == "Proxy(https://::1:3128)"


def test_a_proxy_url_without_a_port_has_the_default_port() -> None:
    ports = {"http://a": 80, "https://a": 443, "http://a:443": 443, "https://a:1": 1, "http://a:65535/": 65_535}
    assert {url: parse_proxy(url).port for url in ports} == ports


def test_missing_parts_of_proxy_credentials_are_empty() -> None:
    rows = {"": None, "me@": (b"me", b""), ":b@": (b"", b"b")}
    assert {user: parse_proxy(f"http://{user}proxy.test").credentials for user in rows} == rows


def test_an_invalid_proxy_url_is_refused() -> None:
    for url in ("", "proxy.test", "ftp://proxy.test", "http://", "http://proxy.test/path"):
        with pytest.raises(ValueError, match=r"^a proxy is http\[s\]://\[USER:PASSWORD@\]HOST\[:PORT\]; "):
            parse_proxy(url)
    for port in (0, 65_536, 99_999):
        with pytest.raises(ValueError, match=r"^the port of the proxy is not a number from 1 to 65535$"):
            parse_proxy(f"http://proxy.test:{port}")


# The server itself, which its clients may not be able to reach

ANYWHERE = Rules(allow_private=["0.0.0.0/0:*", "[::/0]:*", "localhost:*", "own.test:*"])
OWN_NAMES = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "0", "localhost", "own.test", "[::1]", "[::ffff:7f00:1]", "[::]"]


def find_own_address() -> str:
    """Returns the address of an interface of this machine, or loopback without any other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
async def test_a_server_does_not_fetch_from_itself_by_any_name(bound: str) -> None:
    app, ready, stop = Server(Implementation(name="own", version="1")), anyio.Event(), anyio.Event()
    options = HttpOptions(bound, 0, allowed_hosts=("*",))
    endpoints = list[tuple[str, int]]()
    policy = Policy(ANYWHERE, lambda: endpoints)
    async with (
        app.open() as running,
        anyio.create_task_group() as tasks,
        open_client(ClientOptions(), policy, NAMES) as web,
    ):
        endpoints = running.hooks.endpoints
        tasks.start_soon(lambda: run_http(running, options, started=lambda *_: ready.set(), stop=stop))
        with anyio.fail_after(PATIENCE):
            await ready.wait()
            port = endpoints[0][1]
            for host in [*OWN_NAMES, find_own_address()]:
                with pytest.raises(FetchError, match="is this server, which never"):
                    await web.get(parse_url(f"http://{host}:{port}/healthz"))
        stop.set()


# Sites that misuse HTTP/2 streams

STREAMS = 5
"""The number of concurrent streams that a site allows."""
Answer = Callable[[h2.connection.H2Connection, int], None]


@asynccontextmanager
async def opened_http2(answer: Answer, streams: int = STREAMS) -> AsyncIterator[str]:
    """Runs a site that speaks HTTP/2 without TLS, and calls `answer` with the stream of each request."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: streams})
        with suppress(ConnectionError, asyncio.CancelledError):
            writer.write(connection.data_to_send())
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        answer(connection, event.stream_id)
                writer.write(connection.data_to_send())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def http2_loader(timeout: float = 5) -> AsyncIterator[Loader]:
    """Makes a loader that speaks HTTP/2 without TLS, for which the client has no option."""
    transport = _Transport(httpcore.AsyncConnectionPool(http1=False, http2=True), None)
    policy = Policy(Rules(allow_private=["127.0.0.1:*"]))
    async with httpx.AsyncClient(transport=transport) as client:
        yield Loader(client, policy, LoadRules(AGENT, timeout=timeout, max_bytes=50_000, ignore_robots=True))


def page(connection: h2.connection.H2Connection, stream: int) -> None:
    connection.send_headers(stream, [(":status", "200")])
    connection.send_data(stream, b"page", end_stream=True)


async def test_http2_streams_reset_at_once_are_errors() -> None:
    requests = 0

    def reset(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal requests
        requests += 1
        if requests > 50:
            page(connection, stream)
        else:
            connection.reset_stream(stream)

    async with opened_http2(reset) as url, http2_loader() as loader:
        codes = [(await refused(loader, url)).code for _ in range(50)]
        assert set(codes) == {"bad_response"}
        assert (await loader.load(url)).body == b"page"


async def test_an_http2_stream_reset_within_the_body_is_an_error() -> None:
    def reset(connection: h2.connection.H2Connection, stream: int) -> None:
        connection.send_headers(stream, [(":status", "200")])
        connection.send_data(stream, b"half")
        connection.reset_stream(stream)

    async with opened_http2(reset) as url, http2_loader() as loader:
        assert (await refused(loader, url)).code == "bad_response"


async def test_abandoned_loads_do_not_use_up_the_http2_connection() -> None:
    requests = 0

    def large(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal requests
        requests += 1
        if requests > STREAMS + 1:
            page(connection, stream)
            return
        connection.send_headers(stream, [(":status", "200")])
        for _ in range(4):
            connection.send_data(stream, bytes(16_000))

    async with opened_http2(large) as url, http2_loader() as loader:
        codes = [(await refused(loader, url)).code for _ in range(STREAMS + 1)]
        assert set(codes) == {"too_large"}
        assert (await loader.load(url)).body == b"page"


async def test_an_abandoned_load_does_not_end_others_on_its_http2_connection() -> None:
    begun = anyio.Event()
    requests = 0

    def answer(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal requests
        requests += 1
        if requests == 1:
            begun.set()
        elif requests == 2:
            connection.send_headers(stream, [(":status", "200"), ("content-length", "60000")])
        else:
            page(connection, stream)

    async with opened_http2(answer) as url, http2_loader() as loader:
        first = asyncio.create_task(loader.load(url))
        await begun.wait()
        assert (await refused(loader, url)).code == "too_large"
        assert (await first).body == b"page"


async def test_many_abandoned_loads_do_not_end_others_on_http2() -> None:
    given = 0

    def answer(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal given
        if stream == 1 and given < 6:
            # The first response on each connection is too large; the other requests get no response.
            given += 1
            connection.send_headers(stream, [(":status", "200"), ("content-length", "60000")])
        elif given == 6:
            page(connection, stream)

    async with opened_http2(answer, streams=100) as url, http2_loader() as loader:
        loads = await asyncio.gather(*(loader.load(url) for _ in range(10)), return_exceptions=True)
    assert [one.code for one in loads if isinstance(one, FetchError)] == ["too_large"] * 6
    assert [one.body for one in loads if isinstance(one, LoadedPage)] == [b"page"] * 4


async def test_large_http2_headers_are_refused() -> None:
    def large(connection: h2.connection.H2Connection, stream: int) -> None:
        fields = [(f"x-{n}", "x" * 1_000) for n in range(100)]
        connection.max_inbound_frame_size = 1 << 20
        connection.send_headers(stream, [(":status", "200"), *fields], end_stream=True)

    async with opened_http2(large) as url, http2_loader() as loader:
        assert (await refused(loader, url)).code in {"too_large", "bad_response"}


@pytest.mark.parametrize("times", [1, 2])
async def test_an_http2_goaway_ends_the_load_with_an_error(times: int) -> None:
    def leave(connection: h2.connection.H2Connection, _: int) -> None:
        for _ in range(times):
            connection.close_connection()

    async with opened_http2(leave) as url, http2_loader(timeout=0.5) as loader:
        assert (await refused(loader, url)).code in {"bad_response", "connect", "timeout"}
