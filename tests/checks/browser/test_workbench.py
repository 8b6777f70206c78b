"""The workbench in Chromium, with running servers."""

import json
import re
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from tests.checks.browser.conftest import NewPage
from tests.checks.browser.hostile_server import EVIL
from tests.checks.browser.workbench import TOKEN, Workbench
from tests.shared.transports.http.http_wire import PATIENCE, envelope, merged, routing

NAMES = ["filesystem", "sqlite", "fetch", "prompts", "everything", "hostile"]
PANELS = [
    "",
    "connect",
    "history",
    "log",
    *(f"s/everything/{one}" for one in ("tools", "resources", "prompts", "tasks")),
]


async def shown(page: Page, workbench: Workbench, server: str, tool: str) -> Locator:
    """Opens the tool of that server; returns its panel."""
    await page.goto(workbench.at("s", server, "tools", tool))
    view = page.locator(f".tool[data-tool={tool}]")
    await expect(view).to_be_visible()
    return view


async def run(page: Page, workbench: Workbench, server: str, tool: str, **values: str) -> Locator:
    """Fills in the form of a tool, and runs it; where it is shown."""
    view = await shown(page, workbench, server, tool)
    for name, value in values.items():
        field = view.get_by_label(name, exact=False).first
        if await field.is_hidden():
            await view.get_by_text("Optional:").click()
        await field.fill(value)
    await view.get_by_role("button", name="Run", exact=True).click()
    return view


# The whole


async def test_the_overview_shows_the_state_of_the_servers(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.url)
    for name in NAMES:
        card = page.locator(f".server-card[data-server={name}]")
        await expect(card).to_contain_text("ready")
    await expect(page.locator(".server-card[data-server=prompts]")).to_contain_text("changes nothing")
    sqlite = page.locator(".server-card[data-server=sqlite]")
    await expect(sqlite).to_contain_text("Queries SQLite databases")
    await expect(sqlite).to_contain_text("Schema of")
    await sqlite.get_by_role("link", name="Run SQL").click()
    await expect(page.locator(".tool[data-tool=read_query]")).to_be_visible()


async def test_the_overview_calls_only_read_only_tools(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.url)
    hostile = page.locator(".server-card[data-server=hostile]")
    await expect(hostile).to_contain_text("2 tools")
    await expect(hostile).not_to_contain_text("it-has-acted")


async def test_the_overview_updates_live(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.url)
    card = page.locator(".server-card[data-server=prompts]")
    calls = card.locator("dt:has-text('Calls') + dd")
    before = int(await calls.inner_text())
    params = {"name": "search_prompts", "arguments": {"query": "error"}, "_meta": envelope()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = merged(routing("tools/call", "search_prompts"))
    httpx.post(f"{workbench.url}/prompts/mcp", content=json.dumps(message), headers=headers, trust_env=False)
    await expect(calls).to_have_text(str(before + 1))
    await expect(card.locator("dt:has-text('Median') + dd")).to_have_text(re.compile("≤ .* m?s"))


async def test_a_lost_server_is_reported(page: Page, workbench: Workbench, problems: list[str]) -> None:
    await page.goto(workbench.url)
    await expect(page.locator(".server-card[data-server=sqlite]")).to_be_visible()
    await page.route("**/metrics", lambda route: route.abort())
    await expect(page.get_by_role("alert")).to_have_text(re.compile("can't be reached"))
    await page.unroute("**/metrics")
    await expect(page.locator(".notice")).to_be_hidden()
    assert all("Failed to load resource" in one for one in problems)
    problems.clear()


@pytest.mark.parametrize("where", PANELS)
async def test_the_layout_fits_a_phone(where: str, new_page: NewPage, workbench: Workbench) -> None:
    page = await new_page(viewport={"width": 390, "height": 844})
    await page.goto(workbench.at(where))
    await expect(page.locator("main")).not_to_have_text(re.compile("^(Loading|Connecting)…$"))
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_the_chosen_theme_persists(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.url)
    await page.get_by_label("Theme").select_option("dark")
    colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    await page.reload()
    await expect(page.get_by_label("Theme")).to_have_value("dark")
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == colour
    await page.get_by_label("Theme").select_option("light")
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") != colour


async def test_the_workbench_works_by_keyboard(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "tools", "echo"))
    view = page.locator(".tool[data-tool=echo]")
    await expect(view).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Skip to the content")).to_be_focused()
    await view.get_by_label("text", exact=False).first.focus()
    await page.keyboard.type("typed")
    for _ in range(10):
        if await page.evaluate("document.activeElement.textContent") == "Run":
            break
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(view.locator(".result")).to_have_text("typed")


