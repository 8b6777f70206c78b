"""The pages of tests notice errors and forbidden requests."""

import pytest

from tests.checks.browser.conftest import Show

WRONG = {
    'console.error("so bad")': "console error: so bad",
    'setTimeout(() => { throw new Error("broken"); })': "error in the page: broken",
    'globalThis.canary("a")': "a stranger's script has run",
    'new Image().src = "https://example.invalid/x.png"': "Content Security Policy",
    'document.body.innerHTML = "<b>bold</b>"': "TrustedHTML",
    'alert("hello")': "a dialog of the browser: hello",
}


@pytest.mark.parametrize("script", WRONG)
async def test_errors_in_a_page_are_noticed(script: str, show: Show, problems: list[str]) -> None:
    page = await show(f"{script};")
    async with page.expect_event("console", lambda message: message.text == "the end"):
        await page.evaluate("setTimeout(() => console.log('the end'), 0)")
    assert WRONG[script] in "\n".join(problems)
    problems.clear()
