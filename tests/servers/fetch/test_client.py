"""The client: what it sends, what it keeps, and what becomes of failures."""

import httpx
import pytest

from servers.fetch.network.client import ClientOptions
from servers.fetch.network.proxy import parse_proxy
from tests.servers.fetch.reaching import ANSWER, Answers, listening, reaching

NAMES = Answers(site_test=["127.0.0.1"], public_test=["93.184.215.14"], secure_test=["127.0.0.1"])
LOCAL = ["site.test:*", "127.0.0.1:*"]


async def test_it_keeps_no_cookies() -> None:
    async with listening() as site, reaching(NAMES, allow_private=LOCAL) as web:
        for _ in range(2):
            await web.get(f"http://site.test:{site.port}/")
        assert b"ookie" not in site.requests[1]
        assert not web.client.cookies


async def test_it_follows_no_redirects() -> None:
    async with listening() as site, reaching(NAMES, allow_private=LOCAL) as web:
        site.answer = ANSWER.replace(b"200 OK", b"302 Found\r\nLocation: /other")
        answer = await web.client.get(f"http://site.test:{site.port}/")
        assert answer.status_code == 302
        assert await site.count() == 1


async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as site, listening() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, allow_private=LOCAL) as web:
            assert await web.get(f"http://site.test:{site.port}/") == "hello"
        assert await proxy.count() == 0


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", "bad_response"),
        (b"nonsense\r\n\r\n", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk", "bad_response"),
    ],
)
async def test_what_is_no_http_is_said_to_be_none(answer: bytes, code: str) -> None:
    async with listening() as site, reaching(NAMES, allow_private=LOCAL) as web:
        site.answer = answer
        error = await web.refused(f"http://site.test:{site.port}/")
    assert (error.code, str(error)) == (code, "the site does not answer as HTTP wants it")


async def test_a_site_that_says_nothing_is_given_up() -> None:
    async with listening() as site, reaching(NAMES, ClientOptions(seconds=0.5), allow_private=LOCAL) as web:
        site.answer = None
        error = await web.refused(f"http://site.test:{site.port}/")
    assert (error.code, str(error)) == ("timeout", "the site did not answer in time")


# Proxies


async def test_a_proxy_is_sent_the_url_and_its_own_credentials() -> None:
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://me:hunt%65r2@127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options) as web:
            assert await web.get("http://public.test/page") == "hello"
        (request,) = proxy.requests
    assert request.startswith(b"GET http://public.test/page HTTP/1.1\r\n")
    assert httpx.BasicAuth("me", "hunter2")._auth_header.encode() in request


async def test_a_proxy_is_asked_for_a_tunnel_where_tls_is_wanted() -> None:
    async with listening() as proxy:
        proxy.answer = b"HTTP/1.1 403 hunter2\r\nContent-Length: 0\r\n\r\n"
        async with reaching(NAMES, ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")) as web:
            error = await web.refused("https://public.test/page")
        assert proxy.requests[0].startswith(b"CONNECT public.test:443 HTTP/1.1\r\n")
    assert (error.code, str(error)) == ("connect", "the proxy refused to connect to the site")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://site.test/", "blocked_address"),
        ("http://127.0.0.1/", "blocked_address"),
        ("http://169.254.169.254/", "blocked_address"),
        ("http://public.test:22/", "blocked_host"),
        ("http://denied.test/", "blocked_host"),
        ("http://unknown.test/", "dns"),
    ],
)
async def test_a_proxy_hears_nothing_of_what_is_not_allowed(url: str, code: str) -> None:
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options, deny_host=["denied.test"]) as web:
            assert (await web.refused(url)).code == code
        assert await proxy.count() == 0


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
async def test_a_url_without_a_port_has_that_of_its_scheme(scheme: str, port: int) -> None:
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options, allow_port=[8080]) as web:
            assert str(await web.refused(f"{scheme}://public.test/")).startswith(f"port {port} is not allowed")


async def test_a_proxy_may_know_a_name_that_the_operator_allows() -> None:
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with reaching(NAMES, options, allow_private=["unknown.test"]) as web:
            assert await web.get("http://unknown.test/") == "hello"


async def test_a_proxy_that_is_not_there_is_not_shown_with_its_password() -> None:
    async with listening() as closed:
        pass
    options = ClientOptions(proxy_url=f"http://me:hunter2@127.0.0.1:{closed.port}")
    async with reaching(NAMES, options) as web:
        error = await web.refused("http://public.test/")
    assert (error.code, str(error)) == ("connect", "the proxy can't be reached")


def test_a_proxy_is_shown_without_its_credentials() -> None:
    proxy = parse_proxy("https://me:p%40ss@[::1]:3128/")
    assert proxy == ("https", "::1", 3128, (b"me", b"p@ss"))
    assert repr(proxy) == "Proxy(https://::1:3128)"


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://a", 80), ("https://a", 443), ("http://a:443", 443), ("https://a:1", 1), ("http://a:65535/", 65_535)],
)
def test_a_proxy_has_a_port(url: str, port: int) -> None:
    assert parse_proxy(url).port == port


@pytest.mark.parametrize(("user", "credentials"), [("", None), ("me@", (b"me", b"")), (":b@", (b"", b"b"))])
def test_what_is_left_out_of_credentials_is_empty(user: str, credentials: tuple[bytes, bytes] | None) -> None:
    assert parse_proxy(f"http://{user}proxy.test").credentials == credentials


@pytest.mark.parametrize("url", ["", "proxy.test", "ftp://proxy.test", "http://", "http://proxy.test/path"])
def test_what_is_no_proxy_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^a proxy is http\[s\]://\[USER:PASSWORD@\]HOST\[:PORT\]; "):
        parse_proxy(url)


@pytest.mark.parametrize("port", [0, 65_536, 99_999])
def test_a_proxy_at_no_port_is_refused(port: int) -> None:
    with pytest.raises(ValueError, match=r"^the port of the proxy is not a number from 1 to 65535$"):
        parse_proxy(f"http://proxy.test:{port}")
