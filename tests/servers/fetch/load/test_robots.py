"""The rules of robots.txt (RFC 9309)."""

import asyncio
from contextlib import suppress

import anyio
import httpx
import pytest
from protego import Protego

from servers.fetch.errors import FetchError
from servers.fetch.load import robots
from servers.fetch.load.exchange import Answer
from servers.fetch.load.robots import MAX_BYTES, MAX_CACHED_CHARACTERS, MAX_REDIRECTS, Robots, keep_relevant
from tests.servers.fetch.loaders import opened_loader, refused
from tests.servers.fetch.packing import bomb
from tests.servers.fetch.sites import ReceivedRequest, Route, answer, opened_site, redirect

PAGE = answer("page", content_type="text/plain")
NOTHING = "User-agent: *\nDisallow: /"


def rules(text: str | bytes) -> Route:
    return answer(text, content_type="text/plain")


def site(robots: Route, **more: Route) -> dict[str, Route]:
    return {"/robots.txt": robots, "*": PAGE, **more}


async def is_allowed(robots: Route, path: str = "/a") -> bool:
    """Returns True if a page is requested from a site whose robots.txt is `route`."""
    async with opened_site(site(robots)) as one, opened_loader() as loader:
        with suppress(FetchError):
            await loader.load(one.url(path))
        return bool(one.requests)


async def test_a_missing_robots_txt_allows_every_page() -> None:
    assert all([await is_allowed(answer(NOTHING, status)) for status in (400, 401, 403, 404, 410, 429)])


async def test_a_robots_txt_that_fails_disallows_every_page() -> None:
    for status in (500, 502, 503, 599, 300, 304, 305):
        async with opened_site(site(answer(status=status))) as one, opened_loader() as loader:
            error = await refused(loader, one.url("/a"))
            assert (error.code, one.requests) == ("robots", [])
            assert f"returned HTTP {status}" in error.reason


async def test_a_failed_robots_txt_is_loaded_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, statuses = [0.0], [500, 404]
    monkeypatch.setattr(robots, "monotonic", lambda: now[0])

    async def fetch(url: httpx.URL) -> Answer:
        return Answer(url, statuses.pop(0), httpx.Headers(), b"", 0)

    heeded, page = Robots(fetch, "tester", 10), httpx.URL("https://site.example/a")
    for now[0] in (0.0, 59.0):
        with pytest.raises(FetchError):
            await heeded.check(page)
    now[0] = 61.0
    await heeded.check(page)
    assert statuses == []


async def test_reloaded_rules_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, hosts = [0.0], list[str]()
    monkeypatch.setattr(robots, "monotonic", lambda: now[0])
    monkeypatch.setattr(robots, "MAX_CACHED_CHARACTERS", 2 * len(NOTHING) + 10)

    async def fetch(url: httpx.URL) -> Answer:
        hosts.append(url.host)
        return Answer(url, 200, httpx.Headers(), NOTHING.encode(), 0)

    heeded = Robots(fetch, "tester", 10)
    for now[0], host in (
        (0.0, "a.example"),
        (robots.CACHE_SECONDS + 1, "a.example"),
        (robots.CACHE_SECONDS + 1, "b.example"),
    ):
        with pytest.raises(FetchError):
            await heeded.check(httpx.URL(f"https://{host}/"))
    with pytest.raises(FetchError):
        await heeded.check(httpx.URL("https://a.example/"))
    assert hosts == ["a.example", "a.example", "b.example"]


async def test_a_robots_txt_redirected_to_an_unknown_host_disallows_every_page() -> None:
    async def fetch(url: httpx.URL) -> Answer:
        if url.host == "gone.example":
            raise FetchError("dns", "there is no such host")
        return Answer(url, 302, httpx.Headers({"location": "https://gone.example/robots.txt"}), b"", 0)

    with pytest.raises(FetchError) as caught:
        await Robots(fetch, "tester", 10).check(httpx.URL("https://site.example/a"))
    assert caught.value.code == "robots"


