"""`<json-view>`: any JSON value as a tree that folds."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.checks.browser.conftest import Show
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { JsonView } from "@web/json.js";
const view = new JsonView();
document.getElementById("main").append(view);
globalThis.view = view;
"""


async def shown(show: Show, value: Any) -> Page:
    page = await show(SCRIPT, styles=("views.css",))
    await page.evaluate("value => view.show(value)", value)
    return page


def rows(page: Page) -> Locator:
    return page.locator(".tree-label, .tree-other")


async def test_each_kind_of_value_is_shown(show: Show) -> None:
    page = await shown(show, {"a": [1.5, True, None], "b": "text\n", "c": {}, "d": []})
    await expect(rows(page)).to_have_text(
        ["{a, b, c, … 1 more}", "a: [3 items]", "0: 1.5", "1: true", "2: null", 'b: "text↵"', "c: {}", "d: []"]
    )


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (None, "null"), ("", '""'), ([], "[]"), (False, "false")])
async def test_a_bare_value_is_shown(show: Show, value: Any, text: str) -> None:
    await expect(rows(await shown(show, value))).to_have_text([text])


async def test_nodes_collapse_and_expand(show: Show) -> None:
    page = await shown(show, {"a": {"b": {"c": 1}}})
    await expect(rows(page)).to_have_count(4)
    await page.get_by_role("button", name="Collapse all").click()
    await expect(rows(page)).to_have_text(["{a}", "a: {b}"])
    await page.get_by_role("button", name="Expand all").click()
    await expect(rows(page)).to_have_count(4)


async def test_the_whole_value_is_copied(show: Show) -> None:
    page = await shown(show, {"a": [1]})
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("status")).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == '{\n  "a": [\n    1\n  ]\n}'


async def test_a_long_text_expands_to_its_full_length(show: Show) -> None:
    page = await shown(show, {"a": "x" * 1_000})
    await expect(rows(page)).to_have_text(["{a}", f'a: "{"x" * 200}… (800 more characters)"'])
    await rows(page).last.click()
    await expect(rows(page).last).to_have_text("x" * 1_000)


async def test_a_large_value_expands_only_to_its_outline(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate("view.show(Array.from({length: 100000}, (_, at) => ({at, more: [at]})))")
    await expect(page.get_by_role("treeitem")).to_have_count(202)
    await expect(rows(page).last).to_have_text("and 99,800 more")


async def test_10000_names_are_loaded_in_parts(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate("view.show(Object.fromEntries(Array.from({length: 10000}, (_, at) => [`name ${at}`, at])))")
    await expect(rows(page).first).to_have_text("{name 0, name 1, name 2, … 9,997 more}")
    await expect(rows(page).last).to_have_text("and 9,800 more")


async def test_a_deep_value_is_rendered_on_demand_and_not_copied(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate("let deep = 1; for (let at = 0; at < 100000; at += 1) deep = [deep]; view.show(deep)")
    assert 10 < await rows(page).count() < 100
    await page.get_by_role("button", name="Expand all").click()
    assert await rows(page).count() <= 501
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("status")).to_have_text("It is nested too deeply to be copied.")


async def test_hostile_names_and_texts_are_text(show: Show) -> None:
    page = await shown(show, {"list": HOSTILE, "names": {text: text for text in HOSTILE}, "__proto__": "own"})
    await expect(page.get_by_text('0: "<img src=x onerror=canary()>"', exact=True)).to_be_visible()
    assert await page.locator("main").locator("img, script, iframe, a, style, svg").count() == 0


async def test_a_text_of_a_megabyte_is_truncated(show: Show) -> None:
    page = await shown(show, "x" * 1_000_000)
    await rows(page).first.click()
    await expect(rows(page).last).to_contain_text("(900,000 more characters)")
