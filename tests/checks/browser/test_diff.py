"""`<diff-view>`: a unified diff as people read it."""

import difflib

from playwright.async_api import Locator, Page, expect

from tests.checks.browser.conftest import Show
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { DiffView } from "@web/diff.js";
const view = new DiffView();
document.getElementById("main").append(view);
globalThis.view = view;
"""


def diff_of(before: list[str], after: list[str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, "a/x", "b/x", lineterm=""))


async def shown(show: Show, text: str) -> Page:
    page = await show(SCRIPT, styles=("views.css",))
    await page.evaluate("text => view.show(text)", text)
    return page


def cells(page: Page, kind: str) -> Locator:
    return page.locator(f".diff-{kind} td")


async def test_lines_have_numbers_signs_and_labels(show: Show) -> None:
    page = await shown(show, diff_of(["one", "two", "three"], ["one", "2", "three", "four"]))
    await expect(cells(page, "removed")).to_have_text(["2", "", "removed: two"])
    await expect(cells(page, "added")).to_have_text(["", "2", "added: 2", "", "4", "added: four"])
    await expect(cells(page, "same")).to_have_text(["1", "1", "one", "3", "3", "three"])
    assert await cells(page, "added").nth(2).get_attribute("data-sign") == "+"
    assert await cells(page, "removed").nth(2).get_attribute("data-sign") == "−"
    await expect(page.locator(".diff-summary")).to_contain_text("+2 −1")


async def test_a_removed_line_that_looks_like_a_header_is_a_line(show: Show) -> None:
    page = await shown(show, diff_of(["-- x", "++ y"], []))
    await expect(page.locator(".diff-removed .diff-line")).to_have_text(["removed: -- x", "removed: ++ y"])
    await expect(page.locator(".diff-file")).to_have_text(["--- a/x", "+++ b/x"])


async def test_small_differences_within_a_line_are_marked(show: Show) -> None:
    page = await shown(show, diff_of(["let size = 10;"], ["let size = 200;"]))
    await expect(page.locator(".diff del")).to_have_text("1")
    await expect(page.locator(".diff ins")).to_have_text("20")


async def test_unrelated_lines_have_no_marks_within(show: Show) -> None:
    page = await shown(show, diff_of(["abc"], ["xyz"]))
    await expect(page.locator(".diff-removed")).to_have_count(1)
    await expect(page.locator(".diff ins, .diff del")).to_have_count(0)


async def test_several_files_and_a_missing_line_end_are_shown(show: Show) -> None:
    one = diff_of(["a"], ["b"])
    page = await shown(show, f"{one}\n\\ No newline at end of file\n{one}\n")
    await expect(page.locator(".diff-file")).to_have_count(4)
    await expect(page.locator(".diff-note")).to_have_text("No newline at end of file")


async def test_a_text_that_is_not_a_diff_is_shown_as_lines(show: Show) -> None:
    page = await shown(show, "just\ntext")
    await expect(page.locator(".diff-note .diff-line")).to_have_text(["just", "text"])


async def test_100000_lines_are_loaded_in_parts(show: Show) -> None:
    page = await shown(show, "@@ -1,100000 +0,0 @@\n" + "-x\n" * 100_000)
    await expect(page.locator(".diff tbody tr")).to_have_count(1_000)
    await page.get_by_role("button", name="Show more (99,001 lines)").click()
    await expect(page.locator(".diff tbody tr")).to_have_count(2_000)


async def test_a_line_of_a_megabyte_is_truncated(show: Show) -> None:
    page = await shown(show, diff_of(["x" * 1_000_000], ["x" * 999_999 + "y"]))
    await expect(page.locator(".diff-removed .diff-line")).to_contain_text("(998,000 more characters)")


async def test_hostile_lines_are_text(show: Show) -> None:
    page = await shown(show, diff_of([], HOSTILE))
    await expect(page.locator(".diff-line").first).to_have_text(f"added: {HOSTILE[0]}")
    await expect(page.locator(".diff-line").last).to_contain_text("<U+202E>gnp.exe")
    assert await page.locator("main").locator("img, script, iframe, a, style, svg").count() == 0