# Tools


async def test_rows_are_shown_as_a_table_and_a_plot(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "sqlite", "read_query", query="SELECT name, cents FROM products ORDER BY id")
    await expect(view.locator("data-table")).to_contain_text("Darjeeling")
    await view.get_by_role("tab", name="Plot").click()
    await expect(view.locator("data-plot svg")).to_be_visible()
    await view.get_by_role("tab", name="JSON").click()
    await expect(view.locator("json-view").first).to_contain_text("columns")


async def test_the_next_rows_are_fetched(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "sqlite", "read_query", query="SELECT id FROM orders", max_rows="100")
    await expect(view.locator("data-table")).to_contain_text("100")
    await view.locator("data-table").get_by_role("button", name=re.compile("next|more", re.IGNORECASE)).click()
    await expect(view.locator("data-table")).to_contain_text("150 rows")


async def test_a_directory_is_shown_as_a_tree(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "filesystem", "directory_tree", path=str(workbench.folder))
    await expect(view.locator(".result tree-view")).to_contain_text("notes/")


async def test_a_page_is_rendered(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "fetch", "fetch", url=workbench.article)
    if await view.page.get_by_role("dialog").count():
        await page.get_by_role("button", name="Run it").click()
    await expect(view.locator(".markdown")).to_contain_text("Its leaves are not oxidised")
    await expect(view.locator(".markdown h2", has_text="Green")).to_be_visible()


async def test_prompts_are_searched(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "prompts", "search_prompts", query="error")
    await expect(view.locator(".result")).to_contain_text("explain-error")


async def test_a_changing_tool_asks_for_confirmation(page: Page, workbench: Workbench) -> None:
    path = workbench.folder / "made.txt"
    view = await run(page, workbench, "filesystem", "write_file", path=str(path), content="<b>made</b>")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("<b>made</b>")
    await dialog.get_by_role("button", name="Don’t").click()
    await expect(dialog).to_have_count(0)
    assert not path.exists()
    await view.get_by_role("button", name="Run", exact=True).click()
    await dialog.get_by_role("button", name="Run it").click()
    await expect(view.locator(".status")).to_contain_text("Done")
    assert path.read_text() == "<b>made</b>"


