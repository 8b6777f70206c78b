"""The apps of the SQLite server, in a host, with a real server behind it: results of queries and the schema."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from servers.common.web import pages
from tests.checks.browser.app_host import AppHost, open_app
from tests.checks.browser.site import Site
from tests.checks.browser.sqlite_server import Server, make_database, run_server
from tests.checks.browser.watched import HOSTILE

APPS = Path(pages.__file__).parents[1] / "sql" / "apps"
ONE_MB = 1_000_000
TABLES = ("customers", "products", "orders", "order_lines")
"""Of the sample, which has a view besides."""

Open = Callable[..., Awaitable[AppHost]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shop() -> AsyncIterator[Server]:
    """Starts the server with its sample database."""
    async with run_server("--demo") as server:
        yield server


@pytest.fixture
def open_result(page: Page, site: Site, shop: Server) -> Open:
    """Opens the app for results with the answer to `query`."""

    async def opened(query: str, *, server: Server = shop, tool: str | None = None, **how: Any) -> AppHost:
        given = {"query": query, **how.pop("given", {})}
        result = await server.call("read_query", given)
        if tool is not None:
            how["context"] = {**how.get("context", {}), "toolInfo": {"tool": {"name": tool}}}
        host = await open_app(page, site, APPS / "result.html", answer=how.pop("answer", server.answer), **how)
        await host.give(given, result)
        return host

    return opened


def column(name: str, kind: str = "TEXT", *, key: bool = False) -> dict[str, Any]:
    """Returns a column of a table as the server describes it."""
    return {"name": name, "type": kind, "not_null": False, "primary_key": key}


def table(name: str, columns: list[dict[str, Any]], *links: tuple[str, str, str]) -> dict[str, Any]:
    """Returns a table as the server describes it; a link is a column with its referenced table and column."""
    keys = [{"columns": [one], "table": to, "to": [other]} for one, to, other in links]
    return {"name": name, "kind": "table", "rows": 5, "columns": columns, "foreign_keys": keys}


def schema(*tables: dict[str, Any], database: str = "demo", more: bool = False) -> dict[str, Any]:
    """Returns a result of `describe_database`."""
    view = {"tables": list(tables), "database": database, "more": more}
    return {"content": [{"type": "text", "text": "the schema as text"}], "_meta": {"view": view}}


@pytest.fixture
def open_schema(page: Page, site: Site, shop: Server) -> Open:
    """Opens the app for schemas with a description of a database, by default that of the sample."""

    async def opened(described: dict[str, Any] | None = None, *, into: Page | None = None, **how: Any) -> AppHost:
        answer = how.pop("answer", shop.answer)
        host = await open_app(into or page, site, APPS / "schema.html", answer=answer, **how)
        await host.give({}, described or await shop.call("describe_database", {}))
        return host

    return opened


def boxes(host: AppHost) -> Locator:
    """Returns the tables of the diagram."""
    return host.app.locator("svg [role=button]")


def box_of(host: AppHost, name: str) -> Locator:
    """Returns a table of the diagram."""
    return host.app.locator(f'g.table:has(> text.name:text-is("{name}"))')


async def transform(host: AppHost) -> tuple[float, float, float]:
    """Returns the transform of the diagram."""
    text = await host.app.locator("svg.drawing > g").get_attribute("transform") or ""
    x, y, scale = map(float, re.findall(r"-?[\d.]+", text))
    return x, y, scale


async def wait_for_scale(host: AppHost, condition: str) -> None:
    """Waits until the scale of the diagram meets the condition, a comparison."""
    reads = "new DOMMatrix(getComputedStyle(document.querySelector('svg.drawing > g')).transform).a"
    frame = host.page.frames[1]
    await frame.wait_for_function(f"{reads} {condition}")


async def test_rows_of_a_query_are_shown_with_the_types_of_their_columns(open_result: Open) -> None:
    host = await open_result("SELECT name, joined, id * 2 AS twice FROM customers ORDER BY id LIMIT 3")
    heads = host.app.get_by_role("columnheader")
    await expect(heads).to_contain_text(["TEXT", "DATE · text", "integer"])
    await expect(host.app.get_by_role("gridcell").first).to_have_text("Ada Lovelace")
    await expect(host.app.locator("header")).to_contain_text(" ms")
    await expect(host.app.get_by_text("Next page")).to_be_hidden()


async def test_the_query_is_shown(open_result: Open) -> None:
    host = await open_result("SELECT 1 AS one")
    await host.app.get_by_text("Query", exact=True).click()
    await expect(host.app.locator("details pre")).to_have_text("SELECT 1 AS one")


async def test_the_next_page_comes_from_the_server(open_result: Open) -> None:
    host = await open_result("SELECT id FROM customers ORDER BY id", given={"max_rows": 6})
    for rows in (12, 16):
        await host.app.get_by_role("button", name="Next page").click()
        await expect(host.app.get_by_role("gridcell", name=str(rows), exact=True)).to_be_attached()
    await expect(host.app.get_by_role("button", name="Next page")).to_be_hidden()
    asked = (await host.all_received("tools/call"))[0]
    assert asked["name"] == "read_query"
    assert set(asked["arguments"]) == {"query", "max_rows", "cursor"}


async def test_the_next_page_of_a_canned_query_comes_from_its_tool(open_result: Open) -> None:
    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"isError": True, "content": [{"type": "text", "text": f"asked {params['name']}"}]}}

    how: dict[str, Any] = {"tool": "best_customers", "given": {"max_rows": 2}, "answer": answer}
    host = await open_result("SELECT id FROM customers", **how)
    await host.app.get_by_role("button", name="Next page").click()
    await expect(host.app.get_by_role("alert")).to_contain_text("asked best_customers")


async def test_rows_that_the_host_cannot_fetch_are_mentioned(open_result: Open) -> None:
    host = await open_result("SELECT id FROM customers", given={"max_rows": 2}, capabilities={})
    await expect(host.app.get_by_text("There are more rows")).to_be_visible()
    await expect(host.app.get_by_role("button", name="Next page")).to_be_hidden()


async def test_values_outside_json_are_shown_exactly(open_result: Open) -> None:
    host = await open_result(
        "SELECT 9007199254740993 AS a, -9223372036854775808 AS b, 9e999 AS c, x'00ff41' AS d, NULL AS e"
    )
    shown = ["9007199254740993", "-9223372036854775808", "Infinity", "blob, 3 bytes: 00 ff 41", "NULL"]
    await expect(host.app.get_by_role("gridcell")).to_have_text(shown)
    assert "9007199254740993,-9223372036854775808,Infinity" in await copied(host)


async def copied(host: AppHost) -> str:
    """Returns the text that "Copy as CSV" copies."""
    await host.app.get_by_role("button", name="Copy as CSV").click()
    await expect(host.app.get_by_text("Copied")).to_be_visible()
    text: str = await host.page.evaluate("navigator.clipboard.readText()")
    return text


async def test_large_integers_are_sorted_by_all_their_digits(open_result: Open) -> None:
    host = await open_result("SELECT column1 AS n FROM (VALUES (9007199254740995), (9007199254740993), (-1), (5))")
    await host.app.get_by_role("columnheader").click()
    expected = ["-1", "5", "9007199254740993", "9007199254740995"]
    await expect(host.app.get_by_role("gridcell")).to_have_text(expected)


async def test_numeric_columns_are_plotted(open_result: Open) -> None:
    host = await open_result("SELECT name, cents FROM products ORDER BY id")
    await host.app.get_by_role("tab", name="Plot").click()
    await expect(host.app.get_by_role("img").first).to_be_visible()
    await expect(host.app.get_by_role("grid")).to_be_hidden()


async def test_the_plot_has_the_rows_of_all_pages(open_result: Open) -> None:
    host = await open_result("SELECT id, id * id AS square FROM customers", given={"max_rows": 8})
    await host.app.get_by_role("button", name="Next page").click()
    await expect(host.app.get_by_role("gridcell", name="256", exact=True)).to_be_attached()
    await host.app.get_by_role("tab", name="Plot").click()
    await expect(host.app.locator("data-plot")).to_contain_text("Showing 16 rows.")


async def test_a_result_without_numbers_has_no_plot(open_result: Open) -> None:
    host = await open_result("SELECT name FROM customers")
    await expect(host.app.get_by_role("grid")).to_be_visible()
    await expect(host.app.get_by_role("tab", name="Plot")).to_be_hidden()


async def test_an_error_of_the_tool_is_shown_as_text(open_result: Open) -> None:
    host = await open_result("SELECT * FROM nowhere")
    await expect(host.app.locator("pre.error")).to_contain_text("nowhere")
    await expect(host.app.get_by_role("grid")).to_be_hidden()


async def test_full_screen_is_offered_if_the_host_supports_it(open_result: Open) -> None:
    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"mode": params["mode"]}}

    context = {"displayMode": "inline", "availableDisplayModes": ["inline", "fullscreen"]}
    host = await open_result("SELECT 1 AS one", context=context, answer=answer)
    await host.app.get_by_role("button", name="Full screen").click()
    await expect(host.app.locator("html")).to_have_attribute("data-display", "fullscreen")
    await host.app.get_by_role("button", name="Leave full screen").click()
    await expect(host.app.locator("html")).to_have_attribute("data-display", "inline")


async def test_invisible_characters_are_made_visible(open_result: Open) -> None:
    host = await open_result("SELECT char(8238) || 'txt.exe' || char(7) AS name")
    await expect(host.app.get_by_role("gridcell")).to_have_text("<U+202E>txt.exe␇")


async def test_a_long_value_is_truncated_with_its_length(open_result: Open, page: Page) -> None:
    host = await open_result(f"SELECT printf('%.*c', {ONE_MB}, 'x') AS long")
    await host.app.get_by_role("button", name="Show the whole value").click()
    await expect(host.app.get_by_role("dialog")).to_contain_text("(truncated; 1,000,000 bytes)")


async def test_a_result_of_one_mb_in_a_cell_is_bounded(page: Page, site: Site) -> None:
    # As from another server, or with --max-cell: the app has its own limits.
    host = await open_app(page, site, APPS / "result.html")
    data = {"columns": ["long"], "declared": [None], "types": ["text"], "rows": [["<b>" + "x" * ONE_MB]]}
    await host.give({"query": "SELECT 1"}, {"content": [], "structuredContent": data})
    await expect(host.app.get_by_role("gridcell")).to_contain_text("<b>xxx")
    assert await host.app.locator("body").evaluate("(body) => body.innerText.length") < 10_000


async def test_the_diagram_shows_tables_with_their_keys(open_schema: Open) -> None:
    host = await open_schema()
    await expect(boxes(host)).to_have_count(5)
    await expect(box_of(host, "orders")).to_contain_text("customer_id")
    path = await host.app.locator("path.link:not(.marked)").get_attribute("d")
    assert path is not None
    assert path.count("C") == 3
    await expect(host.app.locator("header")).to_contain_text("demo4 tables, 1 view")


async def test_a_table_is_right_of_the_tables_it_references(open_schema: Open) -> None:
    host = await open_schema()
    left = {name: (await box_of(host, name).bounding_box() or {})["x"] for name in TABLES}
    assert left["customers"] == left["products"] < left["orders"] < left["order_lines"]


async def test_a_click_on_a_table_shows_columns_keys_and_rows(open_schema: Open) -> None:
    host = await open_schema()
    await box_of(host, "orders").click()
    details = host.app.locator("table-details")
    await expect(details.get_by_role("heading", name="orders")).to_be_focused()
    await expect(details.get_by_role("row", name="id INTEGER PK", exact=True)).to_be_visible()
    rows = details.get_by_role("table", name="First rows").get_by_role("row")
    await expect(rows).to_have_count(6)
    await expect(rows.first).to_have_text("idcustomer_idplacedshipped")
    asked = (await host.all_received("tools/call"))[0]
    assert asked["arguments"] == {"query": 'SELECT * FROM "orders" LIMIT 5', "database": "demo"}


async def test_foreign_keys_are_followed_in_both_directions(open_schema: Open) -> None:
    host = await open_schema()
    await box_of(host, "orders").click()
    details = host.app.locator("table-details")
    await details.get_by_role("button", name="order_lines (order_id)").click()
    await expect(details.get_by_role("heading", name="order_lines")).to_be_focused()
    assert (await host.app.locator("path.marked").get_attribute("d") or "").count("C") == 2
    await details.get_by_role("button", name="product_id → products (id)").click()
    await expect(details.get_by_role("heading", name="products")).to_be_focused()


async def test_the_diagram_works_by_keyboard(open_schema: Open) -> None:
    host = await open_schema()
    await host.app.get_by_role("searchbox").focus()
    await host.page.keyboard.press("Tab")
    await expect(host.app.locator("svg.drawing")).to_be_focused()
    await host.page.keyboard.press("Tab")
    await expect(boxes(host).nth(0)).to_be_focused()
    await box_of(host, "customers").focus()
    await host.page.keyboard.press("ArrowRight")
    await expect(box_of(host, "orders")).to_be_focused()
    await host.page.keyboard.press("Enter")
    await expect(host.app.get_by_role("heading", name="orders")).to_be_focused()
    await host.page.keyboard.press("Escape")
    await expect(box_of(host, "orders")).to_be_focused()
    await expect(host.app.locator("table-details")).to_be_hidden()


async def test_buttons_and_keys_zoom_and_pan(open_schema: Open) -> None:
    host = await open_schema()
    await expect(boxes(host)).to_have_count(5)
    fitted = await transform(host)
    await host.app.get_by_role("button", name="Zoom out").click()
    assert (await transform(host))[2] == pytest.approx(fitted[2] / 1.3, rel=0.01)
    await host.app.get_by_role("button", name="Zoom in").click()
    assert (await transform(host))[2] == pytest.approx(fitted[2], rel=0.01)
    await host.app.locator("svg.drawing").focus()
    for key in ("+", "ArrowLeft", "-", "ArrowDown"):
        await host.page.keyboard.press(key)
    moved = await transform(host)
    assert moved[2] == pytest.approx(fitted[2], rel=0.01)
    assert moved[:2] != fitted[:2]
    await host.app.get_by_role("button", name="Fit").click()
    assert await transform(host) == fitted


async def test_the_wheel_zooms_a_focused_diagram_around_the_pointer(open_schema: Open) -> None:
    host = await open_schema()
    await expect(boxes(host)).to_have_count(5)
    fitted = (await transform(host))[2]
    box = await boxes(host).nth(0).bounding_box()
    assert box is not None
    await host.page.mouse.move(box["x"], box["y"])
    await host.page.mouse.wheel(0, 100)
    await host.app.locator("svg.drawing").focus()
    assert (await transform(host))[2] == fitted
    await host.page.mouse.wheel(0, 100)
    await wait_for_scale(host, f"< {fitted - 0.01}")
    after = await boxes(host).nth(0).bounding_box()
    assert after is not None
    assert (after["x"], after["y"]) == (pytest.approx(box["x"], abs=3), pytest.approx(box["y"], abs=3))


async def test_a_drag_pans_the_diagram_and_opens_nothing(open_schema: Open) -> None:
    host = await open_schema()
    before = await boxes(host).nth(0).bounding_box()
    assert before is not None
    x, y = before["x"] + 20, before["y"] + 10
    await host.page.mouse.move(x, y)
    await host.page.mouse.down()
    await host.page.mouse.move(x + 40, y + 30, steps=4)
    await host.page.mouse.up()
    after = await boxes(host).nth(0).bounding_box()
    assert after is not None
    assert (after["x"] - before["x"], after["y"] - before["y"]) == (pytest.approx(40), pytest.approx(30))
    await expect(host.app.locator("table-details")).to_be_hidden()


async def test_two_fingers_zoom(open_schema: Open, new_page: Callable[..., Awaitable[Page]]) -> None:
    touched = await new_page(has_touch=True)
    host = await open_schema(into=touched)
    await expect(boxes(host)).to_have_count(5)
    fitted = (await transform(host))[2]
    session = await touched.context.new_cdp_session(touched)

    async def touch(kind: str, *points: tuple[int, int]) -> None:
        fingers = [{"x": x, "y": y, "id": index} for index, (x, y) in enumerate(points)]
        await session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    await touch("touchStart", (400, 300))
    await touch("touchStart", (400, 300), (500, 300))
    await touch("touchMove", (370, 300), (530, 300))
    await touch("touchMove", (350, 300), (550, 300))
    await touch("touchEnd")
    await wait_for_scale(host, f"> {fitted * 1.8}")
    await expect(host.app.locator("table-details")).to_be_hidden()


async def test_the_list_has_the_same_tables_and_a_search(open_schema: Open) -> None:
    host = await open_schema()
    await host.app.get_by_role("tab", name="List").click()
    await expect(host.app.locator(".list").get_by_role("button")).to_have_count(5)
    await host.app.get_by_role("searchbox").fill("ORDER")
    await expect(host.app.locator(".list").get_by_role("button")).to_have_text([re.compile("order")] * 2)
    await host.app.get_by_role("searchbox").fill("ORDERS")
    await host.app.get_by_role("searchbox").press("Enter")
    await expect(host.app.get_by_role("heading", name="orders")).to_be_focused()


async def test_a_phone_starts_with_the_list(open_schema: Open, new_page: Callable[..., Awaitable[Page]]) -> None:
    phone = await new_page(viewport={"width": 390, "height": 844})
    host = await open_schema(into=phone)
    await expect(host.app.get_by_role("tab", name="List")).to_have_attribute("aria-selected", "true")
    await host.app.get_by_role("button", name="customers").click()
    await expect(host.app.get_by_role("table", name="First rows")).to_be_visible()
    assert await phone.evaluate("document.documentElement.scrollWidth") == 390
    assert await host.app.locator("html").evaluate("(html) => html.scrollWidth") == 390
    await host.app.get_by_role("tab", name="Diagram").click()
    await expect(boxes(host)).to_have_count(5)


async def test_names_of_tables_are_text_and_quoted_in_queries(open_schema: Open, tmp_path: Path) -> None:
    names = [*HOSTILE[:2], 'say "hi"', "a'b; DROP TABLE x"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    path = make_database(
        tmp_path / "hostile.db", "".join(f"CREATE TABLE {q} (a); INSERT INTO {q} VALUES ('row');" for q in quoted)
    )
    async with run_server(path) as server:
        described = schema(*(table(name, [column(HOSTILE[0])]) for name in names), database="hostile")
        host = await open_schema(described, answer=server.answer)
        for index, name in enumerate(names):
            await boxes(host).and_(host.app.locator(f'[data-index="{index}"]')).click()
            await expect(host.app.get_by_role("heading", name=name, exact=True)).to_be_focused()
            await expect(host.app.get_by_role("cell", name="row", exact=True)).to_be_visible()
            await host.page.keyboard.press("Escape")
    assert await host.app.locator("main img, main script, main iframe").count() == 0


async def test_an_error_replaces_the_rows_of_a_table(open_schema: Open) -> None:
    host = await open_schema(schema(table("gone", [column("a")])))
    await box_of(host, "gone").click()
    await expect(host.app.locator(".sample .error")).to_contain_text("gone")


async def test_rows_are_omitted_if_the_host_calls_no_tools(open_schema: Open) -> None:
    host = await open_schema(capabilities={})
    await box_of(host, "orders").click()
    await expect(host.app.get_by_role("heading", name="orders")).to_be_focused()
    await expect(host.app.get_by_role("heading", name="First rows")).to_have_count(0)


async def test_omitted_columns_arrive_with_the_rows(open_schema: Open) -> None:
    host = await open_schema(schema(table("customers", [])))
    await box_of(host, "customers").click()
    await expect(host.app.locator("table-details").get_by_role("row", name="joined DATE")).to_be_visible()


async def test_a_result_without_data_for_the_view_is_shown_as_text(open_schema: Open) -> None:
    host = await open_schema({"content": [{"type": "text", "text": "table <b>one</b>"}]})
    await expect(host.app.locator("pre")).to_have_text("table <b>one</b>")
    await expect(host.app.get_by_role("tab", name="List")).to_be_hidden()


async def test_two_thousand_tables_are_drawn_with_few_elements(open_schema: Open) -> None:
    links = [(("up", f"t{index // 3}", "id"),) if index % 5 else () for index in range(2_000)]
    many = [
        table(f"t{index}", [column("id"), column("up"), *(column(f"c{one}") for one in range(index % 9))], *link)
        for index, link in enumerate(links)
    ]
    host = await open_schema(schema(*many, more=True))
    await expect(host.app.locator("header")).to_contain_text("2,000 tables, and more than fit here")
    counts = []
    for _ in range(8):
        counts.append(await host.app.locator("body *").count())
        await host.app.get_by_role("button", name="Zoom in").click()
    assert max(counts) < 3_500
    await host.app.get_by_role("searchbox").fill("t1999")
    await host.app.get_by_role("searchbox").press("Enter")
    await expect(box_of(host, "t1999")).to_be_in_viewport()


async def test_ten_thousand_columns_are_bounded(open_schema: Open) -> None:
    host = await open_schema(schema(table("wide", [column(f"c{index}") for index in range(10_000)])))
    await box_of(host, "wide").click()
    await expect(host.app.locator("table-details").get_by_text("and 4,800 more columns").first).to_be_visible()
    assert await host.app.locator("body *").count() < 2_000
