"""Hostile files, tables, pages and prompts in the workbench: shown as text, bounded, and never executed.

The fixture `page` fails its test where a script of a stranger runs, the browser opens a dialog or something is asked
of elsewhere. What a hostile server says of itself is in `test_workbench.py`, and the apps are attacked in
`hosts/test_attacks.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.checks.browser.hosts.hostile import EVIL, MARK, lay_out_hostile
from tests.checks.browser.opened import Opened, configure, open_servers
from tests.web_site import serve_site

MOST_ELEMENTS = 6_000
MOST_CHARACTERS = 400_000
FORBIDDEN = "body script, iframe, object, embed, img, base, meta[http-equiv=refresh], a[href^=javascript]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes hostile contents."""
    folder = tmp_path_factory.mktemp("hostile")
    lay_out_hostile(folder)
    return folder


@pytest.fixture(scope="module")
def opened(folder: Path) -> Iterator[Opened]:
    """Starts the four servers with these contents."""
    with open_servers(configure(folder, prompts={"libraries": [str(folder / "prompts")]})) as opened:
        yield opened


@pytest.fixture(scope="module")
def evil_site(folder: Path) -> Iterator[str]:
    with serve_site(folder / "site") as address:
        yield address


async def run(page: Page, opened: Opened, server: str, tool: str, arguments: dict[str, Any]) -> None:
    """Calls a tool in its panel."""
    await page.goto(f"{opened.address}#/s/{server}/tools/{tool}")
    await page.get_by_role("button", name="Edit as JSON").click()
    await page.get_by_label("Arguments as JSON").fill(json.dumps(arguments))
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_role("main").get_by_text("Done in")).to_be_visible()


async def assert_text(page: Page, text: str = MARK) -> None:
    """Checks that hostile text is readable, bounded, and creates no elements."""
    main = page.get_by_role("main")
    await expect(main.get_by_text(text).filter(visible=True).first).to_be_visible()
    await assert_bounded(page)


async def assert_bounded(page: Page) -> None:
    """Checks that hostile text creates no elements and is bounded."""
    main = page.get_by_role("main")
    assert await page.locator(FORBIDDEN).count() == 0
    assert await page.locator("*").count() <= MOST_ELEMENTS
    assert await main.evaluate("(main) => main.textContent.length") <= MOST_CHARACTERS


async def assert_all_views(page: Page, text: str = MARK) -> None:
    """Checks the same in each view of a result."""
    for tab in await page.get_by_role("main").get_by_role("tab").all():
        await tab.click()
        # A plot shows numbers, and large JSON is folded.
        folded = await tab.inner_text() in ("Plot", "JSON")
        await (assert_bounded(page) if folded else assert_text(page, text))


@pytest.mark.parametrize(
    "query", [f'SELECT * FROM "{MARK}"', "SELECT cell FROM long", "SELECT * FROM many"], ids=["names", "long", "many"]
)
async def test_hostile_rows_are_text(query: str, page: Page, opened: Opened) -> None:
    await run(page, opened, "sqlite", "read_query", {"query": query})
    await assert_all_views(page)


@pytest.mark.parametrize("tool", ["list_tables", "describe_database"])
async def test_hostile_names_of_tables_are_text(tool: str, page: Page, opened: Opened) -> None:
    await run(page, opened, "sqlite", tool, {})
    await assert_all_views(page)


@pytest.mark.parametrize("tool", ["directory_tree", "list_directory_with_sizes", "list_directory"])
async def test_hostile_names_of_files_are_text(tool: str, page: Page, opened: Opened, folder: Path) -> None:
    await run(page, opened, "filesystem", tool, {"path": str(folder / "bakery")})
    await assert_all_views(page)


async def test_a_deep_tree_is_bounded(page: Page, opened: Opened, folder: Path) -> None:
    await run(page, opened, "filesystem", "directory_tree", {"path": str(folder / "bakery" / "deep")})
    await assert_all_views(page, "d")


@pytest.mark.parametrize(("name", "text"), [("evil.md", MARK), ("evil.csv", MARK), ("line.txt", "xxxxx")])
async def test_a_hostile_file_is_text(name: str, text: str, page: Page, opened: Opened, folder: Path) -> None:
    await run(page, opened, "filesystem", "read_text_file", {"path": str(folder / "bakery" / name)})
    await assert_all_views(page, text)


async def test_a_hostile_edit_is_text(page: Page, opened: Opened, folder: Path) -> None:
    edits = [{"oldText": f"# {EVIL[1]}", "newText": f"# {MARK}{EVIL[2]}"}]
    arguments = {"path": str(folder / "bakery" / "evil.md"), "edits": edits, "dryRun": True}
    await page.goto(f"{opened.address}#/s/filesystem/tools/edit_file")
    await page.get_by_role("button", name="Edit as JSON").click()
    await page.get_by_label("Arguments as JSON").fill(json.dumps(arguments))
    await page.get_by_role("button", name="Run", exact=True).click()
    asked = page.get_by_role("dialog")
    await expect(asked.get_by_text(MARK).first).to_be_visible()
    await asked.get_by_role("button", name="Run it").click()
    await expect(page.get_by_role("main").get_by_text("Done in")).to_be_visible()
    await assert_all_views(page)


@pytest.mark.parametrize("name", ["evil.md", "evil.csv"])
async def test_a_hostile_resource_is_text(name: str, page: Page, opened: Opened) -> None:
    await page.goto(f"{opened.address}#/s/filesystem/resources")
    await assert_text(page)
    await page.get_by_role("main").get_by_text(name, exact=True).first.click()
    await assert_text(page, EVIL[1])


async def test_a_hostile_page_is_text(page: Page, opened: Opened, evil_site: str) -> None:
    await run(page, opened, "fetch", "fetch", {"url": f"{evil_site}/index.html"})
    await assert_all_views(page)


async def test_a_hostile_prompt_is_text(page: Page, opened: Opened) -> None:
    await page.goto(f"{opened.address}#/s/prompts/prompts")
    await page.get_by_role("main").get_by_text(MARK).first.click()
    await page.get_by_role("main").get_by_label("words").first.fill(" ".join(EVIL))
    await page.get_by_role("button", name="Render", exact=True).click()
    await expect(page.get_by_role("main").get_by_text(EVIL[2]).last).to_be_visible()
    await assert_text(page)


@pytest.mark.parametrize(("panel", "number"), [("History", 0), ("Log", 0), ("Log", 1)])
async def test_hostile_texts_stay_text_in_the_history(panel: str, number: int, page: Page, opened: Opened) -> None:
    await run(page, opened, "sqlite", "read_query", {"query": f'SELECT * FROM "{MARK}"'})
    await page.get_by_role("link", name=panel).click()
    await page.get_by_role("main").locator("summary").nth(number).click()
    await assert_text(page)


async def test_a_hostile_address_is_text(page: Page, opened: Opened) -> None:
    await page.goto(f"{opened.address}#/s/{MARK}/tools/{MARK}")
    await expect(page.get_by_role("main")).not_to_be_empty()
    assert await page.locator(FORBIDDEN).count() == 0