async def test_an_edit_is_shown_as_a_diff(page: Page, workbench: Workbench) -> None:
    path = workbench.folder / "notes" / "a.txt"
    view = await shown(page, workbench, "filesystem", "edit_file")
    await view.get_by_role("button", name="Edit as JSON").click()
    arguments = {"path": str(path), "edits": [{"oldText": "two", "newText": "2"}], "dryRun": True}
    await view.locator("schema-form textarea:visible").fill(json.dumps(arguments))
    await view.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("button", name="Run it").click()
    await expect(view.locator("diff-view")).to_contain_text("two")
    await expect(view.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")
    assert path.read_text() == "one\ntwo\nthree\n"


async def test_images_are_shown_and_links_open_their_resource(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "everything", "all_content")
    image = view.locator(".result img").first
    await expect(image).to_be_visible()
    assert await image.evaluate("(one) => one.naturalWidth") > 0
    await view.locator(".result").get_by_role("button", name=re.compile("^Open ")).click()
    await expect(page).to_have_url(re.compile("#/s/everything/resources/"))


async def test_progress_is_shown_and_a_call_is_cancelled(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "everything", "long_call", seconds="40", steps="400")
    await expect(view.locator(".status")).to_contain_text(re.compile(r"step \d+ of 400"))
    bar = view.get_by_role("progressbar")
    await expect(bar).to_have_attribute("max", "400")
    await view.get_by_role("button", name="Cancel").click()
    await expect(view.locator(".result")).to_have_text("The call was cancelled.")
    await expect(bar).to_be_hidden()
    await expect(view.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    assert state(workbench, "everything")["calls"]["shown"] == []


def state(workbench: Workbench, server: str) -> Any:
    """Returns the state of a server that the overview shows."""
    return httpx.get(f"{workbench.url}/debug/state", timeout=PATIENCE, trust_env=False).json()["servers"][server]


async def test_a_call_continues_while_another_panel_is_open(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "everything", "long_call", seconds="2", steps="4")
    await page.get_by_role("link", name="Prompts", exact=True).click()
    await expect(view).to_have_count(0)
    await page.get_by_role("link", name="Tools", exact=True).click()
    await expect(view.locator(".result")).to_have_text("Took 2 seconds in 4 steps.")


async def test_a_tool_error_is_shown(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "sqlite", "read_query", query="SELECT FROM")
    await expect(view.locator(".result")).to_contain_text("The tool failed")
    await expect(view.locator(".result")).to_contain_text("syntax error")
    await expect(view.locator(".status")).to_contain_text("Failed")


async def test_a_protocol_error_is_shown(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "everything", "fail")
    await expect(view.locator(".result .error")).not_to_be_empty()
    await view.get_by_text("Request and response").click()
    await view.locator(".exchange details").last.locator("summary").first.click()
    await expect(view.locator(".exchange")).to_contain_text("code")


async def test_the_first_rows_are_visible_after_a_query(new_page: NewPage, workbench: Workbench) -> None:
    page = await new_page(viewport={"width": 1280, "height": 800})
    view = await run(page, workbench, "sqlite", "read_query", query="SELECT 1 AS a UNION SELECT 2")
    await expect(view.get_by_role("grid")).to_be_visible()
    for row in await view.get_by_role("row").all():
        await expect(row).to_be_in_viewport(ratio=0.9)
    assert await page.evaluate("scrollY") == 0


async def test_optional_arguments_are_folded_until_one_is_invalid(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "sqlite", "read_query", query="SELECT 1")
    await expect(view.get_by_label("max_rows")).to_be_hidden()
    await view.get_by_text("Optional:").click()
    await view.get_by_label("max_rows").fill("none")
    await view.get_by_text("Optional:").click()
    await view.get_by_role("button", name="Run", exact=True).click()
    await expect(view.get_by_label("max_rows")).to_be_visible()


async def test_a_phone_shows_the_list_first(new_page: NewPage, workbench: Workbench) -> None:
    page = await new_page(viewport={"width": 390, "height": 844})
    await page.goto(workbench.at("s/sqlite/tools"))
    tools = page.get_by_role("navigation", name="Tools")
    await expect(page.locator("article.tool")).to_be_hidden()
    await tools.get_by_role("link", name="read_query").click()
    await expect(page.locator("article.tool")).to_be_visible()
    await expect(tools).to_be_hidden()
    await page.get_by_role("button", name="Back to the list").click()
    await expect(tools).to_be_visible()


async def test_the_exact_messages_are_below_the_result(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "everything", "echo", text="so exact")
    await view.get_by_text("Request and response (2 messages)").click()
    messages = view.locator(".exchange details")
    await expect(messages).to_have_count(2)
    for message in await messages.all():
        await message.locator("summary").first.click()
    await expect(messages.first).to_contain_text("progressToken")
    await expect(messages.last).to_contain_text("so exact")


async def test_an_interrupted_stream_is_resumed(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "everything", "test_reconnection")
    await expect(view.locator(".status")).to_contain_text("Done")


async def test_a_lost_session_is_reopened(page: Page, workbench: Workbench, problems: list[str]) -> None:
    async with page.expect_response(lambda one: "mcp-session-id" in one.headers) as begun:
        view = await run(page, workbench, "everything", "echo", text="before")
    session = (await begun.value).headers["mcp-session-id"]
    await expect(view.locator(".result")).to_have_text("before")
    headers = {"Mcp-Session-Id": session}
    assert httpx.delete(f"{workbench.url}/everything/mcp", headers=headers, trust_env=False).status_code == 200
    await view.get_by_label("text", exact=False).first.fill("after")
    await view.get_by_role("button", name="Run", exact=True).click()
    await expect(view.locator(".result")).to_have_text("after")
    assert all("404" in one for one in problems), problems
    problems.clear()


async def test_only_the_shown_server_has_an_open_stream(page: Page, workbench: Workbench) -> None:
    for server in NAMES[:4]:
        await page.goto(workbench.at("s", server))
        await expect(page.locator(".server-head")).to_contain_text("protocol 2025-11-25")
    with anyio.fail_after(PATIENCE):
        while (streams := [listening(workbench, server) for server in NAMES[:4]]) != [0, 0, 0, 1]:
            assert sum(streams) <= 4
            await anyio.lowlevel.checkpoint()


def listening(workbench: Workbench, server: str) -> int:
    """Returns the number of open notification streams of a server."""
    return sum(one.get("streams", 0) for one in state(workbench, server)["connections"]["shown"])


async def test_tools_are_searched_by_a_word(page: Page, workbench: Workbench) -> None:
    await page.goto(workbench.at("s", "everything", "tools"))
    names = page.locator(".tool-list a")
    await expect(names.first).to_be_visible()
    await page.get_by_label("Filter tools").fill("long call")
    await expect(names).to_have_text([re.compile("Long call")])


async def test_sessions_end_with_the_page(new_page: NewPage, workbench: Workbench) -> None:
    page = await new_page()
    view = await run(page, workbench, "prompts", "search_prompts", query="x")
    await expect(view.locator(".status")).to_contain_text("Done")
    before = state(workbench, "prompts")["limits"]["sessions"]["used"]
    await page.goto("about:blank")
    while state(workbench, "prompts")["limits"]["sessions"]["used"] >= before:
        pass


async def test_texts_of_a_server_are_shown_as_text(page: Page, workbench: Workbench) -> None:
    view = await run(page, workbench, "hostile", "say", text="<img src=x onerror=canary()>")
    for tab in ("Text", "Rendered"):
        await view.get_by_role("tab", name=tab).click()
        await expect(view.locator(".result")).to_contain_text("<script>canary()</script>")
    assert "\u202e" in EVIL
    assert "\u202e" not in await page.locator("body").inner_text()
    assert await page.locator("main script, main iframe, main style").count() == 0


# The token


async def test_the_token_is_only_in_the_memory_of_the_page(
    page: Page, locked: Workbench, problems: list[str]
) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    await page.goto(locked.at("s", "everything", "tools", "echo"))
    await page.get_by_label("Token").fill("wrong")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert")).to_have_text("This token is not accepted.")
    await page.get_by_label("Token").fill(TOKEN)
    await page.get_by_role("button", name="Log in").click()
    view = page.locator(".tool[data-tool=echo]")
    await view.get_by_label("text", exact=False).first.fill("x")
    await view.get_by_role("button", name="Run", exact=True).click()
    await expect(view.locator(".result")).to_have_text("x")
    places = [await page.content()]
    for panel in ("connect", "history", "log"):
        await page.get_by_role("link", name=panel.title(), exact=True).click()
        await expect(page.locator("main")).to_contain_text("everything")
        await page.locator("main details").evaluate_all("(all) => all.forEach((one) => (one.open = true))")
        # The elements receive it in a separate task.
        await page.evaluate("new Promise((heard) => setTimeout(heard, 0))")
        places.append(await page.content())
    places.append(
        await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie, history.state])")
    )
    assert not [one for one in [*places, *addresses, page.url] if TOKEN in one]
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_label("Token")).to_have_value("")
    await page.reload()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert all("401" in one for one in problems), problems
    problems.clear()
