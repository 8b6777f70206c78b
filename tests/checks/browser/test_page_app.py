"""The app of the fetch server: a page as an article."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from servers import fetch
from servers.fetch.server import app
from tests.checks.browser.framed import Framed, client_of, show_app
from tests.checks.browser.site import Site
from tests.checks.browser.watched import HOSTILE
from tests.servers.fetch.sites import answer, opened_site

APP = Path(fetch.__file__).parent / "apps" / "page.html"
WORDS = "These are words of an article that has something to say to its readers. " * 8
ARTICLE = f"""<html><head><title>About rivers</title></head><body><article><h1>Rivers</h1><p>{WORDS}</p>
<h2>Sources</h2><p>{WORDS} <a href="https://example.org/springs">Springs</a></p><h2>Mouths</h2><p>{WORDS}</p>
</article></body></html>"""


@asynccontextmanager
async def shown(
    where: tuple[Page, Site], body: str, kind: str = "text/html", **arguments: Any
) -> AsyncIterator[Framed]:
    """Shows the app with a page of a site."""
    routes = {"/": answer(body, content_type=f"{kind}; charset=utf-8")}
    async with opened_site(routes) as site:
        options = ("--allow-private", "127.0.0.1:*", "--allow-port", str(site.port))
        async with client_of(app, *options) as client:
            call = "fetch", {"url": site.url(), **arguments}
            async with show_app(client, APP, call, where) as framed:
                yield framed


async def test_an_article_is_shown_with_its_title_and_address(page: Page, site: Site) -> None:
    async with shown((page, site), ARTICLE) as framed:
        await expect(framed.view.get_by_role("heading", level=1).first).to_have_text("About rivers")
        await expect(framed.view.get_by_role("link", name="http://127.0.0.1")).to_be_visible()
        await expect(framed.view.get_by_role("article")).to_contain_text("words of an article")
        await expect(framed.view.get_by_role("article")).not_to_contain_text("title:")
        await expect(framed.view.get_by_role("button", name="Show the whole")).to_be_hidden()


async def test_the_outline_links_to_headings(page: Page, site: Site) -> None:
    async with shown((page, site), ARTICLE) as framed:
        outline = framed.view.get_by_role("navigation", name="Outline")
        await outline.get_by_role("button", name="Mouths").click()
        await expect(framed.view.get_by_role("article").get_by_role("heading", name="Mouths")).to_be_focused()


async def test_a_link_is_opened_by_the_host(page: Page, site: Site) -> None:
    async with shown((page, site), ARTICLE) as framed:
        await framed.view.get_by_role("article").get_by_role("link", name="Springs").click()
        opened = await framed.host.received(method="ui/open-link")
        assert opened["params"] == {"url": "https://example.org/springs"}


async def test_the_whole_page_can_be_loaded_after_a_part(page: Page, site: Site) -> None:
    async with shown((page, site), ARTICLE, max_length=300) as framed:
        article = framed.view.get_by_role("article")
        await expect(framed.view.get_by_text("A part: 300 of")).to_be_visible()
        await expect(article).not_to_contain_text("Mouths")
        await framed.view.get_by_role("button", name="Show the whole").click()
        await expect(article.get_by_role("heading", name="Mouths")).to_be_visible()
        await expect(framed.view.get_by_role("button", name="Show more")).to_be_hidden()
        assert await article.inner_text() != ""


async def test_the_outline_of_a_part_links_into_the_whole_page(page: Page, site: Site) -> None:
    async with shown((page, site), ARTICLE, max_length=300) as framed:
        outline = framed.view.get_by_role("navigation", name="Outline")
        await outline.get_by_role("button", name="Mouths").click()
        await expect(framed.view.get_by_role("article").get_by_role("heading", name="Mouths")).to_be_focused()
        assert await framed.host.all_received("resources/read")


async def test_the_links_of_a_page_are_listed(page: Page, site: Site) -> None:
    async with shown((page, site), ARTICLE) as framed:
        side = framed.view.get_by_role("navigation", name="Outline")
        await side.get_by_text("Links (1)").click()
        await side.get_by_role("link", name="Springs").press("Enter")
        opened = await framed.host.received(method="ui/open-link")
        assert opened["params"] == {"url": "https://example.org/springs"}


async def test_json_is_shown_unchanged(page: Page, site: Site) -> None:
    async with shown((page, site), '{"a": "<b>"}', "application/json") as framed:
        await expect(framed.view.get_by_label("The text")).to_contain_text('"a": "<b>"')


async def test_the_source_is_shown_as_text(page: Page, site: Site) -> None:
    async with shown((page, site), "<p>one</p><script>canary()</script>", raw=True) as framed:
        await expect(framed.view.get_by_label("The text")).to_contain_text("<script>canary()</script>")


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "text/markdown"])
async def test_hostile_pages_are_shown_without_effects(page: Page, site: Site, kind: str) -> None:
    body = f"<article><h1>Hostile</h1><p>{WORDS}</p>" + "\n\n".join(f"<p>{text}</p>" for text in HOSTILE)
    # With those bytes it would not be text.
    body = body.translate(dict.fromkeys((0, 7, 27)))
    async with shown((page, site), body, kind) as framed:
        await expect(framed.view.get_by_role("main")).to_contain_text("These are words")
        assert await framed.view.locator("a[href^='javascript:'], script:not([type]), iframe").count() == 0


async def test_an_error_is_shown(page: Page, site: Site) -> None:
    async with shown((page, site), "", section="nowhere at all") as framed:
        await expect(framed.view.get_by_role("alert")).to_be_visible()
