"""The accessibility of the workbench: axe-core finds nothing serious in any panel, theme or size.

`hosts/test_minimal_host.py` checks the apps.
"""

from collections.abc import Iterator

import pytest

from tests.checks.browser.accessibility import find_barriers, find_faint
from tests.checks.browser.conftest import NewPage, Show
from tests.checks.browser.hosts.serving import lay_out
from tests.checks.browser.opened import Opened, configure, open_servers
from tests.checks.browser.panels import PANELS, Panel, show_panel

pytestmark = [pytest.mark.timeout(900)]  # the first one may have to install axe

DIM = 'document.body.append(Object.assign(document.createElement("p"), { textContent: "dim", className: "dim" }));'


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Starts the four servers."""
    folder = tmp_path_factory.mktemp("opened")
    lay_out(folder)
    with open_servers(configure(folder)) as opened:
        yield opened


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")], ids=str)
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
async def test_a_panel_has_no_barriers(
    panel: Panel, width: int, scheme: str, opened: Opened, new_page: NewPage
) -> None:
    page = await new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    await show_panel(page, opened.address, panel)
    assert await find_barriers(page) == []
    other = {"light": "dark", "dark": "light"}[scheme]
    await page.emulate_media(color_scheme=other)
    assert await find_faint(page) == []


async def test_the_check_finds_a_barrier(show: Show) -> None:
    page = await show(DIM)
    await page.evaluate("document.querySelector('.dim').style.color = '#eee'")
    (found,) = await find_barriers(page)
    assert found.startswith("color-contrast (serious)")
