"""Each app in a minimal host, which has only the official client and the official app-bridge."""

import re

import pytest
from playwright.async_api import expect

from tests.checks.browser.accessibility import find_barriers, find_faint
from tests.checks.browser.hosts.minimal import MinimalHost
from tests.checks.browser.hosts.samples import SAMPLES, Place, Sample, sample
from tests.checks.browser.hosts.serving import Served

pytestmark = [pytest.mark.timeout(900)]  # the first may have to install packages

KIB = 1_024
EACH = pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)


@pytest.fixture
def place(served: Served, bakery: str) -> Place:
    return Place(served.folder, bakery)


async def opened(host: MinimalHost, served: Served, name: str, /, **arguments: object) -> None:
    """Opens the app of that name with the given arguments."""
    one = sample(name)
    await host.connect(served.url(one.server))
    await host.open(one.tool, arguments)


@EACH
async def test_each_app_is_shown_in_both_themes(one: Sample, host: MinimalHost, served: Served, place: Place) -> None:
    await host.connect(served.url(one.server))
    page = await host.open(one.tool, one.arguments(place))
    assert page["uri"] == one.uri
    assert page["size"] <= 100 * KIB
    await expect(one.shown(host.view)).to_be_visible()
    light = await host.view.locator("body").evaluate("(body) => getComputedStyle(body).color")
    assert await find_barriers(host.page) == []
    await host.set_theme("dark")
    await expect(host.view.locator("body")).not_to_have_css("color", light)
    assert await find_faint(host.page) == []
    sizes = await host.asked("ui/notifications/size-changed")
    assert 0 < sizes[-1]["height"] < 4_000


@EACH
async def test_an_app_may_start_in_the_dark_theme(
    one: Sample, host: MinimalHost, served: Served, place: Place
) -> None:
    await host.connect(served.url(one.server))
    await host.open(one.tool, one.arguments(place), theme="dark")
    await expect(one.shown(host.view)).to_be_visible()
    await expect(host.view.locator(":root")).to_have_css("color-scheme", "dark")
    await host.close_view()
    await expect(host.page.locator("iframe")).to_have_count(0)


async def test_a_host_without_apps_gets_the_same_text(host: MinimalHost, served: Served, place: Place) -> None:
    one = sample("edit")
    await host.connect(served.url(one.server))
    linked, shown = (await host.tools())[one.tool], await host.call(one.tool, one.arguments(place))
    await host.connect(served.url(one.server), apps=False)
    plain, told = (await host.tools())[one.tool], await host.call(one.tool, one.arguments(place))
    assert linked["_meta"]["ui"]["resourceUri"] == linked["_meta"]["ui/resourceUri"] == one.uri
    assert "ui://" not in str(plain)
    assert "view" in shown["_meta"]
    assert "view" not in told.get("_meta", {})
    assert shown["content"] == told["content"]


# Requests of an app to its host. The tests of each app cover everything else.


async def test_the_next_page_of_rows_is_requested(host: MinimalHost, served: Served) -> None:
    query = {"query": "SELECT placed, customer FROM sales ORDER BY order_id", "max_rows": 20}
    await opened(host, served, "result", **query)
    await expect(host.view.get_by_text("20 rows").first).to_be_visible()
    await host.view.get_by_role("button", name=re.compile("next", re.IGNORECASE)).click()
    await expect(host.view.get_by_text("40 rows").first).to_be_visible()
    (call,) = await host.asked("tools/call")
    assert call["name"] == "read_query"
    assert call["arguments"].pop("cursor")
    assert call["arguments"] == query


async def test_a_link_of_a_page_is_opened_by_the_host(host: MinimalHost, served: Served, bakery: str) -> None:
    await opened(host, served, "page", url=f"{bakery}/index.html")
    await host.view.get_by_role("article").get_by_role("link", name="starter").click()
    await expect(host.view.get_by_role("heading", name="The second day")).to_be_visible()
    assert await host.asked("ui/open-link") == [{"url": f"{bakery}/starter.html"}]


async def test_a_prompt_is_rendered_again_and_sent(host: MinimalHost, served: Served) -> None:
    await opened(host, served, "prompt", name="explain-error", arguments={"error": "KeyError: 'flour'"})
    await host.view.get_by_label("error").first.fill("IndexError: loaf")
    await host.view.get_by_role("button", name="Render").click()
    await expect(host.view.get_by_text("IndexError: loaf").last).to_be_visible()
    (call,) = await host.asked("tools/call")
    assert call["arguments"] == {
        "name": "explain-error",
        "arguments": [{"name": "error", "value": "IndexError: loaf"}],
    }
    await host.view.get_by_role("button", name="Send to the chat").click()
    await expect(host.view.get_by_role("button", name="Send to the chat")).to_be_enabled()
    (message,) = await host.asked("ui/message")
    assert "IndexError: loaf" in message["content"][0]["text"]


async def test_a_cancelled_call_is_reported(host: MinimalHost, served: Served) -> None:
    await opened(host, served, "result", query="SELECT 1")
    await host.cancel("the user stopped it")
    await expect(host.view.get_by_text("the user stopped it")).to_be_visible()
