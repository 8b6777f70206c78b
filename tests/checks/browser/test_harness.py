"""The pages that tests drive notice what must not happen."""

import pytest
from playwright.async_api import Page, expect

from tests.checks.browser.conftest import NewPage, Show
from tests.checks.browser.site import Site

WRONG = {
    'console.error("so bad")': "console error: so bad",
    'setTimeout(() => { throw new Error("broken"); })': "error in the page: broken",
    'globalThis.canary("a")': "a stranger's script has run",
    'new Image().src = "https://example.invalid/x.png"': "Content Security Policy",
    'document.body.innerHTML = "<b>bold</b>"': "TrustedHTML",
    'alert("hello")': "a dialog of the browser: hello",
}


@pytest.mark.parametrize("script", WRONG)
async def test_what_goes_wrong_in_a_page_is_noticed(script: str, show: Show, problems: list[str]) -> None:
    page = await show(f"{script};")
    async with page.expect_event("console", lambda message: message.text == "the end"):
        await page.evaluate("setTimeout(() => console.log('the end'), 0)")
    assert WRONG[script] in "\n".join(problems)
    problems.clear()


async def test_a_part_can_be_shown_alone(show: Show) -> None:
    page = await show(
        'import { h } from "@web/dom.js";\ndocument.getElementById("main").append(h("p", { text: "<b>" }));'
    )
    await expect(page.get_by_role("main")).to_have_text("<b>")
    assert await page.evaluate("getComputedStyle(document.body).margin") == "0px"


async def test_each_page_stands_alone(new_page: NewPage, page: Page, site: Site) -> None:
    other = await new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    assert await other.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [390, True]
    assert await page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [1280, False]
