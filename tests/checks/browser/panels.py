"""The panels of the workbench with contents, for screenshots and accessibility checks."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Page, expect

__all__ = ["PANELS", "SALES", "Panel", "show_panel"]

SALES = (
    "SELECT substr(placed, 1, 7) AS month, count(*) AS orders, round(sum(total)) AS total "
    "FROM sales GROUP BY 1 ORDER BY 1"
)


@dataclass(frozen=True)
class Panel:
    """One panel, by the hash of its address; `fill` adds contents."""

    name: str
    hash: str
    fill: Callable[[Page], Awaitable[None]]


async def show_panel(page: Page, address: str, panel: Panel) -> None:
    """Opens the workbench at a panel with contents."""
    await page.goto(f"{address}{panel.hash}")
    await panel.fill(page)


async def _overview(page: Page) -> None:
    await _query(page)
    await page.get_by_role("link", name="Overview").click()
    card = page.get_by_role("list", name="Servers").get_by_role("listitem").filter(has_text="sqlite")
    await expect(card).to_have_text(re.compile(r"Calls\s*[1-9]"))


async def _query(page: Page) -> None:
    await page.get_by_role("main").get_by_label("query").first.fill(SALES)
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.get_by_role("grid")).to_be_visible()


async def _plot(page: Page) -> None:
    await _query(page)
    await page.get_by_role("tab", name="Plot").click()
    await expect(page.locator("data-plot svg")).to_be_visible()


async def _resources(page: Page) -> None:
    await page.get_by_role("main").get_by_text("notes.md").first.click()
    await expect(page.get_by_role("main").get_by_text("whoever comes by").first).to_be_visible()


async def _prompt(page: Page) -> None:
    await page.get_by_role("button", name="Explain an error").click()
    await page.get_by_role("main").get_by_label("error").first.fill("KeyError: 'flour'")
    await page.get_by_role("button", name="Render", exact=True).click()
    await expect(page.get_by_role("main").get_by_text("to a developer").first).to_be_visible()


async def _heading(page: Page) -> None:
    await expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()


async def _log(page: Page) -> None:
    await _query(page)
    await page.get_by_role("link", name="Log").click()
    await expect(page.get_by_role("main").get_by_text(re.compile("tools/call")).first).to_be_visible()


async def _history(page: Page) -> None:
    await _query(page)
    await page.get_by_role("link", name="History").click()
    await expect(page.get_by_role("main").get_by_text(re.compile("read_query")).first).to_be_visible()


_QUERY = "#/s/sqlite/tools/read_query"
PANELS = (
    Panel("overview", _QUERY, _overview),
    Panel("tool", _QUERY, _query),
    Panel("plot", _QUERY, _plot),
    Panel("resources", "#/s/filesystem/resources", _resources),
    Panel("prompt", "#/s/prompts/prompts", _prompt),
    Panel("tasks", "#/s/sqlite/tasks", _heading),
    Panel("connect", "#/connect", _heading),
    Panel("history", _QUERY, _history),
    Panel("log", _QUERY, _log),
)