async def test_a_disallowed_page_is_not_fetched() -> None:
    text = "User-agent: *\nDisallow: /private\nAllow: /private/but\n"
    async with opened_site(site(rules(text))) as one, opened_loader() as loader:
        error = await refused(loader, one.url("/private/x"))
        assert error.code == "robots"
        assert error.reason == "the robots.txt of 127.0.0.1 disallows this URL for tester"
        for path in ("/private/but/this", "/public"):
            await loader.load(one.url(path))
        assert one.paths == ["/private/but/this", "/public"]


async def test_rules_support_wildcards_and_end_anchors() -> None:
    rows = [
        ("/*.php", "/a/b.php?x", False),
        ("/*.php$", "/a/b.php?x", True),
        ("/*.php$", "/a/b.php", False),
        ("/a*c", "/a/b/c/d", False),
        ("/ä", "/%C3%A4", False),
        ("/a%2fb", "/a%2Fb", False),
        ("/x?q=", "/x?q=1", False),
        ("", "/a", True),
    ]
    for rule, path, allowed in rows:
        assert await is_allowed(rules(f"User-agent: *\nDisallow: {rule}"), path) == allowed, rule


async def test_the_group_of_the_user_agent_applies() -> None:
    rows: list[tuple[str | bytes, bool]] = [
        ("User-agent: tester\nDisallow: /\n\nUser-agent: *\nAllow: /", False),
        ("User-agent: TESTER\nAllow: /\n\nUser-agent: *\nDisallow: /", True),
        ("User-agent: tester/2.0 (old)\nDisallow: /", False),
        ("User-agent: test\nDisallow: /", True),
        ("User-agent: testers\nDisallow: /", True),
        ("User-agent: other\nUser-agent: tester\nDisallow: /", False),
        ("User-agent: other\nDisallow: /", True),
        ("User-agent: tester\nAllow: /b\n\nUser-agent: tester\nDisallow: /a", False),
        ("Disallow: /", True),
        ("\ufeffuser-AGENT : * # all\n disallow:/ # nothing", False),
        ("User-agent: *\r\nDisallow: /\r\n", False),
        ("User-agent: *\nCrawl-delay: 3600\nAllow: /", True),
        (b"# caf\xe9\nUser-agent: *\nDisallow: /", False),
    ]
    for groups, allowed in rows:
        assert await is_allowed(rules(groups)) == allowed, groups


async def test_an_html_page_as_robots_txt_has_no_rules() -> None:
    for body in ("<!doctype html>\nUser-agent: *\nDisallow: /", " \n<html>\nUser-agent:*\nDisallow:/"):
        assert await is_allowed(answer(body, content_type="text/html"))


async def test_rules_beyond_500_kibibytes_are_ignored() -> None:
    head = "User-agent: *\nDisallow: /read\n"
    text = (
        head
        + "#" * (MAX_BYTES - len(head) - 20)
        + "\nDisallow: /cut-here-and-beyond\nDisallow: /late"
        + "\n#" * 2_500_000
    )
    async with opened_site(site(rules(text))) as one, opened_loader() as loader:
        await loader.load(one.url("/late"))
        await loader.load(one.url("/cut-here"))
        assert (await refused(loader, one.url("/read"))).code == "robots"


