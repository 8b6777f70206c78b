"""Foreign web pages: no access to the servers on this machine, nor to the token."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page, async_playwright, expect

from tests.checks.browser.chromium import ARGUMENTS, find_chromium
from tests.checks.browser.conftest import NewPage
from tests.checks.browser.hosts.serving import lay_out
from tests.checks.browser.opened import Opened, configure, open_servers
from tests.web_site import serve_site

TOKEN = "kept-to-oneself-4711"
STRANGER = "<!doctype html><title>A stranger's page</title><body></body>"
INITIALIZE = """{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
"capabilities":{},"clientInfo":{"name":"stranger","version":"1"}}}"""
SEND = """async ([url, body, options]) => {
  try {
    const answer = await fetch(url, { method: "POST", body, ...options });
    return [answer.type, answer.status];
  } catch (error) {
    return [error.name, 0];
  }
}"""
KEPT = """async () => JSON.stringify([
  document.documentElement.outerHTML,
  [...document.querySelectorAll("input")].map((field) => field.value),
  [document.cookie, name, location.href, history.state],
  [{ ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys()],
  performance.getEntries(),
])"""
"""All that a page leaves where somebody else could look."""
REFUSED = "console error: Failed to load resource: the server responded with a status of 401 (Unauthorized)"
JSON_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Starts servers without a token: only the origin of a page keeps others out."""
    folder = tmp_path_factory.mktemp("opened")
    lay_out(folder)
    with open_servers(configure(folder)) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def elsewhere() -> AsyncIterator[BrowserContext]:
    """Starts a browser that resolves each host of .test to this machine, as its owner could configure."""
    rules = "--host-resolver-rules=MAP *.test 127.0.0.1"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=[*ARGUMENTS, rules])
        yield await browser.new_context()
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(elsewhere: BrowserContext, tmp_path: Path) -> AsyncIterator[Page]:
    """Opens a foreign page in the browser of a user with open servers."""
    (tmp_path / "index.html").write_text(STRANGER)
    with serve_site(tmp_path) as address:
        page = await elsewhere.new_page()
        await page.goto(f"http://stranger.test:{urlsplit(address).port}/")
        yield page
        await page.close()


def counted(opened: Opened) -> dict[str, float]:
    """Returns the numbers of accepted and of refused requests."""
    metrics = httpx.get(f"{opened.address}metrics").text
    names = ("mcp_requests_total", "mcp_http_refused_total")
    return {name: sum(map(float, re.findall(rf"^{name}{{.*}} (\S+)$", metrics, re.MULTILINE))) for name in names}


async def assert_refused(opened: Opened, before: dict[str, float]) -> None:
    after = counted(opened)
    assert after["mcp_requests_total"] == before["mcp_requests_total"]
    assert after["mcp_http_refused_total"] > before["mcp_http_refused_total"]


async def test_a_foreign_page_gets_no_answer(opened: Opened, stranger: Page) -> None:
    before = counted(opened)
    options = {"headers": JSON_HEADERS}
    assert await stranger.evaluate(SEND, [opened.url("sqlite"), INITIALIZE, options]) == ["TypeError", 0]
    await assert_refused(opened, before)


async def test_foreign_requests_without_a_preflight_are_refused(opened: Opened, stranger: Page) -> None:
    before = counted(opened)
    sent = await stranger.evaluate(SEND, [opened.url("sqlite"), INITIALIZE, {"mode": "no-cors"}])
    assert sent == ["opaque", 0]
    await assert_refused(opened, before)


async def test_a_foreign_form_is_refused(opened: Opened, stranger: Page) -> None:
    before = counted(opened)
    fill = """([action, body]) => {
      const form = Object.assign(document.createElement("form"), { action, method: "post", enctype: "text/plain" });
      const [name, value] = body.split(":1,");
      form.append(Object.assign(document.createElement("input"), { name: `${name}:1,"a":"`, value: `",${value}` }));
      document.body.append(form);
      form.submit();
    }"""
    async with stranger.expect_navigation() as sent:
        await stranger.evaluate(fill, [opened.url("sqlite"), INITIALIZE])
    answer = await sent.value
    assert answer.status == 403
    await assert_refused(opened, before)


async def test_a_foreign_page_cannot_frame_the_workbench(opened: Opened, stranger: Page) -> None:
    frame = """(src) => new Promise((resolve) => {
      const frame = Object.assign(document.createElement("iframe"), { src, onload: resolve });
      document.body.append(frame);
    })"""
    await stranger.evaluate(frame, opened.address)
    assert [await one.locator("#workbench").count() for one in stranger.frames] == [0, 0]
    assert stranger.frames[1].url.startswith("chrome-error:")


async def test_an_opener_cannot_access_the_workbench(opened: Opened, stranger: Page) -> None:
    async with stranger.expect_popup() as popup:
        await stranger.evaluate("(url) => { globalThis.opened = open(url); }", opened.address)
    workbench = await popup.value
    await workbench.wait_for_load_state()
    assert await workbench.evaluate("opener") is None
    assert await stranger.evaluate("opened.closed")
    await workbench.close()


@pytest.mark.parametrize("path", ["", "sqlite/mcp", "metrics"])
async def test_a_rebound_host_name_is_refused(path: str, opened: Opened, elsewhere: BrowserContext) -> None:
    page = await elsewhere.new_page()
    answer = await page.goto(f"http://rebound.test:{urlsplit(opened.address).port}/{path}")
    assert (answer.status, await page.locator("#workbench").count()) == (403, 0)
    await page.close()


async def test_a_foreign_page_cannot_read_the_token(new_page: NewPage, problems: list[str], tmp_path: Path) -> None:
    lay_out(tmp_path)
    trace = tmp_path / "trace.jsonl"
    options = ("--log-level", "debug", "--trace", str(trace))
    with open_servers(configure(tmp_path), *options, token=TOKEN) as opened:
        page = await new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(f"{request.url} {request.post_data}"))
        await page.goto(opened.address)
        await page.get_by_label("Token", exact=True).fill(TOKEN)
        before = await page.evaluate("history.length")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("link", name="sqlite").first).to_be_visible()
        # Each card sends requests to its server, which would fail after the end of the servers.
        for card in await page.locator(".server-card").all():
            await expect(card.get_by_role("listitem").first).to_be_visible()
        assert await page.evaluate("history.length") == before
        kept = await page.evaluate(KEPT)
        said = opened.close()
    problems[:] = [problem for problem in problems if problem != REFUSED]
    assert asked
    assert TOKEN not in kept
    assert TOKEN not in "\n".join(asked)
    assert "debug" in said.lower()
    assert TOKEN not in said
    assert TOKEN not in trace.read_text()
