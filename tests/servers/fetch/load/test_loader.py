"""Loading a page, and hostile and unusual responses."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import anyio
import pytest

from servers.fetch.errors import TRY_LATER
from servers.fetch.load.headers import parse_host_header
from tests.servers.fetch.authority import authority, certificate, server_context
from tests.servers.fetch.loaders import AGENT, opened_loader, refused
from tests.servers.fetch.packing import NAMES, PACK, bomb
from tests.servers.fetch.sites import ReceivedRequest, Route, answer, opened_site, redirect

PAGE = answer("page", content_type="text/plain")


def sends(head: str, body: bytes = b"") -> Route:
    """Makes a route that writes this head and body, and closes the connection."""

    async def route(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        await out.drain()

    return route


async def test_a_loaded_page_has_url_status_type_and_charset() -> None:
    page = answer("<p>Hello", content_type="Text/HTML; charset=Latin-1")
    async with opened_site({"/a": page}) as site, opened_loader() as loader:
        loaded = await loader.load(site.url("/a#part"))
    assert (loaded.url, loaded.fragment, loaded.redirects) == (site.url("/a"), "part", ())
    assert (loaded.status, loaded.media_type, loaded.charset) == (200, "text/html", "Latin-1")
    assert (loaded.body, loaded.received, loaded.from_cache) == (b"<p>Hello", 8, False)
    assert site.requests[0].headers["user-agent"] == AGENT
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate, br, zstd"


async def test_an_invalid_content_type_is_an_empty_media_type() -> None:
    wrong = ["text/ignore" * 20, "text/ä b", "text/html<p>", "/html", "text/"]
    routes = {f"/{at}": sends(f"HTTP/1.1 200 X\nContent-Type: {given}") for at, given in enumerate(wrong)}
    async with opened_site(routes) as site, opened_loader() as loader:
        assert [(await loader.load(site.url(path))).media_type for path in routes] == [""] * len(wrong)


# Redirects


async def test_each_kind_of_redirect_is_followed() -> None:
    statuses = (301, 302, 303, 307, 308)
    routes = {f"/{status}": redirect("/b", status) for status in statuses}
    async with opened_site({**routes, "/b": PAGE}) as site, opened_loader() as loader:
        for status in statuses:
            loaded = await loader.load(site.url(f"/{status}"))
            assert (loaded.url, loaded.redirects) == (site.url("/b"), (site.url(f"/{status}"),))
            assert loaded.body == b"page"
        assert site.connections == 1


async def test_a_relative_location_is_resolved() -> None:
    rows = {"b": "/d/b", "../b": "/b", "?q=1": "/d/a?q=1", "//127.0.0.1:{port}/b": "/b", " /b ": "/b"}
    async with opened_site({"*": PAGE}) as site, opened_loader() as loader:

        async def first(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
            out.write(PAGE if "?" in received.target else redirect(location.format(port=site.port)))

        site.routes["/d/a"] = first
        for location, path in rows.items():  # noqa: B007 (the route gives it)
            assert (await loader.load(site.url("/d/a"))).url == site.url(path)


@pytest.mark.parametrize(
    ("requested", "location", "fragment"),
    [("/a#x", "/b", "x"), ("/a#x", "/b#y", "y"), ("/a", "/b#y", "y"), ("/a", "/b", "")],
)
async def test_the_last_fragment_of_the_redirects_counts(requested: str, location: str, fragment: str) -> None:
    async with opened_site({"/a": redirect(location), "/b": PAGE}) as site, opened_loader() as loader:
        loaded = await loader.load(site.url(requested))
        assert (loaded.url, loaded.fragment) == (site.url("/b"), fragment)


async def test_a_redirect_to_a_forbidden_url_is_refused_without_its_credentials() -> None:
    rows = {
        "bad_url": [
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "javascript:alert(1)",
            "data:,x",
            "http://[::1/",
            "http://user:secret@127.0.0.1/",
            "http://secret@127.0.0.1/",
            "//user:secret@127.0.0.1/",
        ],
        "blocked_address": ["http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/"],
    }
    async with opened_site({}) as site, opened_loader() as loader:
        for code, locations in rows.items():
            for location in locations:
                site.routes["/a"] = redirect(location)
                error = await refused(loader, site.url("/a"))
                assert error.code == code
                assert "secret" not in str(error)
                assert "passwd" not in str(error)


async def test_a_redirect_to_a_forbidden_port_is_refused() -> None:
    async with opened_site({}) as one, opened_site({"/b": PAGE}) as two:
        one.routes["/a"] = redirect(two.url("/b"))
        async with opened_loader([f"127.0.0.1:{one.port}"]) as loader:
            error = await refused(loader, one.url("/a"))
    assert error.code == "blocked_address"
    assert two.connections == 0


async def test_more_than_ten_redirects_are_refused() -> None:
    hops = {f"/{n}": redirect(f"/{n + 1}") for n in range(20)}
    async with opened_site({**hops, "/20": PAGE}) as site, opened_loader() as loader:
        error = await refused(loader, site.url("/0"))
        assert error.code == "too_many_redirects"
        assert site.paths == [f"/{n}" for n in range(11)]
        assert len((await loader.load(site.url("/10"))).redirects) == 10


async def test_a_redirect_loop_is_refused_at_once() -> None:
    async with opened_site({"/a": redirect("/b#1"), "/b": redirect("/a#2")}) as site, opened_loader() as loader:
        error = await refused(loader, site.url("/a"))
        assert (error.code, site.paths) == ("too_many_redirects", ["/a", "/b"])


@pytest.mark.slow
async def test_a_redirect_is_followed_without_waiting_for_its_body() -> None:
    async def drips(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 302 X\r\nLocation: /b\r\nContent-Length: 10\r\n\r\nx")
        await received.until_closed()

    async with opened_site({"/a": drips, "/b": PAGE}) as site, opened_loader() as loader:
        assert (await loader.load(site.url("/a"))).body == b"page"


async def test_max_redirects_of_zero_refuses_every_redirect() -> None:
    async with opened_site({"/a": redirect("/b")}) as site, opened_loader(max_redirects=0) as loader:
        assert (await refused(loader, site.url("/a"))).code == "too_many_redirects"


# Hostile bodies and headers


@pytest.mark.parametrize("name", ["gzip", "br"])
async def test_a_compression_bomb_is_refused_by_its_ratio(name: str) -> None:
    packed = answer(bomb(name, 8), content_encoding=NAMES[name])
    async with opened_site({"/a": packed}) as site, opened_loader() as loader:
        error = await refused(loader, site.url("/a"))
    assert (error.code, error.reason) == ("too_large", "the body unpacks to more than 100 times its size")


async def test_an_undeclared_compression_bomb_is_refused() -> None:
    async with opened_site({"/a": answer(bomb("gzip", 8))}) as site, opened_loader() as loader:
        assert (await refused(loader, site.url("/a"))).code == "too_large"


async def test_a_nested_compression_bomb_is_refused() -> None:
    packed = answer(PACK["gzip"](bomb("gzip", 16)), content_encoding="gzip, gzip")
    async with opened_site({"/a": packed}) as site, opened_loader() as loader:
        assert (await refused(loader, site.url("/a"))).code == "too_large"


async def test_a_body_that_unpacks_beyond_max_bytes_is_refused() -> None:
    packed = answer(PACK["gzip"](b"ab" * 1_500), content_encoding="gzip")
    async with opened_site({"/a": packed}) as site, opened_loader(max_bytes=2_000) as loader:
        assert (await refused(loader, site.url("/a"))).reason == "the body unpacks to more than 2,000 bytes"


async def test_a_body_of_exactly_max_bytes_is_read() -> None:
    async with (
        opened_site({"/a": answer(bytes(2_000)), "/b": answer(bytes(2_001))}) as site,
        opened_loader(max_bytes=2_000) as loader,
    ):
        assert len((await loader.load(site.url("/a"))).body) == 2_000
        assert (await refused(loader, site.url("/b"))).code == "too_large"


@pytest.mark.parametrize("chunked", [True, False])
async def test_an_endless_body_is_refused_at_max_bytes(chunked: bool) -> None:
    sent = 0

    async def endless(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        nonlocal sent
        out.write(b"HTTP/1.1 200 X\r\n" + (b"Transfer-Encoding: chunked\r\n" if chunked else b"") + b"\r\n")
        piece = b"3e8\r\n" + bytes(1_000) + b"\r\n"
        while not out.is_closing():
            out.write(piece)
            sent += len(piece)
            await out.drain()

    async with opened_site({"/a": endless}) as site, opened_loader(max_bytes=100_000) as loader:
        error = await refused(loader, site.url("/a"))
        assert (error.code, error.reason) == ("too_large", "the body is larger than 100,000 bytes as sent")
    assert sent < 20_000_000


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Content-Length: 100", b"hello"),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
        ("Content-Encoding: gzip", PACK["gzip"](b"hello")[:-8]),
    ],
)
async def test_a_page_that_ends_too_early_is_loaded_up_to_there_and_not_stored(headers: str, body: bytes) -> None:
    start = f"HTTP/1.1 200 X\nETag: 1\nCache-Control: max-age=60\n{headers}"
    async with opened_site({"/a": sends(start, body)}) as site, opened_loader() as loader:
        for _ in range(2):
            loaded = await loader.load(site.url("/a"))
            assert (loaded.body, loaded.is_cut) == (b"hello", True)
        assert len(site.requests) == 2


async def test_a_page_of_which_nothing_arrives_is_an_error() -> None:
    reasons = {
        "Content-Length: 100": "the body is shorter than the response declares",
        "Content-Encoding: gzip": "the compressed body ends too early",
    }
    async with opened_site({}) as site, opened_loader() as loader:
        for header, reason in reasons.items():
            site.routes["/a"] = sends(f"HTTP/1.1 200 X\n{header}", b"\x1f\x8b" if "gzip" in header else b"")
            error = await refused(loader, site.url("/a"))
            assert (error.code, error.reason) == ("bad_response", reason)


async def test_an_invalid_content_length_is_an_error() -> None:
    async with opened_site({}) as site, opened_loader() as loader:
        for lengths in ("-1", "five", "5\nContent-Length: 6", "5, 6", "9" * 30):
            site.routes["/a"] = sends(f"HTTP/1.1 200 X\nContent-Length: {lengths}", b"hello")
            assert (await refused(loader, site.url("/a"))).code in {"bad_response", "too_large"}


async def test_bytes_beyond_content_length_are_ignored() -> None:
    longer = sends("HTTP/1.1 200 X\nContent-Length: 5", b"hello, world")
    async with opened_site({"/a": longer, "/b": PAGE}) as site, opened_loader() as loader:
        assert (await loader.load(site.url("/a"))).body == b"hello"
        assert (await loader.load(site.url("/b"))).body == b"page"


async def test_a_content_length_beyond_max_bytes_is_refused_before_the_body() -> None:
    async def promises(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 X\r\nContent-Length: 2001\r\n\r\n")
        await received.until_closed()

    async with opened_site({"/a": promises}) as site, opened_loader(max_bytes=2_000) as loader:
        assert (await refused(loader, site.url("/a"))).code == "too_large"


async def drip(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
    """Sends a byte of an endless body each hundredth of a second."""
    out.write(b"HTTP/1.1 200 X\r\n\r\n")
    while not out.is_closing():
        out.write(b"x")
        await out.drain()
        await asyncio.sleep(0.01)


async def silent(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
    await received.until_closed()


@pytest.mark.parametrize("route", [drip, silent])
async def test_a_dripping_or_silent_site_times_out(route: Route) -> None:
    async with opened_site({"/a": route}) as site, opened_loader(timeout=0.1, ignore_robots=True) as loader:
        error = await refused(loader, site.url("/a"))
    assert (error.code, error.reason) == ("timeout", "127.0.0.1 took longer than 0.1 s")
    assert error.suggestion == TRY_LATER


@pytest.mark.parametrize("kilobytes", [70, 300])
async def test_large_headers_are_refused(kilobytes: int) -> None:
    lines = "\n".join(f"X-{n}: {'x' * 1_000}" for n in range(kilobytes))
    async with (
        opened_site({"/a": sends(f"HTTP/1.1 200 X\n{lines}\nContent-Length: 0")}) as site,
        opened_loader() as loader,
    ):
        error = await refused(loader, site.url("/a"))
    assert (error.code, error.reason) == ("too_large", "the headers are larger than 65,536 bytes")


async def test_a_folded_header_is_joined() -> None:
    async with (
        opened_site({"/a": sends("HTTP/1.1 200 X\nX-A: one\n  two\nContent-Length: 0")}) as site,
        opened_loader() as loader,
    ):
        assert (await loader.load(site.url("/a"))).headers["x-a"] == "one two"


async def test_an_http_1_0_body_without_length_ends_with_the_connection() -> None:
    async with opened_site({"/a": sends("HTTP/1.0 200 X", b"whole")}) as site, opened_loader() as loader:
        assert (await loader.load(site.url("/a"))).body == b"whole"


async def test_an_invalid_status_line_is_an_error() -> None:
    async with opened_site({}) as site, opened_loader() as loader:
        for head in ("no http at all", "HTTP/1.1 20 X", "HTTP/1.1 101 X\nUpgrade: x"):
            site.routes["/a"] = sends(head)
            assert (await refused(loader, site.url("/a"))).code == "bad_response"


async def test_a_connection_closed_without_a_response_is_retried_once() -> None:
    async def closes(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.close()

    async with opened_site({"/a": closes}) as site, opened_loader(ignore_robots=True) as loader:
        error = await refused(loader, site.url("/a"))
        assert (error.code, len(site.requests)) == ("connect", 2)


async def test_a_connection_that_was_closed_here_excuses_one_failure_only() -> None:
    async def closes(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        if len(site.requests) == 1:
            exchange._closed_count += 1  # as another request on the connection does
        if len(site.requests) < 9:
            out.close()
        else:
            await sends("HTTP/1.1 200 OK\nContent-Length: 0")(_, out)

    async with opened_site({"/a": closes}) as site, opened_loader(ignore_robots=True) as loader:
        exchange = loader._exchange
        error = await refused(loader, site.url("/a"))
        assert (error.code, len(site.requests)) == ("connect", 3)


# Unusual statuses


async def test_204_and_205_are_empty_pages_and_206_304_and_305_errors() -> None:
    empty = {f"/{status}": sends(f"HTTP/1.1 {status} X\nContent-Length: 0") for status in (204, 205, 206, 304, 305)}
    async with opened_site(empty) as site, opened_loader() as loader:
        for status in (204, 205):
            loaded = await loader.load(site.url(f"/{status}"))
            assert (loaded.status, loaded.body) == (status, b"")
        for status in (206, 304, 305):
            assert (await refused(loader, site.url(f"/{status}"))).code == "bad_response"


async def test_a_redirect_without_location_is_an_error() -> None:
    async with opened_site({"/a": answer("moved", 301)}) as site, opened_loader() as loader:
        error = await refused(loader, site.url("/a"))
    assert (error.code, error.reason) == ("bad_response", "127.0.0.1 redirects without a location")


async def test_an_http_error_has_its_status_and_text() -> None:
    async with opened_site({}) as site, opened_loader() as loader:
        for status in (400, 401, 404, 410, 451, 500, 599, 999):
            site.routes["/a"] = answer("<b>Sorry<script>x</script>", status, content_type="text/html")
            error = await refused(loader, site.url("/a"))
            assert (error.code, error.response) == ("status", (status, None, "Sorry"))


@pytest.mark.parametrize(("path", "has_step"), [("/a/b", True), ("/", False)])
async def test_a_410_suggests_the_pages_above(path: str, has_step: bool) -> None:
    async with opened_site({"/": answer(status=410)}) as site, opened_loader() as loader:
        error = await refused(loader, site.url(path))
    assert error.suggestion.startswith("Fetch a page above it") is has_step


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_pauses_requests_to_the_host(status: int) -> None:
    async with (
        opened_site({"/a": answer(status=status, retry_after="30"), "/b": PAGE}) as site,
        opened_loader() as loader,
    ):
        error = await refused(loader, site.url("/a"))
        assert error.response is not None
        assert (error.response.status, error.response.retry_after) == (status, 30)
        again = await refused(loader, site.url("/b"))
        assert again.response is not None
        assert (again.response.status, again.response.retry_after) == (status, 30)
        assert site.paths == ["/a"]


async def test_a_date_in_retry_after_becomes_seconds() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    async with opened_site({"/a": answer(status=503, retry_after=date)}) as site, opened_loader() as loader:
        error = await refused(loader, site.url("/a"))
    assert error.response is not None
    assert error.response.retry_after == pytest.approx(600, abs=60)


@pytest.mark.parametrize("text", ["soon", "-1", "Mon, 99 Foo 2020 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"])
async def test_an_invalid_or_past_retry_after_is_ignored(text: str) -> None:
    async with (
        opened_site({"/a": answer(status=503, retry_after=text), "/b": PAGE}) as site,
        opened_loader() as loader,
    ):
        await refused(loader, site.url("/a"))
        assert (await loader.load(site.url("/b"))).body == b"page"


@pytest.mark.slow
async def test_a_dripping_error_body_does_not_hide_the_status() -> None:
    async def late(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 404 X\r\nContent-Type: text/plain\r\n\r\nNot here")
        await received.until_closed()

    async with opened_site({"/a": late}) as site, opened_loader(timeout=2, ignore_robots=True) as loader:
        error = await refused(loader, site.url("/a"))
    assert (error.code, error.response) == ("status", (404, None, "Not here"))


# Cookies, and headers for a host


async def test_no_cookie_is_stored() -> None:
    sets = answer("x", set_cookie="a=secret; Path=/")
    async with opened_site({"/a": sets, "/b": redirect("/a")}) as site, opened_loader() as loader:
        for path in ("/a", "/b", "/a"):
            loaded = await loader.load(site.url(path))
            assert "set-cookie" not in loaded.headers
        assert all("cookie" not in one.headers for one in site.requests)


async def test_a_cookie_set_by_a_redirect_is_sent_along_its_redirects_only() -> None:
    async def page(request: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(answer("page") if "a=1" in request.headers.get("cookie", "") else redirect("/set"))

    def sets_cookie(location: str, cookie: str) -> bytes:
        return answer(status=302, location=location, set_cookie=f"{cookie}; Path=/", cache_control="max-age=60")

    async with opened_site({"/page": page, "/set": sets_cookie("/page", "a=1")}) as site, opened_loader() as loader:
        for _ in range(2):
            loaded = await loader.load(site.url("/page"))
            assert (loaded.body, loaded.redirects) == (b"page", (site.url("/page"), site.url("/set")))
        site.routes["/away"] = sets_cookie(site.url("/away", "localhost"), "b=1")
        error = await refused(loader, site.url("/away"))
    cookies = [(one.target, one.headers.get("cookie")) for one in site.requests]
    assert cookies[:6] == [("/page", None), ("/set", None), ("/page", "a=1")] * 2
    assert (error.code, cookies[6:]) == ("too_many_redirects", [("/away", None), ("/away", None), ("/away", "b=1")])


async def test_a_host_header_is_not_sent_to_another_host() -> None:
    names = ["one.example:*", "two.example:*"]
    async with opened_site({"/b": PAGE}) as site:
        secret = parse_host_header(f"one.example:{site.port}=Authorization:Bearer secret")
        site.routes["/a"] = redirect(site.url("/b", "two.example"))
        async with opened_loader(names, headers=(secret,)) as loader:
            loaded = await loader.load(site.url("/a", "one.example"))
    sent = [(one.headers["host"].partition(":")[0], one.headers.get("authorization")) for one in site.requests]
    assert sent == [("one.example", "Bearer secret"), ("two.example", None)]
    assert "secret" not in repr(loaded)


async def test_a_host_header_is_not_sent_to_another_port() -> None:
    async with opened_site({"/b": PAGE}) as two, opened_site({"/a": redirect(two.url("/b"))}) as one:
        secret = parse_host_header(f"127.0.0.1:{one.port}=X-Key:secret")
        async with opened_loader(headers=(secret,)) as loader:
            await loader.load(one.url("/a"))
    assert [site.requests[0].headers.get("x-key") for site in (one, two)] == ["secret", None]


async def test_a_host_header_is_not_sent_after_a_redirect_from_https_to_http(tmp_path: Path) -> None:
    issuer = authority()
    context = server_context(certificate(issuer, "127.0.0.1"), tmp_path)
    async with opened_site({"/b": PAGE}) as plain, opened_site({"/a": redirect(plain.url("/b"))}, context) as secure:
        secret = parse_host_header(f"127.0.0.1:{plain.port}=Authorization:secret")
        async with opened_loader(ca_file=issuer.write_public(tmp_path / "ca.pem"), headers=(secret,)) as loader:
            for url in (plain.url("/b"), f"https://127.0.0.1:{secure.port}/a"):
                await loader.load(url, refresh=True)
    assert [received.headers.get("authorization") for received in plain.requests] == ["secret", None]


# Cancellation


async def test_cancelling_a_load_closes_its_socket() -> None:
    begun, ended = anyio.Event(), anyio.Event()

    async def waits(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nbegun")
        begun.set()
        await received.until_closed()
        ended.set()

    async with opened_site({"/a": waits}) as site, opened_loader() as loader:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(loader.load, site.url("/a"))
                await begun.wait()
                group.cancel_scope.cancel()
            await ended.wait()


async def test_a_cancelled_load_frees_its_slot() -> None:
    begun = anyio.Event()

    async def waits(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        begun.set()
        await received.until_closed()

    async with (
        opened_site({"/a": waits, "/b": PAGE}) as site,
        opened_loader(max_concurrent=1) as loader,
        anyio.create_task_group() as group,
    ):
        group.start_soon(loader.load, site.url("/a"))
        await begun.wait()
        group.cancel_scope.cancel()
        assert (await loader.load(site.url("/b"))).body == b"page"


@pytest.mark.parametrize("host", ["xn--", "xn--a", "xn--i-7iq.example"])
async def test_an_ascii_host_outside_idna_is_requested_unchanged(host: str) -> None:
    async with opened_site({"*": PAGE}) as site, opened_loader((f"{host}:*", "127.0.0.1:*")) as loader:
        site.routes["/to"] = redirect(site.url("/", host))
        assert (await loader.load(site.url("/", host))).body == b"page"
        assert site.requests[0].headers["host"] == f"{host}:{site.port}"
        assert (await refused(loader, site.url("/to"))).code == "bad_url"
