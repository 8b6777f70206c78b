"""`renderMarkdown`: the common part of CommonMark and GitHub's tables, safe and in time whatever it is given."""

import json

from playwright.async_api import Locator, Page, expect

from tests.checks.browser.conftest import Show
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { outline, renderMarkdown } from "@web/markdown.js";
globalThis.outlineOf = outline;
globalThis.went = [];
globalThis.render = (text, options = {}) => {
  const main = document.getElementById("main");
  main.className = "markdown";
  main.replaceChildren(renderMarkdown(text, options));
};
// What of the document matters: tags, texts, and addresses.
globalThis.read = (node = document.getElementById("main")) => [...node.childNodes].map((child) => {
  if (child.nodeType === 3) return child.data;
  const tag = child.tagName.toLowerCase();
  const href = child.getAttribute("href");
  return `<${tag}${href === null ? "" : ` ${href}`}>${read(child)}</${tag}>`;
}).join("");
"""

CASES = [
    (
        "a *b* _c_ **d** __e__ ***f*** ~~g~~",
        "<p>a <em>b</em> <em>c</em> <strong>d</strong> <strong>e</strong> <em><strong>f</strong></em>"
        " <del>g</del></p>",
    ),
    ("snake_case_name 2*3*4 * x *", "<p>snake_case_name 2<em>3</em>4 * x *</p>"),
    ("**a *b** c*", "<p><em><em>a <em>b</em></em> c</em></p>"),
    ("`a*b*` `` c`d `` `e", "<p><code>a*b*</code> <code>c`d</code> `e</p>"),
    (r"\*a\* \q &amp; &#65; &x;", r"<p>*a* \q & A &x;</p>"),
    ("a  \nb\\\nc\nd", "<p>a<br></br>b<br></br>c\nd</p>"),
    ("# One\n\n### Two ##\nThree\n=====\n", "<h1>One</h1><h3>Two</h3><h1>Three</h1>"),
    ("#no\n####### no", "<p>#no\n####### no</p>"),
    ("- a\n- b\n  - c\n", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
    ("- a\n\n- b\n", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
    ("- a\n* b\n", "<ul><li>a</li></ul><ul><li>b</li></ul>"),
    ("3. a\n4. b\n", "<ol><li>a</li><li>b</li></ol>"),
    ("text\n2. no list", "<p>text\n2. no list</p>"),
    ("> a\n> > b\nlazy\n\nc", "<blockquote><p>a</p><blockquote><p>b\nlazy</p></blockquote></blockquote><p>c</p>"),
    ("```js\n# *a*\n\n<b>\n```\nb", "<pre><code># *a*\n\n<b></code></pre><p>b</p>"),
    ("~~~\nopen to the end", "<pre><code>open to the end</code></pre>"),
    ("    indented\n\n      more\n\nno", "<pre><code>indented\n\n  more</code></pre><p>no</p>"),
    ("- a\n\n  ```\n  x\n  ```\n", "<ul><li><p>a</p><pre><code>x</code></pre></li></ul>"),
    ("a\n\n---\n\n***\nb", "<p>a</p><hr></hr><hr></hr><p>b</p>"),
    (
        "[a](http://x.org/b(c) \"t\") [*d*][ref] [ref]\n\n[ref]: https://y.org/ 'z'",
        "<p><a http://x.org/b(c)>a</a> <a https://y.org/><em>d</em></a> <a https://y.org/>ref</a></p>",
    ),
    (
        "[a [b](http://x.org/) c](http://y.org/)",
        "<p>[a <a http://x.org/>b</a> c](<a http://y.org/>http://y.org/</a>)</p>",
    ),
    (
        "<https://x.org> https://y.org/a_b_(c). www.z.org, x@y.z",
        "<p><a https://x.org/>https://x.org</a> <a https://y.org/a_b_(c)>https://y.org/a_b_(c)</a>."
        " <a https://www.z.org/>www.z.org</a>, x@y.z</p>",
    ),
    (
        "![alt *x*](https://x.org/i.png) [![b](http://i.org/)](http://l.org/)",
        "<p><a https://x.org/i.png>alt x</a> <a http://l.org/>b</a></p>",
    ),
    (
        "[a](javascript:canary()) [b](data:text/html,x) [c](/there) [d](file:///etc)",
        "<p><span>a</span> <span>b</span> <span>c</span> <span>d</span></p>",
    ),
    ("<b onclick=canary()>x</b> <!-- c -->", "<p><b onclick=canary()>x</b> <!-- c --></p>"),
    (
        "| a | b\\|c |\n|---|:-:|\n| `1` | 2 | 3 |\n| 4 |",
        "<div><table><thead><tr><th>a</th><th>b|c</th></tr></thead><tbody><tr><td><code>1</code></td><td>2</td></tr><tr><td>4</td><td></td></tr></tbody></table></div>",
    ),
    ("a | b\nno table", "<p>a | b\nno table</p>"),
]


async def rendered(show: Show, text: str = "") -> Page:
    page = await show(SCRIPT, styles=("views.css",))
    await page.evaluate("text => render(text)", text)
    return page


def main(page: Page) -> Locator:
    return page.locator("#main")


async def test_each_construct_is_rendered(show: Show) -> None:
    page = await rendered(show)
    for text, wanted in CASES:
        assert await page.evaluate("text => (render(text), read())", text) == wanted, text


async def test_task_list_boxes_are_disabled(show: Show) -> None:
    page = await rendered(show, "- [x] done\n- [ ] open\n")
    await expect(page.get_by_role("checkbox", name="done")).to_be_checked()
    await expect(page.get_by_role("checkbox", name="to do")).to_be_disabled()


async def test_table_columns_are_aligned_as_declared(show: Show) -> None:
    page = await rendered(show, "|a|b|c|\n|:--|:-:|--:|\n|1|2|3|")
    sides = await page.locator("td").evaluate_all("cells => cells.map((cell) => getComputedStyle(cell).textAlign)")
    assert sides == ["start", "center", "end"]


async def test_links_open_in_a_window_without_an_opener(show: Show) -> None:
    link = (await rendered(show, "[a](https://example.org)")).get_by_role("link")
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(link).to_have_attribute("title", "https://example.org/")


async def test_a_click_on_a_link_calls_the_handler(show: Show) -> None:
    page = await rendered(show)
    await page.evaluate("render('[a](/b)', {base: 'https://x.org/', onLink: (url) => went.push(url)})")
    await page.get_by_role("link").click()
    assert await page.evaluate("went") == ["https://x.org/b"]


async def test_images_are_created_by_the_given_function(show: Show) -> None:
    page = await rendered(show)
    await page.evaluate(
        "render('![a](https://x.org/i) ![b](javascript:x)', {image: (url, alt) => Object.assign("
        "document.createElement('b'), {textContent: alt + url})})"
    )
    assert await page.evaluate("read()") == "<p><b>ahttps://x.org/i</b> <span>b</span></p>"


async def test_links_within_the_text_target_its_headings(show: Show) -> None:
    page = await rendered(show, "[go](#the-end)\n\n# Begin\n\n## The *end*!\n")
    await page.get_by_role("link").click()
    await expect(page.get_by_role("heading", name="The end!")).to_be_focused()
    assert "#" not in page.url


async def test_the_outline_has_the_headings_in_order_with_their_ids(show: Show) -> None:
    text = "# A *b*\n\n> ## In\n\n- ### Item\n\n```\n# no\n```\n\n# A b\n\n# <i>\n"
    page = await rendered(show, text)
    found = await page.evaluate("text => outlineOf(text)", text)
    assert [(one["level"], one["text"]) for one in found] == [
        (1, "A b"),
        (2, "In"),
        (3, "Item"),
        (1, "A b"),
        (1, "<i>"),
    ]
    ids = await page.locator("h1, h2, h3").evaluate_all("all => all.map((one) => one.id)")
    assert ids == [one["id"] for one in found]
    assert len(set(ids)) == 5


async def test_hostile_texts_run_no_code(show: Show) -> None:
    page = await rendered(show)
    for text in [*HOSTILE, "\n\n".join(HOSTILE), *(f"[{text}]({text})" for text in HOSTILE)]:
        await page.evaluate("text => render(text)", text)
        assert await main(page).locator("img, script, iframe, style, svg").count() == 0
        links = await main(page).locator("a").evaluate_all("all => all.map((one) => one.protocol)")
        assert set(links) <= {"http:", "https:"}


async def test_invisible_characters_are_made_visible(show: Show) -> None:
    page = await rendered(show, "a\u202eb `c\u0007` [d\u2066](https://x.org)")
    await expect(main(page)).to_have_text("a<U+202E>b c␇ d<U+2066>")


N = 1_000_000
ENDLESS = {
    "brackets": "'['.repeat(N)",
    "brackets that close": "'['.repeat(N / 2) + ']'.repeat(N / 2)",
    "links": "'[a]('.repeat(N / 4)",
    "links in angles": "'[a](<b'.repeat(N / 6)",
    "images": "'!['.repeat(N / 2)",
    "stars": "'*'.repeat(N)",
    "stars that open": "'*a **b '.repeat(N / 7)",
    "stars that open and close": "'a**b_c'.repeat(N / 6)",
    "waves": "'~~a'.repeat(N / 3)",
    "backticks": "'`'.repeat(N)",
    "backticks of all lengths": "Array.from({length: 1400}, (_, at) => '`'.repeat(at + 1)).join(' ')",
    "quotes": "'>'.repeat(N)",
    "quotes and blanks": "'> '.repeat(N / 2)",
    "quoted lines": "'> a\\nb\\n'.repeat(N / 6)",
    "lists in lists": "'+ '.repeat(N / 2)",
    "lists that go deep": "Array.from({length: 1400}, (_, at) => ' '.repeat(at) + '- a').join('\\n')",
    "items": "'* a\\n'.repeat(N / 4)",
    "cells": "'|'.repeat(N / 2) + '\\n' + '|-'.repeat(N / 4) + '|'",
    "rows": "'a|b\\n-|-\\n' + '|\\n'.repeat(N / 2)",
    "delimiters": "'|-|\\n'.repeat(N / 4)",
    "headings": "'# a\\n'.repeat(N / 4)",
    "fences": "'```\\n~~~\\n'.repeat(N / 8)",
    "references": "'[a]: b\\n'.repeat(N / 7)",
    "entities": "'&'.repeat(N)",
    "angles": "'<a:'.repeat(N / 3)",
    "blanks": "'a' + ' '.repeat(N) + 'b'",
    "addresses": "'http://('.repeat(N / 8)",
    "backslashes": "'\\\\'.repeat(N)",
    "one word": "'x'.repeat(N)",
}


async def test_a_megabyte_is_rendered_within_limits(show: Show) -> None:
    page = await rendered(show)
    for name, made in ENDLESS.items():
        spent, elements = await page.evaluate(
            f"""(() => {{
              const N = {N};
              const text = {made};
              const begun = performance.now();
              render(text);
              outlineOf(text);
              return [performance.now() - begun, document.getElementById("main").querySelectorAll("*").length];
            }})()"""
        )
        # A backtracking parser takes hours for as much; this takes a second on a busy machine.
        assert spent < 30_000, name
        assert elements <= 20_002, name


async def test_omitted_parts_are_reported(show: Show) -> None:
    page = await rendered(show)
    await page.evaluate("render('a\\n\\n'.repeat(30000))")
    await expect(page.locator("p")).to_have_count(10_001)
    await expect(page.locator("p").last).to_have_text("The rest is left out, from line 20,001 of 60,001 on.")


async def test_a_long_paragraph_is_truncated(show: Show) -> None:
    page = await rendered(show, "x" * 1_000_000)
    await expect(main(page)).to_contain_text("(900,000 more characters)")


async def test_element_nesting_is_limited(show: Show) -> None:
    page = await rendered(show)
    for text in ["> " * 1_000 + "a", "*a **b " * 1_000 + "c** d*" * 1_000, "- " * 1_000 + "a"]:
        depth = await page.evaluate(
            """text => {
              render(text);
              const depthOf = (node) => 1 + Math.max(0, ...[...node.children].map(depthOf));
              return depthOf(document.getElementById("main"));
            }""",
            text,
        )
        assert 2 < depth < 40, json.dumps(text[:20])
