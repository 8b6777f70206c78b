"""Each app in MCP Inspector 2.12, which connects to the server, finds the apps, and shows one."""

import pytest
from playwright.async_api import expect

from tests.checks.browser.conftest import NewPage
from tests.checks.browser.hosts.inspector import Inspector
from tests.checks.browser.hosts.samples import SAMPLES, Place, Sample
from tests.checks.browser.hosts.serving import Served

pytestmark = [pytest.mark.timeout(900)]  # the first may have to install packages

OWN = ("net::ERR_NAME_NOT_RESOLVED", "409 (Conflict)", "request to elsewhere: https://")
"""What the inspector does on its own account: it looks for a newer one, and for a configuration of the server."""


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
async def test_each_app_is_shown_by_the_inspector(
    one: Sample, inspector: Inspector, new_page: NewPage, served: Served, bakery: str, problems: list[str]
) -> None:
    page = await new_page()
    view = await inspector.open(page, served.url(one.server), one.tool, one.arguments(Place(served.folder, bakery)))
    await expect(one.shown(view)).to_be_visible()
    light = await view.locator("body").evaluate("(body) => getComputedStyle(body).color")
    await inspector.toggle_theme(page)
    await expect(view.locator("body")).not_to_have_css("color", light)
    problems[:] = [problem for problem in problems if not any(one in problem for one in OWN)]
