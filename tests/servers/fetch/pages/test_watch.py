"""Watched pages: their requests, intervals and updates."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.pages import watch
from servers.fetch.pages.fetcher import Fetcher, open_fetcher
from servers.fetch.pages.watch import Watcher
from servers.fetch.settings import Settings
from tests.clock import forward
from tests.servers.fetch.sites import ReceivedRequest, Route, Site, answer, opened_site, redirect

FLOOR = 60.0


def page(words: str, **headers: str) -> bytes:
    return answer(f"<main><p>{words}</main>", content_type="text/html", **headers)


class Watching:
    """A site, and the watcher of its pages."""

    def __init__(self, site: Site, watcher: Watcher, updates: list[str]) -> None:
        self.site, self.watcher, self.updates = site, watcher, updates

    async def watch(self, path: str = "/", owner: str = "me") -> str:
        return await self.watcher.watch(self.site.url(path), owner)

    def pause(self, path: str = "/") -> float:
        """Returns the seconds until the next check."""
        return self.watcher._pages[self.site.url(path)].pause

    async def next_check(self, path: str = "/") -> int:
        """Makes the next check run now, and returns the number of its requests."""
        page = self.watcher._pages[self.site.url(path)]
        before, checked_at = len(self.site.requests), page.checked_at
        # The next wait has to begin first, so that the clock ends it.
        for _ in range(5):
            await asyncio.sleep(0)
        forward(page.pause + 0.1)
        while page.checked_at == checked_at:
            await asyncio.sleep(0.001)
        return len(self.site.requests) - before


@asynccontextmanager
async def watching(routes: dict[str, Route], fetcher: Fetcher | None = None) -> AsyncIterator[Watching]:
    """Yields a watcher of a site with these routes."""
    updates: list[str] = []
    settings = Settings(allow_private=["127.0.0.1:*"], timeout=2)
    async with (
        opened_site(routes) as site,
        open_fetcher(settings, tuple, None) as opened,
        anyio.create_task_group() as tasks,
    ):

        async def get() -> Fetcher:
            return opened

        yield Watching(site, Watcher(get, updates.append, tasks, FLOOR), updates)
        tasks.cancel_scope.cancel()


async def test_a_changed_text_sends_one_update() -> None:
    async with watching({"/": page("old")}) as watched:
        key = await watched.watch()
        assert key == watched.site.url()
        assert await watched.next_check() == 1
        assert watched.updates == []
        watched.site.routes["/"] = page("new")
        await watched.next_check()
        await watched.next_check()
        assert watched.updates == [key]


async def test_checks_are_conditional_and_a_304_is_not_a_change() -> None:
    async with watching({"/": page("old", etag='"1"')}) as watched:
        await watched.watch()
        watched.site.routes["/"] = answer(status=304, etag='"1"')
        assert await watched.next_check() == 1
        assert watched.site.requests[-1].headers["if-none-match"] == '"1"'
        assert watched.updates == []


async def test_new_validators_of_the_same_text_are_not_a_change() -> None:
    async with watching({"/": page("same", etag='"1"')}) as watched:
        await watched.watch()
        watched.site.routes["/"] = page("same", etag='"2"')
        await watched.next_check()
        assert watched.updates == []


async def test_a_site_that_always_sends_304_is_checked_unconditionally_at_times() -> None:
    async def lying(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(answer(status=304) if "if-none-match" in received.headers else page("new", etag='"1"'))

    async with watching({"/": page("old", etag='"1"')}) as watched:
        key = await watched.watch()
        watched.site.routes["/"] = lying
        for _ in range(watch.FULL_CHECK_INTERVAL - 2):
            await watched.next_check()
        assert watched.updates == []
        await watched.next_check()
        assert watched.updates == [key]


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, watch.DEFAULT_SECONDS),
        ({"cache_control": "no-cache, max-age=900"}, watch.DEFAULT_SECONDS),
        ({"cache_control": "max-age=5"}, FLOOR),
        ({"cache_control": "max-age=900"}, 900),
        ({"cache_control": "max-age=31536000"}, watch.MAX_SECONDS),
    ],
)
async def test_the_interval_follows_the_freshness_of_the_page(headers: dict[str, str], pause: float) -> None:
    async with watching({"/": page("x", **headers)}) as watched:
        await watched.watch()
        assert pause - 2 <= watched.pause() <= pause


async def test_a_fetch_since_the_last_check_saves_a_request() -> None:
    async with watching({"/": page("old", etag='"1"')}) as watched:
        key = await watched.watch()
        watched.site.routes["/"] = page("new", etag='"2"')
        fetcher = await watched.watcher._open_pages()
        await fetcher.check(watched.site.url(), confirmed_after=None, refresh=True)
        assert await watched.next_check() == 0
        assert watched.updates == [key]


async def test_the_pages_of_a_site_share_its_crawl_delay() -> None:
    robots = answer("User-agent: *\nCrawl-delay: 200\n", content_type="text/plain")
    async with watching({"/robots.txt": robots, "*": page("x")}) as watched:
        for path in ("/1", "/2", "/3"):
            await watched.watch(path)
        await watched.next_check("/1")
        assert watched.pause("/1") == 600


async def test_a_page_disallowed_by_robots_txt_is_not_watched() -> None:
    robots = answer("User-agent: *\nDisallow: /", content_type="text/plain")
    async with watching({"/robots.txt": robots, "*": page("x")}) as watched:
        with pytest.raises(FetchError) as caught:
            await watched.watch()
        assert (caught.value.code, watched.watcher.watched, watched.site.requests) == ("robots", 0, [])


@pytest.mark.parametrize("status", [403, 500, 503])
async def test_a_failing_page_is_checked_less_often_and_updates_after_recovery(status: int) -> None:
    async with watching({"/": page("old")}) as watched:
        key = await watched.watch()
        watched.site.routes["/"] = answer(status=status)
        pauses = []
        for _ in range(3):
            assert await watched.next_check() == 1
            pauses.append(watched.pause())
        assert pauses == [300, 600, 1_200]
        assert watched.updates == []
        watched.site.routes["/"] = page("old")
        await watched.next_check()
        assert (watched.updates, watched.pause()) == ([], 300)
        watched.site.routes["/"] = page("new")
        await watched.next_check()
        assert watched.updates == [key]


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_sends_an_update_when_gone_and_when_back(status: int) -> None:
    async with watching({"/": page("old")}) as watched:
        key = await watched.watch()
        watched.site.routes["/"] = answer(status=status)
        for _ in range(2):
            await watched.next_check()
            assert watched.updates == [key]
        watched.site.routes["/"] = page("old")
        await watched.next_check()
        assert watched.updates == [key, key]


async def test_a_page_missing_from_the_start_sends_no_update() -> None:
    async with watching({"/": answer(status=404)}) as watched:
        await watched.watch()
        await watched.next_check()
        assert watched.updates == []


async def test_retry_after_delays_the_next_check() -> None:
    async with watching({"/": page("old")}) as watched:
        await watched.watch()
        watched.site.routes["/"] = answer(status=429, retry_after="3000")
        await watched.next_check()
        assert watched.pause() == 3_000


async def test_a_page_that_failed_at_first_sends_an_update_when_loaded() -> None:
    async with watching({"/": answer(status=500)}) as watched:
        key = await watched.watch()
        watched.site.routes["/"] = page("new")
        await watched.next_check()
        assert watched.updates == [key]


@pytest.mark.parametrize("status", [301, 308])
async def test_each_check_follows_redirects_and_checks_their_addresses(status: int) -> None:
    async with watching({"/": redirect("/there", status), "/there": page("old")}) as watched:
        key = await watched.watch()
        watched.site.routes["/there"] = page("new")
        assert await watched.next_check() == 2
        assert watched.updates == [key]
        watched.site.routes["/"] = redirect("http://169.254.169.254/latest/", status)
        assert await watched.next_check() == 1
        assert watched.updates == [key]


async def test_a_dripping_site_times_out_and_is_checked_less_often() -> None:
    async def dripping(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n")
        for _ in range(100_000):
            out.write(b"x")
            await out.drain()
            await asyncio.sleep(0.02)

    async with watching({"/": page("old")}) as watched:
        await watched.watch()
        watched.site.routes["/"] = dripping
        assert await watched.next_check() == 1
        assert (watched.pause(), watched.updates) == (300, [])


async def test_subscribers_share_a_watch_that_ends_with_the_last() -> None:
    async with watching({"/": page("old")}) as watched:
        async with anyio.create_task_group() as tasks:
            for owner in "abc":
                tasks.start_soon(watched.watch, "/", owner)
            tasks.start_soon(watched.watch, "/#part", "d")
        assert (len(watched.site.requests), watched.watcher.watched) == (1, 1)
        watched.watcher.unwatch(watched.site.url())
        forward(10 * watch.DEFAULT_SECONDS)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (len(watched.site.requests), watched.watcher.watched) == (1, 0)


async def test_every_subscriber_gets_the_error_of_the_first_check() -> None:
    robots = answer("User-agent: *\nDisallow: /", content_type="text/plain")
    async with watching({"/robots.txt": robots}) as watched:
        codes = []

        async def refused() -> None:
            with pytest.raises(FetchError) as caught:
                await watched.watch()
            codes.append(caught.value.code)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(refused)
        assert codes == ["robots"] * 3


async def test_an_update_from_another_replica_triggers_a_check_without_a_second_update() -> None:
    async with watching({"/": page("old")}) as watched:
        key = await watched.watch()
        watched.site.routes["/"] = page("new")
        watched.watcher.catch_up("http://unknown.example/")
        checked_at = watched.watcher._pages[key].checked_at
        watched.watcher.catch_up(key)
        with anyio.fail_after(10):
            while watched.watcher._pages[key].checked_at == checked_at:
                await asyncio.sleep(0.001)
        assert (len(watched.site.requests), watched.updates) == (2, [])
        watched.site.routes["/"] = page("newer")
        await watched.next_check()
        assert (watched.watcher._pages[key].checks, watched.updates) == (3, [key])


async def test_an_owner_may_watch_half_of_the_free_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_PAGES", 4)
    async with watching({"*": page("x")}) as watched:
        for path in ("/1", "/2"):
            await watched.watch(path, "greedy")
        with pytest.raises(FetchError, match="only 2 more pages") as caught:
            await watched.watch("/3", "greedy")
        assert caught.value.code == "busy"
        await watched.watch("/1", "greedy")
        await watched.watch("/3", "modest")
        watched.watcher.unwatch(watched.site.url("/1"))
        await watched.watch("/4", "greedy")
