"""Hostile files, tables, pages and prompts in the apps: shown as text, bounded, and never executed.

The fixture `page` fails its test where, in any frame, a script of a stranger runs, the browser opens a dialog or
something is asked of elsewhere.
"""

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from tests.checks.browser.hosts.hostile import DEEP, EVIL, MARK, lay_out_hostile
from tests.checks.browser.hosts.minimal import MinimalHost
from tests.checks.browser.hosts.samples import sample
from tests.checks.browser.hosts.serving import Served
from tests.web_site import serve_site

pytestmark = [pytest.mark.timeout(900)]  # the first may have to install packages

MOST_ELEMENTS = 5_000
FORBIDDEN = (
    "script:not([type=module]), iframe, object, embed, img, base, meta[http-equiv=refresh], a[href^=javascript]"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Starts our servers with hostile contents."""
    folder = tmp_path_factory.mktemp("hostile")
    lay_out_hostile(folder)
    served = Served(folder)
    yield served
    served.close()


@pytest.fixture(scope="module")
def evil_site(hostile: Served) -> Iterator[str]:
    with serve_site(hostile.folder / "site") as address:
        yield address


async def opened(host: MinimalHost, served: Served, app: str, /, **arguments: object) -> None:
    """Opens the app of a sample."""
    one = sample(app)
    await host.connect(served.url(one.server))
    await host.open(one.tool, arguments)


async def assert_text(host: MinimalHost, text: str = MARK) -> None:
    """Checks that hostile text is readable, bounded, and creates no elements."""
    await expect(host.view.get_by_text(text).filter(visible=True).first).to_be_visible()
    assert await host.view.locator(FORBIDDEN).count() == 0
    assert await host.view.locator("*").count() <= MOST_ELEMENTS


@pytest.mark.parametrize(
    "query", [f'SELECT * FROM "{MARK}"', "SELECT cell FROM long", "SELECT * FROM many"], ids=["names", "long", "many"]
)
async def test_hostile_rows_are_text_and_bounded(query: str, host: MinimalHost, hostile: Served) -> None:
    await opened(host, hostile, "result", query=query)
    await assert_text(host)


async def test_a_hostile_schema_is_text(host: MinimalHost, hostile: Served) -> None:
    await opened(host, hostile, "schema")
    await host.view.get_by_role("tab", name="List").click()
    await host.view.get_by_role("button", name=MARK).first.click()
    await assert_text(host)


async def test_hostile_names_of_files_are_text(host: MinimalHost, hostile: Served) -> None:
    await opened(host, hostile, "files", path=str(hostile.folder / "bakery"))
    await assert_text(host)


@pytest.mark.parametrize("name", ["evil.md", "evil.csv"])
async def test_a_hostile_file_is_text(name: str, host: MinimalHost, hostile: Served) -> None:
    await opened(host, hostile, "files", path=str(hostile.folder / "bakery"))
    await host.view.get_by_role("treeitem", name=name).click()
    await assert_text(host, EVIL[1])


async def test_a_line_of_a_megabyte_is_bounded(host: MinimalHost, hostile: Served) -> None:
    await opened(host, hostile, "files", path=str(hostile.folder / "bakery"))
    await host.view.get_by_role("treeitem", name="line.txt").click()
    await expect(host.view.get_by_text("xxxxx").first).to_be_visible()
    assert await host.view.locator("body").evaluate("(body) => body.textContent.length") < 200_000


async def test_a_deep_tree_is_bounded(host: MinimalHost, hostile: Served) -> None:
    deep = hostile.folder / "bakery" / "deep"
    await opened(host, hostile, "files", path=str(deep))
    await assert_text(host, "deep")
    await opened(host, hostile, "files", path=str(deep.joinpath(*["d"] * DEEP)))
    await assert_text(host)


async def test_a_hostile_edit_is_text(host: MinimalHost, hostile: Served) -> None:
    edits = [{"oldText": f"# {EVIL[1]}", "newText": f"# {MARK}{EVIL[2]}"}]
    await opened(host, hostile, "edit", path=str(hostile.folder / "bakery" / "evil.md"), edits=edits, dryRun=True)
    await assert_text(host)


async def test_a_hostile_page_is_text(host: MinimalHost, hostile: Served, evil_site: str) -> None:
    await opened(host, hostile, "page", url=f"{evil_site}/index.html")
    await assert_text(host)


async def test_a_hostile_prompt_is_text(host: MinimalHost, hostile: Served) -> None:
    words = [{"name": "words", "value": " ".join(EVIL)}]
    await opened(host, hostile, "prompt", name="evil", arguments=words)
    await assert_text(host)
