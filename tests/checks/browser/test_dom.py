"""`dom.js` and `csv.js`: data of a server enters and leaves a page as text."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.checks.browser.conftest import Show
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { cellText, clear, copyText, h, svg, visible } from "@web/dom.js";
import { toCsv } from "@web/csv.js";
const main = document.getElementById("main");
Object.assign(globalThis, { cellText, clear, copyText, h, main, svg, toCsv, visible });
"""


@pytest_asyncio.fixture(loop_scope="session")
async def parts(show: Show) -> Page:
    """Returns a page in which the functions can be called."""
    return await show(SCRIPT)


async def test_h_creates_an_element(parts: Page) -> None:
    await parts.evaluate("""() => {
      const on = { click: () => main.append("clicked") };
      const props = { class: "a b", disabled: false, "aria-pressed": false, "data-at": 3, title: null };
      const children = ["a", null, h("b", { text: "<i>" }), [svg("svg", { width: 1 }), undefined]];
      main.append(h("button", { ...props, on }, ...children));
    }""")
    button = parts.get_by_role("button")
    assert await button.evaluate("one => one.outerHTML") == (
        '<button class="a b" aria-pressed="false" data-at="3">a<b>&lt;i&gt;</b><svg width="1"></svg></button>'
    )
    await button.click()
    await expect(parts.get_by_role("main")).to_contain_text("clicked")


@pytest.mark.parametrize("name", ["onclick", "ONERROR", "style", "srcdoc", "innerHTML"])
async def test_h_sets_no_executable_attributes(name: str, parts: Page) -> None:
    tried = "name => { try { h('div', { [name]: 'x' }); } catch (error) { return error.message; } }"
    assert await parts.evaluate(tried, name) == f"{name} is not set from a text"


async def test_only_web_addresses_become_links(parts: Page) -> None:
    urls = [
        "https://a.b/",
        "http://a.b",
        "#x",
        "javascript:canary()",
        " javascript:canary()",
        "data:text/html,x",
        "file:///a",
    ]
    made = "urls => urls.map((url) => h('a', { href: url }).getAttribute('href'))"
    assert await parts.evaluate(made, urls) == [*urls[:3], None, None, None, None]


async def test_invisible_characters_are_made_visible(parts: Page) -> None:
    shown = {
        "a\tb\r\nc": "a\tb\nc",
        "\u0000\u001b\u007f\r": "\u2400\u241b\u2421\u240d",
        "\u202eabc\u2066\ufeff\u200b": "<U+202E>abc<U+2066><U+FEFF><U+200B>",
        "\U000e0041": "<U+E0041>",
        "👩\u200d💻 ناز": "👩\u200d💻 ناز",
    }
    for text, expected in shown.items():
        assert await parts.evaluate("visible", text) == expected
    assert await parts.evaluate("visible('\\ud800x')") == "<U+D800>x"


async def test_long_text_is_truncated_with_the_remaining_length(parts: Page) -> None:
    assert await parts.evaluate("visible('x'.repeat(20), 20)") == "x" * 20
    assert await parts.evaluate("visible('x'.repeat(12_365), 20)") == "x" * 20 + "… (12,345 more characters)"
    assert await parts.evaluate("visible('xx😀yy', 3)") == "xx… (4 more characters)"


async def test_any_value_has_a_text(parts: Page) -> None:
    values = "[null, undefined, '', 'a', 0, 1e21, true, [1, null], { a: 'b' }].map(cellText)"
    assert await parts.evaluate(values) == ["", "", "", "a", "0", "1e+21", "true", "[1,null]", '{"a":"b"}']
    circle = "() => { const circle = []; circle.push(circle); return cellText(circle); }"
    assert await parts.evaluate(circle) == "(can't be shown as text)"


async def test_csv_is_quoted_and_formulas_are_disarmed(parts: Page) -> None:
    rows = [["=A1", "+1", "-1", "@x", "\tx"], [-1, "a,b", 'a"b', "a\nb", None]]
    assert await parts.evaluate("rows => toCsv(['a', { name: '=b' }, 'c', 'd', 'e'], rows)", rows) == (
        'a,\'=b,c,d,e\r\n\'=A1,\'+1,\'-1,\'@x,\'\tx\r\n-1,"a,b","a""b","a\nb",\r\n'
    )


async def test_copying_works_without_clipboard_permission(parts: Page) -> None:
    await parts.evaluate("""() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("no"));
      const click = async () => main.append(String(await copyText("copied")));
      main.append(h("button", { text: "Copy", on: { click } }));
    }""")
    await parts.get_by_role("button").click()
    await expect(parts.get_by_role("main")).to_contain_text("true")
    assert await parts.evaluate("navigator.clipboard.readText()") == "copied"
    await expect(parts.get_by_role("button")).to_be_focused()


async def test_hostile_texts_stay_texts(parts: Page) -> None:
    await parts.evaluate(
        "all => all.forEach((text) => main.append(h('p', { text: visible(text), title: text })))", HOSTILE
    )
    assert await parts.locator("main *").evaluate_all("all => all.every((one) => one.tagName === 'P')")