def test_a_cut_robots_txt_keeps_whole_lines() -> None:
    lines = b"Disallow: /a\n" * (MAX_BYTES // 13)
    assert lines < lines[:1] + b"x" * MAX_BYTES  # so that the last rule is cut
    for more in (b"Disallow: /cut\n", b"Disallow: /cut\n" * 1_000):
        assert keep_relevant(lines + more, "tester").splitlines() == lines.decode().splitlines()


async def test_a_robots_txt_is_followed_through_five_redirects() -> None:
    hops: dict[str, Route] = {f"/{n}": redirect(f"/{n + 1}") for n in range(1, MAX_REDIRECTS)}
    async with opened_site(site(redirect("/1"), **hops, **{f"/{MAX_REDIRECTS}": rules(NOTHING)})) as one:
        async with opened_loader() as loader:
            assert (await refused(loader, one.url("/a"))).code == "robots"
        one.routes[f"/{MAX_REDIRECTS}"] = redirect(f"/{MAX_REDIRECTS + 1}")
        async with opened_loader() as loader:
            await loader.load(one.url("/a"))


async def test_a_damaged_or_blocked_robots_txt_disallows_every_page() -> None:
    for where in ("http://10.0.0.1/robots.txt", "file:///etc/passwd", "http://u:p@127.0.0.1/"):
        assert not await is_allowed(redirect(where))
    assert not await is_allowed(answer("plain", content_encoding="gzip"))


async def test_a_redirect_is_checked_against_the_robots_txt_of_its_own_site() -> None:
    async with opened_site(site(rules(NOTHING))) as two, opened_site({"/a": redirect(two.url("/b"))}) as one:
        async with opened_loader() as loader:
            assert (await refused(loader, one.url("/a"))).code == "robots"
        assert two.requests == []


async def silent(request: ReceivedRequest, _: asyncio.StreamWriter) -> None:
    await request.until_closed()


async def test_a_slow_robots_txt_counts_as_unreachable() -> None:
    async with opened_site(site(silent)) as one, opened_loader(timeout=1) as loader:
        error = await refused(loader, one.url("/a"))
    assert error.code == "robots"
    assert "could not be fetched within 0.5 s" in error.reason


async def test_an_unreachable_site_is_a_connect_error_not_a_robots_error() -> None:
    async with opened_site({}) as gone:
        pass
    async with opened_loader() as loader:
        assert (await refused(loader, gone.url("/a"))).code == "connect"


async def test_a_compression_bomb_as_robots_txt_is_cut() -> None:
    assert await is_allowed(answer(bomb("gzip", 4), content_encoding="gzip"))


async def test_robots_txt_is_loaded_once_for_many_pages() -> None:
    async with opened_site(site(rules("User-agent: *\nAllow: /"))) as one, opened_loader() as loader:
        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(loader.load, one.url(f"/{n}"))
        await loader.load(one.url("/again"))
        assert (len(one.robots_requests), len(one.requests)) == (1, 21)


async def test_ignore_robots_requests_no_robots_txt() -> None:
    async with opened_site(site(rules(NOTHING))) as one, opened_loader(ignore_robots=True) as loader:
        await loader.load(one.url("/a"))
        assert one.robots_requests == []


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "line",
    [
        "User-agent: x{n}\n",
        "Disallow: /{n}\n",
        "User-agent: *\nAllow: /*{n}*{n}*$\n",
        "user agent {n}\nDisallow: *a*b\n",
    ],
)
def test_hostile_rules_are_parsed_quickly(line: str) -> None:
    text = "User-agent: *\n" + "".join(line.format(n=n) for n in range(MAX_BYTES // len(line)))
    parsed = Protego.parse(keep_relevant((text + text.replace("*", "tester"))[:MAX_BYTES].encode(), "tester"))
    assert parsed.can_fetch("http://a.example/" + "a" * 8_000, "tester") in {True, False}


async def test_a_long_robots_txt_is_obeyed() -> None:
    text = NOTHING + "".join(f"\nAllow: /{n}$" for n in range(2_000))
    async with opened_site(site(rules(text))) as one, opened_loader() as loader:
        await loader.load(one.url("/1999"))
        assert (await refused(loader, one.url("/2000"))).code == "robots"


async def test_cached_rules_are_bounded_by_their_length() -> None:
    hosts: list[str] = []
    text = "User-agent: *\n" + f"Disallow: /{'x' * 10_000}\n" * (MAX_CACHED_CHARACTERS // 25_000)

    async def fetch(url: httpx.URL) -> Answer:
        hosts.append(url.host)
        return Answer(url, 200, httpx.Headers(), text.encode(), 0)

    kept = Robots(fetch, "tester", 20)
    for host in ("a", "b", "b", "c", "b", "a"):
        await kept.check(httpx.URL(f"http://{host}/"))
    assert hosts == ["a", "b", "c", "a"]  # the cache has space for two
