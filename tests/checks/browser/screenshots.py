"""`make screenshots`: screenshots of the panels of the workbench and of the apps, for the README and for reviewers.

python -m tests.checks.browser.screenshots [--to FOLDER] [--only NAME]

Each is taken at 1280 and at 390 pixels, in light and in dark. The servers show the same each time, at the same hour;
only what was measured differs, such as how long a query took.
"""

import argparse
import asyncio
import base64
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from tests.checks.browser.chromium import ARGUMENTS, find_chromium
from tests.checks.browser.hosts.minimal import MinimalHost, serve_host
from tests.checks.browser.hosts.samples import SAMPLES, Place, Sample
from tests.checks.browser.hosts.serving import Served, lay_out
from tests.checks.browser.opened import configure, open_servers
from tests.checks.browser.panels import PANELS, Panel, show_panel
from tests.web_site import serve_site

HERE = Path(__file__).parent
PICTURES = HERE / "pictures"
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
HEIGHT, LEAST_HEIGHT, MOST_HEIGHT = 800, 300, 1_400
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
LAID_OUT = Path(tempfile.gettempdir()) / "pictures"
"""Always the same, since some pictures show where files are."""
PORT, SITE_PORT = 8_377, 8_378
PATIENCE_MS = 30_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Takes the pictures."""
    options = _parser().parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(LAID_OUT, ignore_errors=True)
    LAID_OUT.mkdir()
    try:
        lay_out(LAID_OUT)
        asyncio.run(_take_all(options.to, options.only))
    finally:
        shutil.rmtree(LAID_OUT)
    return 0


async def _take_all(to: Path, only: str | None) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        camera = await Camera.ready(browser, to)
        panels = [panel for panel in PANELS if only in (None, panel.name)]
        apps = [sample for sample in SAMPLES if only in (None, sample.name)]
        if panels:
            await _take_panels(camera, panels)
        if apps:
            await _take_apps(camera, apps)
        await browser.close()


async def _take_panels(camera: "Camera", panels: Sequence[Panel]) -> None:
    with open_servers(configure(LAID_OUT), "--port", str(PORT)) as opened:
        for panel in panels:
            async for page, name in camera.views():
                await show_panel(page, opened.address, panel)
                await camera.take(page, f"workbench-{panel.name}-{name}")


async def _take_apps(camera: "Camera", samples: Sequence[Sample]) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(serve_host(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        site = stack.enter_context(serve_site(LAID_OUT / "site", SITE_PORT))
        served = Served(LAID_OUT)
        stack.callback(served.close)
        for sample in samples:
            async for page, name in camera.views():
                host = MinimalHost(page, address)
                await host.connect(served.url(sample.server))
                await host.open(sample.tool, sample.arguments(Place(LAID_OUT, site)), theme=name.partition("-")[2])
                await sample.shown(host.view).wait_for()
                await sample.settle(host.view)
                await camera.take(page, f"app-{sample.name}-{name}")


class Camera:
    """Takes screenshots of pages, and writes them to a folder."""

    def __init__(self, browser: Browser, to: Path, darkroom: Page) -> None:
        self._browser = browser
        self._to = to
        self._darkroom = darkroom

    @classmethod
    async def ready(cls, browser: Browser, to: Path) -> "Camera":
        """Returns a camera that writes to `to`."""
        darkroom = await browser.new_page()
        await darkroom.add_script_tag(path=HERE / "palette.js")
        return cls(browser, to, darkroom)

    async def views(self) -> AsyncIterator[tuple[Page, str]]:
        """Yields a new page of each width and theme, with their name."""
        for width in WIDTHS:
            for scheme in SCHEMES:
                async with self._page(width, scheme) as page:
                    yield page, f"{width}-{scheme}"

    @asynccontextmanager
    async def _page(self, width: int, scheme: str) -> AsyncIterator[Page]:
        context = await self._browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme=scheme,  # type: ignore[arg-type] # one of SCHEMES
            reduced_motion="reduce",
            locale="en-US",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        await page.clock.set_fixed_time(NOW)
        yield page
        await context.close()

    async def take(self, page: Page, name: str) -> None:
        """Takes a screenshot of the whole page, up to a limit."""
        end = await page.evaluate("Math.ceil(document.body.getBoundingClientRect().bottom + scrollY)")
        # Contents of frames are drawn only in the viewport.
        height = min(max(end, LEAST_HEIGHT), MOST_HEIGHT)
        await page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
        await page.evaluate("scrollTo(0, 0)")
        taken = await page.screenshot(animations="disabled", caret="hide")
        reduced = await self._darkroom.evaluate("reduce", base64.b64encode(taken).decode())
        (self._to / f"{name}.png").write_bytes(base64.b64decode(reduced))
        print(name, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.checks.browser.screenshots")
    parser.add_argument("--to", type=Path, default=PICTURES, metavar="FOLDER", help="where they are kept")
    parser.add_argument("--only", metavar="NAME", help="the one panel or app to take pictures of")
    return parser


if __name__ == "__main__":
    sys.exit(main())
