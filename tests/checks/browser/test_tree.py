"""`<tree-view>`: use by mouse and keyboard, and its limits."""

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.checks.browser.conftest import Show
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { TreeView } from "@web/tree.js";
const tree = new TreeView();
document.getElementById("main").append(tree);
globalThis.tree = tree;
globalThis.chosen = [];
globalThis.asked = [];
globalThis.fail = false;
globalThis.shown = (nodes, later = false) => tree.show(nodes, {
  name: "Files",
  label: (node) => node.name,
  detail: (node) => node.size,
  opens: (node) => node.kids !== undefined,
  children: (node) => {
    asked.push(node.key);
    if (fail) throw new Error("<b>no</b> such place");
    return later ? new Promise((resolve) => { globalThis.answer = () => resolve(node.kids); }) : node.kids;
  },
  onSelect: (node) => chosen.push(node.key),
});
"""
NODES: list[dict[str, Any]] = [
    {
        "key": "src",
        "name": "src",
        "kids": [
            {"key": "src/a", "name": "alpha.py", "size": "12 kB"},
            {"key": "src/e", "name": "empty", "kids": []},
        ],
    },
    {"key": "docs", "name": "docs", "kids": [{"key": "docs/b", "name": "beta.md"}]},
    {"key": "readme", "name": "readme"},
]


async def shown(show: Show, nodes: list[dict[str, Any]], *, later: bool = False) -> Page:
    page = await show(SCRIPT, styles=("views.css",))
    await page.evaluate("([nodes, later]) => shown(nodes, later)", [nodes, later])
    return page


def rows(page: Page) -> Locator:
    return page.get_by_role("treeitem")


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def test_a_click_expands_collapses_and_selects(show: Show) -> None:
    page = await shown(show, NODES)
    await rows(page).get_by_text("src").click()
    await expect(page.locator(".tree-label")).to_have_text(["src", "alpha.py", "empty", "docs", "readme"])
    await expect(rows(page).nth(1)).to_have_attribute("aria-level", "2")
    await expect(rows(page).nth(1).locator(".tree-detail")).to_have_text("12 kB")
    await rows(page).get_by_text("src").click()
    await expect(page.locator(".tree-label")).to_have_text(["src", "docs", "readme"])
    assert await page.evaluate("chosen") == ["src", "src"]


async def test_the_expander_of_a_node_selects_nothing(show: Show) -> None:
    page = await shown(show, NODES)
    await page.locator(".tree-twisty").first.click()
    await expect(rows(page)).to_have_count(5)
    assert await page.evaluate("chosen") == []


async def test_arrow_keys_move_expand_and_collapse(show: Show) -> None:
    page = await shown(show, NODES)
    await rows(page).first.focus()
    await press(page, "ArrowRight", "ArrowRight", "ArrowDown")
    await expect(rows(page).nth(2)).to_be_focused()
    await press(page, "ArrowLeft")
    await expect(rows(page).nth(0)).to_be_focused()
    await press(page, "ArrowLeft")
    await expect(rows(page)).to_have_count(3)
    await press(page, "End")
    await expect(rows(page).last).to_be_focused()
    await press(page, "Home", "d")
    await expect(rows(page).nth(1)).to_be_focused()
    await press(page, "Enter")
    assert await page.evaluate("chosen") == ["docs"]


async def test_only_one_row_is_reachable_by_tab(show: Show) -> None:
    page = await shown(show, NODES)
    await expect(page.locator("[role=treeitem][tabindex='0']")).to_have_count(1)
    await press(page, "Tab", "ArrowDown")
    await expect(page.locator("[role=treeitem][tabindex='0']")).to_have_text("docs")


async def test_focus_moves_to_a_collapsed_ancestor(show: Show) -> None:
    page = await shown(show, NODES)
    await page.evaluate("tree.open('src')")
    await rows(page).nth(1).focus()
    await page.evaluate("tree.close('src')")
    await expect(rows(page).first).to_be_focused()


async def test_children_are_loaded_when_a_node_is_expanded(show: Show) -> None:
    page = await shown(show, NODES, later=True)
    assert await page.evaluate("asked") == []
    await rows(page).get_by_text("docs").click()
    await expect(rows(page).nth(1)).to_have_attribute("aria-busy", "true")
    await page.evaluate("answer()")
    await expect(rows(page).nth(2)).to_have_text("beta.md")
    assert await page.evaluate("asked") == ["docs"]


async def test_children_that_arrive_after_collapsing_are_not_shown(show: Show) -> None:
    page = await shown(show, NODES, later=True)
    await rows(page).get_by_text("docs").click()
    await rows(page).get_by_text("docs").click()
    await page.evaluate("answer()")
    await expect(rows(page)).to_have_count(3)


async def test_an_unreadable_node_shows_its_error(show: Show) -> None:
    page = await shown(show, NODES)
    await page.evaluate("globalThis.fail = true")
    await rows(page).get_by_text("src").click()
    await expect(rows(page).nth(1)).to_have_text("Not read: <b>no</b> such place")


async def test_an_empty_node_is_labeled(show: Show) -> None:
    page = await shown(show, NODES)
    await page.evaluate("tree.open('src')")
    await rows(page).get_by_text("empty").click()
    await expect(rows(page).nth(3)).to_have_text("(empty)")


async def test_marks_are_shown_on_visible_and_later_nodes(show: Show) -> None:
    page = await shown(show, NODES)
    await page.evaluate("tree.mark('readme'); tree.mark('src/a', 'new')")
    await expect(rows(page).last.locator(".tree-mark")).to_have_text("changed")
    await page.evaluate("tree.open('src')")
    await expect(rows(page).nth(1).locator(".tree-mark")).to_have_text("new")
    await page.evaluate("tree.mark('src/a', null)")
    await expect(rows(page).nth(1).locator(".tree-mark")).to_have_count(0)


async def test_reloading_keeps_nodes_expanded(show: Show) -> None:
    nodes = [{"key": "a", "name": "a", "kids": [{"key": "b", "name": "b", "kids": [{"key": "c", "name": "c"}]}]}]
    page = await shown(show, nodes)
    await page.evaluate("(async () => { await tree.open('a'); await tree.open('b'); await tree.reload('a'); })()")
    assert await page.evaluate("tree.keys") == ["a", "b", "c"]
    assert await page.evaluate("asked") == ["a", "b", "a", "b"]


async def test_100000_nodes_are_loaded_in_parts(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate("shown(Array.from({length: 100000}, (_, at) => ({key: `${at}`, name: `file ${at}`})))")
    await expect(rows(page)).to_have_count(201)
    await expect(rows(page).first).to_have_attribute("aria-setsize", "100000")
    await page.get_by_text("and 99,800 more").click()
    await expect(rows(page)).to_have_count(401)
    await expect(rows(page).nth(200)).to_be_focused()


async def test_a_tree_limits_its_rows(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate("shown(Array.from({length: 100000}, (_, at) => ({key: `${at}`, name: `file ${at}`})))")
    await rows(page).last.focus()
    # Each press shows more nodes, and moves to the first of them.
    await page.evaluate("for (let times = 0; times < 60; times += 1) document.querySelector('.tree-more').click()")
    await expect(rows(page)).to_have_count(10_000)
    await expect(rows(page).last).to_contain_text("close something")


async def test_a_deep_tree_creates_a_flat_document(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate(
        """async () => {
          let node = {key: "2000", name: "x"};
          for (let at = 1999; at >= 0; at -= 1) node = {key: `${at}`, name: "x", kids: [node]};
          shown([node]);
          for (let at = 0; at < 2000; at += 1) await tree.open(`${at}`);
        }"""
    )
    await expect(rows(page)).to_have_count(2_001)
    await expect(rows(page).last).to_have_attribute("aria-level", "2001")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 1280


async def test_hostile_names_are_text(show: Show) -> None:
    nodes = [
        {"key": text, "name": text, "size": text, "kids": [{"key": f"in {text}", "name": text}]} for text in HOSTILE
    ]
    page = await shown(show, nodes)
    await page.evaluate("for (const key of [...tree.keys]) { tree.mark(key, key); void tree.open(key); }")
    await expect(page.locator(".tree-label").first).to_have_text(HOSTILE[0])
    await expect(page.locator(".tree-label").last).to_have_text(
        "<U+202E>gnp.exe <U+2066>␀␇␛[2J\ud7ff<U+200B><U+FEFF>"
    )
    assert await page.locator("main").locator("img, script, iframe, a, style, svg").count() == 0


async def test_a_name_of_a_megabyte_is_truncated(show: Show) -> None:
    page = await shown(show, [{"key": "x", "name": "x" * 1_000_000}])
    await expect(rows(page)).to_have_text(f"{'x' * 300}… (999,700 more characters)")
