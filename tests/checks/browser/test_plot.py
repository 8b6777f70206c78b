"""`<data-plot>`: rows as bars, lines and points, with axes, text for screen readers, and limits."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.checks.browser.conftest import NewPage, Show
from tests.checks.browser.tasks import traced_tasks
from tests.checks.browser.watched import HOSTILE

SCRIPT = """
import { DataPlot } from "@web/plot.js";
import { numericColumns, samplePoints } from "@web/points.js";
import { niceTicks, tickText } from "@web/scale.js";
globalThis.plot = document.createElement("data-plot");
Object.assign(globalThis, { DataPlot, numericColumns, samplePoints, niceTicks, tickText });
document.getElementById("main").append(plot);
"""
FRUIT = [["apples", 3, 1.5], ["pears", -1, 2.5], ["plums", None, 9], ["figs", 8, 4]]


async def plotted(show: Show, columns: list[Any], rows: list[Any]) -> Page:
    page = await show(SCRIPT)
    await page.evaluate("given => plot.show(given)", {"columns": columns, "rows": rows})
    return page


def note(page: Page) -> Any:
    return page.locator("data-plot [role=status]")


async def test_bars_start_at_zero_and_have_labels(show: Show) -> None:
    page = await plotted(show, [{"name": "fruit"}, {"name": "eaten"}, "price"], FRUIT)
    await expect(page.locator("figcaption")).to_have_text("eaten by fruit")
    image = page.get_by_role("img", name="eaten by fruit. Bars for 3 rows, from -1 to 8")
    await expect(image.locator("rect")).to_have_count(3)
    await expect(image.locator("text")).to_have_text(
        ["-2", "0", "2", "4", "6", "8", "apples", "pears", "figs", "fruit"]
    )
    base = float(await image.locator(".plot-zero").get_attribute("y1") or 0)
    tops = [(float(y), float(height)) for y, height in await image.locator("rect").evaluate_all(
        "all => all.map((one) => [one.getAttribute('y'), one.getAttribute('height')])"
    )]  # fmt: skip
    assert [round(y + height - base, 6) for y, height in (tops[0], tops[2])] == [0, 0]
    assert tops[1][0] == base
    assert tops[0][1] == pytest.approx(3 * tops[1][1])
    await expect(note(page)).to_have_text("Showing 3 rows. 1 without a number is left out.")


async def test_chosen_kind_and_columns_stay_with_more_rows(show: Show) -> None:
    page = await plotted(show, ["fruit", "eaten", "price"], FRUIT)
    await page.get_by_label("Kind").select_option("Lines")
    await page.get_by_label("Y", exact=True).select_option("price")
    await page.get_by_label("X", exact=True).select_option("eaten")
    await expect(page.locator("figcaption")).to_have_text("price by eaten")
    curve = page.locator(".plot-curve")
    assert len((await curve.get_attribute("points") or "").split()) == 3
    await page.evaluate(
        "rows => plot.show({ columns: ['fruit', 'eaten', 'price'], rows })", [*FRUIT, ["kiwis", 5, 5]]
    )
    await expect(page.locator("figcaption")).to_have_text("price by eaten")
    assert len((await curve.get_attribute("points") or "").split()) == 4
    xs = [float(point.split(",")[0]) for point in (await curve.get_attribute("points") or "").split()]
    assert xs == sorted(xs)
    await page.get_by_label("Kind").select_option("Points")
    assert (await page.locator(".plot-dots").get_attribute("d") or "").count("M") == 4


async def test_numeric_columns_are_plotted_by_the_first_or_by_index(show: Show) -> None:
    page = await plotted(show, ["year", "sum"], [[2001, 5], [2002, 6]])
    await expect(page.locator("figcaption")).to_have_text("sum by year")
    await page.evaluate("plot.show({ columns: ['sum'], rows: [[5], [6]] })")
    await expect(page.locator("figcaption")).to_have_text("sum by row number")


@pytest.mark.parametrize("rows", [[], [["x", None]], [["x", "y"]]], ids=["no rows", "null", "texts"])
async def test_a_result_without_numbers_shows_a_notice(rows: list[Any], show: Show) -> None:
    page = await plotted(show, ["a", "b"], rows)
    await expect(note(page)).to_have_text("There are no numbers to plot.")
    await expect(page.get_by_role("combobox")).to_have_count(0)
    await page.evaluate("plot.show({ columns: ['a', 'b'], rows: [['x', 1]] })")
    await expect(page.locator("figcaption")).to_have_text("b by a")


async def test_ticks_are_round_for_any_numbers(show: Show) -> None:
    page = await show(SCRIPT)
    ticks = await page.evaluate("all => all.map(([low, high]) => niceTicks(low, high, 5))", [
        [0, 10], [0, 0.3], [-7, 93], [5, 5], [0, 0], [1e9, 3.1e9], [-1e300, 1e300],
    ])  # fmt: skip
    assert ticks[:6] == [
        [0, 2, 4, 6, 8, 10],
        [0, 0.1, 0.2, 0.3],
        [-20, 0, 20, 40, 60, 80, 100],
        [2, 3, 4, 5, 6, 7, 8],
        [-1, -0.5, 0, 0.5, 1],
        [1e9, 1.5e9, 2e9, 2.5e9, 3e9, 3.5e9],
    ]
    assert ticks[6][0] == pytest.approx(-1e300)
    said = await page.evaluate("all => all.map(tickText)", [0, 0.25, 2026, 12_345, 2.5e9, 1e-7, 1e300])
    assert said == ["0", "0.25", "2026", "12,345", "2.5B", "1e-7", "1e300"]


async def test_hostile_names_and_values_are_text(show: Show) -> None:
    columns = [HOSTILE[0], HOSTILE[1], HOSTILE[-1]]
    page = await plotted(show, columns, [[text, number, 1.7e308] for number, text in enumerate(HOSTILE)])
    await expect(page.locator("figcaption")).to_have_text(f"{HOSTILE[1]} by {HOSTILE[0]}")
    # Floats that large have no values between them, and can't be plotted.
    await page.get_by_label("Y", exact=True).select_option(value="2")
    await expect(note(page)).to_have_text("There are no numbers to plot.")
    assert await page.locator("main").locator("script, iframe, a, style, img").count() == 0


async def test_a_plot_fits_a_phone(new_page: NewPage, show: Show) -> None:
    phone = await new_page(viewport={"width": 390, "height": 844})
    page = await show(SCRIPT, into=phone)
    await page.evaluate("given => plot.show(given)", {"columns": ["a" * 200, "b" * 200], "rows": [["x" * 200, 1e20]]})
    await expect(page.locator("svg")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_downsampling_keeps_peaks(browser: Browser, show: Show) -> None:
    page = await show(SCRIPT)
    async with traced_tasks(browser, page) as tasks:
        await page.evaluate("""() => {
          const rows = Array.from({ length: 100_000 }, (_, row) => [row, row === 54_321 ? 1e6 : row % 100]);
          plot.show({ columns: ["at", "height"], rows });
        }""")
    for kind, most, element in [("Bars", 200, "rect"), ("Lines", 2_000, "polyline")]:
        await page.get_by_label("Kind").select_option(kind)
        await expect(note(page)).to_have_text(
            f"Showing {most:,} of 100,000 rows: the lowest and the highest in each interval."
        )
        assert 0 < await page.locator("svg *").count() <= most + 50
        assert await page.locator(f"svg {element}").count() > 0
    heights = await page.locator(".plot-curve").evaluate("one => [...one.points].map((point) => point.y)")
    assert min(heights) < 20 < sorted(heights)[1]
    await page.get_by_label("Kind").select_option("Points")
    await expect(note(page)).to_have_text("Showing 4,000 of 100,000 rows: evenly chosen.")
    assert tasks.longest_ms < 200  # most of it for making the rows in the page


async def test_the_choice_of_columns_is_limited(show: Show) -> None:
    page = await show(SCRIPT)
    await page.evaluate("""() => {
      const columns = Array.from({ length: 10_000 }, (_, at) => "column " + at);
      plot.show({ columns, rows: [columns.map((_, at) => at)] });
    }""")
    await expect(page.get_by_label("X", exact=True).locator("option")).to_have_count(202)
    await expect(page.get_by_label("Y", exact=True).locator("option").last).to_have_text("and 9,800 more columns")
