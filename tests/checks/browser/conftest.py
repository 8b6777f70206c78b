"""Drives a real Chromium, by Playwright's asynchronous API.

All tests of this folder, and all its asynchronous fixtures, share one event loop, that of the session: to start a
browser takes a second, and what was started in one loop can't be used in another. (Playwright's synchronous API would
keep a loop running in the process all the while, and no other asynchronous test could run there.) So a fixture that
is a coroutine says `@pytest_asyncio.fixture(loop_scope="session")` here; tests get their mark below. With xdist, each
process has a browser of its own, and each test a context of its own, with no cookies and nothing stored.

- `page` is a page that fails its test when anything goes wrong in it (see `watched.py`); `problems` is the list, for
  a test that expects something to go wrong: it takes away what it expects.
- `site` serves assembled pages on loopback; `show` makes a page of a script that uses parts of `servers/common/web`.
- `new_page` makes more such pages: with another width, scheme of colours, or permission.
"""

import inspect
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from servers.common.web import pages
from tests.checks.browser.chromium import ARGUMENTS, find_chromium
from tests.checks.browser.site import Site, serve_pages
from tests.checks.browser.watched import watch
from tests.checks.browser.workbench import TOKEN, Workbench, serve_workbench

HERE = Path(__file__).parent
WEB = Path(pages.__file__).parent
PAGE_MS = 20_000
"""How long anything in a page may take to happen, in milliseconds; the machine may be busy with other tests."""
expect.set_options(timeout=PAGE_MS)

NewPage = Callable[..., Awaitable[Page]]
Show = Callable[..., Awaitable[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the tests of this folder in the event loop of the session, which has the browser."""
    for item in items:
        if HERE in item.path.parents and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Starts Chromium for all tests of one process."""
    program = find_chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """Returns the list of faults in the pages of a test; it must be empty at the end."""
    found: list[str] = []
    yield found
    assert not found, "\n".join(found)


@pytest_asyncio.fixture(loop_scope="session")
async def new_page(browser: Browser, problems: list[str]) -> AsyncIterator[NewPage]:
    """Returns a function that makes a page in a separate context, with the arguments of `Browser.new_context`."""
    async with AsyncExitStack() as opened:

        async def make(**options: Any) -> Page:
            context = await browser.new_context(**{"reduced_motion": "reduce", **options})
            opened.push_async_callback(context.close)
            context.set_default_timeout(PAGE_MS)
            return await watch(context, problems)

        yield make


@pytest_asyncio.fixture(loop_scope="session")
async def page(new_page: NewPage) -> Page:
    """Returns a page of 1280 by 720 pixels in the light theme."""
    return await new_page(permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """Starts a web server on loopback for assembled pages."""
    with serve_pages() as served:
        yield served


@pytest.fixture
def show(page: Page, site: Site, tmp_path: Path) -> Show:
    """Shows a page made of `script`, the text of a module that imports from "@web/x.js", with "@web/theme.css" and
    what of style sheets is named; `into` is another page than that of the test. In `main` is where it may add to."""
    made = 0

    async def shown(script: str, *, styles: tuple[str, ...] = (), into: Page | None = None) -> Page:
        nonlocal made
        made += 1
        web = os.path.relpath(WEB, tmp_path)
        (tmp_path / f"shown{made}.js").write_text(re.sub('"@web/', f'"{web}/', script))
        links = "".join(f'<link rel="stylesheet" href="{web}/{name}">' for name in ("theme.css", *styles))
        source = tmp_path / f"shown{made}.html"
        source.write_text(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A test</title>'
            f'<meta name="viewport" content="width=device-width">{links}</head><body><main id="main"></main>'
            f'<script type="module" src="shown{made}.js"></script></body></html>'
        )
        target = into or page
        await target.goto(site.add(pages.assemble(source)))
        return target

    return shown


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with serve_workbench(tmp_path_factory.mktemp("workbench")) as served:
        yield served


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Opens a workbench whose servers require a token."""
    with serve_workbench(tmp_path_factory.mktemp("locked"), token=TOKEN) as served:
        yield served
