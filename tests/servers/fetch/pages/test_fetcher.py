"""The choice between a page and its Markdown version."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import certifi
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load.loader import LoadRules
from servers.fetch.load.shared_cache import SharedCache
from servers.fetch.network.client import ClientOptions
from servers.fetch.pages import fetcher
from servers.fetch.pages.fetcher import Fetcher, open_fetcher
from servers.fetch.pages.snapshots import PageRequest
from servers.fetch.pages.texts import header_of
from servers.fetch.read.page import RequestedFormat
from servers.fetch.settings import Settings
from shared.stores.memory_blobs import MemoryBlobs
from tests.servers.fetch.sites import ReceivedRequest, Route, Site, answer, opened_site, redirect
from tests.servers.peers import record

WORDS = "A bread of rye wants two days, a warm place and patience. " * 3
HTML = (
    f'<head><link rel="alternate" type="text/markdown" href="/page.md"></head><main><h1>Bread</h1><p>{WORDS}</main>'
)
MARKDOWN = f"# Bread\n\n{WORDS}\n\nAs Markdown."


@asynccontextmanager
async def fetching(page: Route, markdown: Route | None = None) -> AsyncIterator[tuple[Site, Fetcher]]:
    """Yields a site with a page and its Markdown, and a fetcher that may reach it."""
    routes = {"/": page} | ({} if markdown is None else {"/page.md": markdown})
    settings = Settings(allow_private=["127.0.0.1:*"])
    async with opened_site(routes) as site, open_fetcher(settings, tuple, None) as fetcher:
        yield site, fetcher


async def test_every_setting_reaches_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    given = record(monkeypatch, fetcher, "SharedCache", "open_client", "open_reader", "Loader")
    proxy, authorities = "http://127.0.0.1:1", Path(certifi.where())
    limits = {"timeout": 1, "max_bytes": 2_000, "max_redirects": 3, "max_concurrent": 4, "max_per_host": 5}
    reading = {"cache": 6, "readers": 7, "reading_time": 8, "reading_memory": 256}
    network = {"user_agent": "me", "ignore_robots": True, "header": ["a.example=X: y"]}
    settings = Settings(proxy_url=proxy, ca_file=authorities, **limits, **reading, **network)
    async with open_fetcher(settings, tuple, MemoryBlobs()):
        pass
    mebibytes = 6 << 20
    assert given["SharedCache"][1] == mebibytes
    assert given["open_client"][0] == ClientOptions(1, 4, authorities, proxy)
    assert given["open_reader"] == (7, 8, 256)
    assert given["Loader"][2] == LoadRules("me", 1, 2_000, 3, 4, 5, mebibytes, True, settings.headers)
    assert isinstance(given["Loader"][3], SharedCache)


def html(text: str = HTML, **headers: str) -> bytes:
    return answer(text, content_type="text/html", **headers)


def markdown(text: str = MARKDOWN, **headers: str) -> bytes:
    return answer(text, content_type="text/markdown", **headers)


async def test_markdown_named_by_a_page_replaces_it_and_is_noted() -> None:
    async with fetching(html(), markdown()) as (site, fetcher):
        snapshot = await fetcher.fetch(PageRequest(site.url()))
        assert snapshot.page.text == MARKDOWN
        first, _, taken = header_of(snapshot).split("\n")
        assert first.startswith(f'{site.url()} (200; "text/markdown"')
        assert taken == f'taken from the Markdown that the page names: "{site.url("/page.md")}"'


@pytest.mark.parametrize(
    "alternate",
    [
        None,
        answer(status=500),
        markdown(""),
        markdown("# Not found\n\nNo such page."),
        html(f"<p>{WORDS * 3}"),
        redirect("http://localhost/page.md"),
        answer(b"\0" * 1_000, content_type="image/png"),
    ],
)
async def test_the_html_is_used_if_its_markdown_is_unusable(alternate: bytes | None) -> None:
    async with fetching(html(), alternate) as (site, fetcher):
        snapshot = await fetcher.fetch(PageRequest(site.url()))
        assert (snapshot.page.kind, snapshot.named_by) == ("html", ())
        assert site.paths[:2] == ["/", "/page.md"]


def cut(response: bytes, characters: int) -> Route:
    """Makes a route that ends that many characters too early."""

    async def route(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(response[:-characters])

    return route


async def test_a_response_that_ends_too_early_is_noted_and_is_no_new_version_of_the_page() -> None:
    async with fetching(cut(html(f"<p>{WORDS}"), 20)) as (site, fetcher):
        page = (await fetcher.fetch(PageRequest(site.url()))).page
        assert page.text in WORDS
        assert "ended too early" in page.notes[0]
        with pytest.raises(FetchError, match="ended too early"):
            await fetcher.check(site.url(), confirmed_after=None, refresh=False)
        site.routes |= {"/": html(), "/page.md": cut(markdown(MARKDOWN), 5)}
        assert (await fetcher.fetch(PageRequest(site.url()))).page.kind == "html"
        site.routes["/data.json"] = cut(answer('{"a": 1}', content_type="application/json"), 1)
        with pytest.raises(FetchError, match="ended too early"):
            await fetcher.fetch(PageRequest(site.url("/data.json"), "json"))


@pytest.mark.parametrize("anew", [{"refresh": True}, {"confirmed_after": time.time() + 3_600}])
async def test_a_refresh_requests_the_page_and_its_markdown(anew: dict[str, Any]) -> None:
    fresh = {"cache_control": "max-age=3600"}
    async with fetching(html(**fresh), markdown(**fresh)) as (site, fetcher):
        request = PageRequest(site.url())
        for options in ({}, {}, anew):
            await fetcher.fetch(request, **options)
        assert [path for path in site.paths if path != "/robots.txt"] == ["/", "/page.md"] * 2


async def test_robots_txt_applies_to_the_markdown() -> None:
    async with fetching(html(), markdown()) as (site, fetcher):
        site.routes["/robots.txt"] = answer("User-agent: *\nDisallow: /page.md", content_type="text/plain")
        assert (await fetcher.fetch(PageRequest(site.url()))).page.kind == "html"
        assert site.paths == ["/"]


@pytest.mark.parametrize("format", ["raw", "html", "links", "metadata", "text"])
async def test_other_formats_use_the_html(format: RequestedFormat) -> None:
    async with fetching(html(), markdown()) as (site, fetcher):
        assert (await fetcher.fetch(PageRequest(site.url(), format))).loaded.media_type == "text/html"
        assert site.paths == ["/"]
        assert site.requests[0].headers["accept"].startswith("text/html,")


async def test_a_section_uses_the_html() -> None:
    async with fetching(html(), markdown()) as (site, fetcher):
        assert (await fetcher.fetch(PageRequest(site.url(), section="main h1"))).page.text == "# Bread"
        assert site.requests[0].headers["accept"].startswith("text/html,")


async def test_the_request_accepts_markdown_before_html() -> None:
    async with fetching(markdown()) as (site, fetcher):
        assert (await fetcher.fetch(PageRequest(site.url()))).page.kind == "markdown"
        assert site.requests[0].headers["accept"].startswith("text/markdown,text/html;q=0.9,")


async def test_llms_txt_is_not_followed() -> None:
    async with fetching(html('<a href="/llms.txt">For models</a>')) as (site, fetcher):
        await fetcher.fetch(PageRequest(site.url()))
        assert site.paths == ["/"]


async def test_cached_markdown_is_not_used_for_an_html_format() -> None:
    async with fetching(markdown(cache_control="max-age=60")) as (site, fetcher):
        assert (await fetcher.fetch(PageRequest(site.url()))).page.kind == "markdown"
        site.routes["/"] = html(cache_control="max-age=60")
        assert (await fetcher.fetch(PageRequest(site.url(), "html"))).page.kind == "html"
        # An HTML page without Vary is the same for both.
        assert (await fetcher.fetch(PageRequest(site.url(), "links"))).loaded.from_cache


async def test_checking_a_cached_page_returns_its_remaining_freshness(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fetching(html("<p>Bread", cache_control="max-age=3600")) as (site, fetcher):
        fetched_at = (await fetcher.fetch(PageRequest(site.url()))).loaded.fetched_at
        for later, left in ((3_000, 600), (3_700, 1)):
            monkeypatch.setattr(time, "time", lambda later=later: fetched_at + later)
            state = await fetcher.check(site.url(), confirmed_after=None, refresh=False)
            assert state.fresh_seconds == pytest.approx(left)
