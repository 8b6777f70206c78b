"""The private cache of responses (RFC 9111), which is bounded in size."""

from email.utils import formatdate
from typing import Any

import httpx

from servers.fetch.load.cache import Cache, StoredAnswer, make_stored_answer
from servers.fetch.load.exchange import Answer
from servers.fetch.network.urls import parse_url
from tests.servers.fetch.loaders import opened_loader, refused
from tests.servers.fetch.sites import answer, opened_site, redirect

NOW = 1_700_000_000.0
URL = "http://a.example/"


def stored_page(
    status: int = 200, body: bytes = b"x", at: float = NOW, took: float = 0, **headers: str
) -> StoredAnswer:
    """Makes a response received at the time `at`, `took` seconds after its request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = Answer(parse_url(URL), status, httpx.Headers(named), body, len(body))
    return make_stored_answer(response, {"accept": "text/html"}, (at - took, at))


def date(at: float) -> str:
    return formatdate(at, usegmt=True)


def test_freshness_lasts_as_long_as_the_headers_declare() -> None:
    rows: list[tuple[dict[str, str], int]] = [
        ({"cache_control": "max-age=60"}, 60),
        ({"cache_control": 'private="a, max-age=5", max-age="60"'}, 60),
        ({"cache_control": "MAX-AGE=60, must-revalidate"}, 60),
        ({"cache_control": "max-age=60, s-maxage=5"}, 60),
        ({"cache_control": "max-age=60", "age": "20"}, 40),
        ({"cache_control": "max-age=60", "date": date(NOW - 30)}, 30),
        ({"cache_control": "max-age=60", "date": date(NOW - 30), "age": "50"}, 10),
        ({"cache_control": "max-age=60", "date": date(NOW + 500)}, 60),
        ({"expires": date(NOW + 60), "date": date(NOW)}, 60),
        ({"expires": date(NOW + 60), "date": date(NOW), "cache_control": "max-age=10"}, 10),
        ({"expires": "0", "date": date(NOW)}, 0),
        ({"expires": date(NOW + 60)}, 0),
        ({"cache_control": "max-age=60, no-cache"}, 0),
        ({"cache_control": "max-age=-1"}, 0),
        ({"cache_control": "max-age=soon"}, 0),
        ({"cache_control": "max-age=5, max-age=60"}, 5),
        ({"last_modified": date(NOW - 1e8)}, 0),
        ({}, 0),
    ]
    for headers, seconds in rows:
        one = stored_page(**headers)
        assert not one.is_fresh(NOW + seconds), headers
        assert seconds == 0 or one.is_fresh(NOW + seconds - 1), headers


def test_the_time_of_the_request_counts_towards_the_age() -> None:
    assert not stored_page(cache_control="max-age=60", age="50", took=10).is_fresh(NOW)


def test_only_storable_and_reusable_responses_are_cached() -> None:
    rows: list[tuple[dict[str, Any], bool]] = [
        ({"cache_control": "max-age=60"}, True),
        ({"etag": '"1"'}, True),
        ({"last_modified": date(NOW)}, True),
        ({"cache_control": "max-age=60, no-cache", "etag": '"1"'}, True),
        ({}, False),
        ({"cache_control": "no-store, max-age=60", "etag": '"1"'}, False),
        ({"cache_control": "max-age=60", "vary": "*"}, False),
        ({"cache_control": "max-age=60", "vary": "accept, *"}, False),
        ({"cache_control": "max-age=60", "status": 301}, True),
        ({"cache_control": "max-age=60", "status": 204}, False),
        ({"cache_control": "max-age=60", "status": 404}, False),
    ]
    for facts, storable in rows:
        cache = Cache(10_000)
        cache.put(URL, stored_page(**facts))
        assert (cache.find(URL, {"accept": "text/html"}) is not None) == storable, facts


def test_vary_limits_a_cached_response_to_matching_requests() -> None:
    cache = Cache(10_000)
    cache.put(URL, stored_page(etag='"1"', vary="Accept, Cookie"))
    assert cache.find(URL, {"accept": "text/html"}) is not None
    assert cache.find(URL, {"accept": "text/plain"}) is None
    assert cache.find(URL, {"accept": "text/html", "cookie": "a"}) is None


def test_cached_markdown_matches_requests_with_the_same_accept() -> None:
    markdown = stored_page(**{"content-type": "Text/Markdown; charset=utf-8", "etag": '"1"'})
    assert markdown.matches({"accept": "text/html"})
    assert not markdown.matches({"accept": "text/markdown"})


def test_the_least_recently_used_response_is_evicted_first() -> None:
    cache = Cache(25_000)
    for n in range(3):
        if n == 2:
            assert cache.find("0", {}) is not None
        cache.put(str(n), stored_page(body=bytes(9_000), etag='"1"'))
    assert [cache.find(str(n), {}) is not None for n in range(3)] == [True, False, True]
    assert 18_000 < cache.size <= 25_000


def test_a_response_larger_than_the_cache_is_not_stored() -> None:
    cache = Cache(5_000)
    cache.put("a", stored_page(etag='"1"'))
    cache.put("b", stored_page(body=bytes(5_000), etag='"1"'))
    assert cache.find("a", {}) is not None
    assert cache.find("b", {}) is None
    cache.drop("a")
    assert cache.size == 0


def test_a_cache_of_size_zero_stores_nothing() -> None:
    cache = Cache(0)
    cache.put("a", stored_page(etag='"1"'))
    assert cache.size == 0


def test_a_304_renews_headers_except_those_of_the_body() -> None:
    old = stored_page(etag='"1"', cache_control="max-age=1", age="9", content_type="text/plain", x_a="1")
    renewed = {"etag": 'W/"1"', "cache-control": "max-age=60", "content-type": "text/html", "set-cookie": "a=b"}
    not_modified = Answer(parse_url(URL), 304, httpx.Headers(renewed), b"", 0)
    new = old.confirm(not_modified, (NOW + 100, NOW + 100))
    assert new is not None
    assert (new.body, new.status, new.confirmed_at) == (b"x", 200, NOW + 100)
    assert (new.headers["content-type"], new.headers["x-a"], "set-cookie" in new.headers) == (
        "text/plain",
        "1",
        False,
    )
    assert new.is_fresh(NOW + 159)


def test_a_304_with_another_etag_confirms_nothing() -> None:
    not_modified = Answer(parse_url(URL), 304, httpx.Headers({"etag": '"2"'}), b"", 0)
    assert stored_page(etag='"1"').confirm(not_modified, (NOW, NOW)) is None


# Through the loader


async def test_a_fresh_page_is_served_from_the_cache() -> None:
    async with opened_site({"/a": answer("x", cache_control="max-age=60")}) as site, opened_loader() as loader:
        first = await loader.load(site.url("/a#one"))
        again = await loader.load(site.url("/a#two"))
        assert (first.from_cache, again.from_cache, site.paths) == (False, True, ["/a"])
        assert again == first._replace(from_cache=True, fragment="two")


async def test_a_stale_page_is_revalidated() -> None:
    modified = date(NOW)
    async with (
        opened_site({"/a": answer("x", etag='"1"', last_modified=modified)}) as site,
        opened_loader() as loader,
    ):
        first = await loader.load(site.url("/a"))
        site.routes["/a"] = b'HTTP/1.1 304 X\r\nETag: "1"\r\nX-New: 1\r\nContent-Length: 0\r\n\r\n'
        again = await loader.load(site.url("/a"))
        sent = site.requests[1].headers
        assert (sent["if-none-match"], sent["if-modified-since"]) == ('"1"', modified)
        assert (again.status, again.body, again.from_cache, again.headers["x-new"]) == (200, b"x", True, "1")
        assert again.fetched_at >= first.fetched_at


async def test_a_validator_beyond_ascii_is_not_sent_back() -> None:
    async with opened_site({"/a": answer("x", etag='"\xff"', cache_control="max-age=0")}) as site:
        async with opened_loader() as loader:
            for _ in range(2):
                assert (await loader.load(site.url("/a"))).body == b"x"
        assert "if-none-match" not in site.requests[1].headers


async def test_a_changed_page_replaces_the_cached_one() -> None:
    async with opened_site({"/a": answer("old", etag='"1"')}) as site, opened_loader() as loader:
        await loader.load(site.url("/a"))
        site.routes["/a"] = answer("new", cache_control="max-age=60")
        assert (await loader.load(site.url("/a"))).body == b"new"
        assert (await loader.load(site.url("/a"))).from_cache


async def test_a_304_with_another_etag_repeats_the_request_unconditionally() -> None:
    async with opened_site({"/a": answer("old", etag='"1"')}) as site, opened_loader() as loader:
        await loader.load(site.url("/a"))

        async def odd(request: Any, out: Any) -> None:
            reply = b'HTTP/1.1 304 X\r\nETag: "2"\r\n\r\n' if "if-none-match" in request.headers else answer("new")
            out.write(reply)

        site.routes["/a"] = odd
        assert (await loader.load(site.url("/a"))).body == b"new"
        assert len(site.requests) == 3


async def test_refresh_bypasses_every_cache() -> None:
    async with (
        opened_site({"/a": answer("old", cache_control="max-age=60", etag='"1"')}) as site,
        opened_loader() as loader,
    ):
        await loader.load(site.url("/a"))
        site.routes["/a"] = answer("new", cache_control="max-age=60")
        assert (await loader.load(site.url("/a"), refresh=True)).body == b"new"
        assert site.requests[1].headers["cache-control"] == "no-cache"
        assert "if-none-match" not in site.requests[1].headers
        assert (await loader.load(site.url("/a"))).body == b"new"


async def test_a_redirect_is_cached() -> None:
    routes = {
        "/a": redirect("/b", 301).replace(b"location", b"Cache-Control: max-age=60\r\nlocation"),
        "/b": answer("x"),
    }
    async with opened_site(routes) as site, opened_loader() as loader:
        for _ in range(2):
            loaded = await loader.load(site.url("/a"))
            assert loaded.redirects == (site.url("/a"),)
        assert site.paths == ["/a", "/b", "/b"]


async def test_a_410_removes_the_page_from_the_cache() -> None:
    async with opened_site({"/a": answer("x", etag='"1"')}) as site, opened_loader() as loader:
        await loader.load(site.url("/a"))
        site.routes["/a"] = answer(status=410)
        await refused(loader, site.url("/a"))
        await refused(loader, site.url("/a"))
        assert "if-none-match" not in site.requests[2].headers


async def test_a_fresh_page_is_served_during_a_pause_of_its_host() -> None:
    routes = {"/a": answer("x", cache_control="max-age=60"), "/b": answer(status=429, retry_after="60")}
    async with opened_site(routes) as site, opened_loader() as loader:
        await loader.load(site.url("/a"))
        await refused(loader, site.url("/b"))
        assert (await loader.load(site.url("/a"))).from_cache
