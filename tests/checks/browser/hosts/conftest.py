"""Third-party hosts of MCP Apps, and our servers, which they reach over HTTP."""

from collections.abc import Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.checks.browser.hosts.inspector import Inspector, run_inspector
from tests.checks.browser.hosts.minimal import MinimalHost, serve_host
from tests.checks.browser.hosts.serving import Served, lay_out
from tests.web_site import serve_site


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Starts our four servers, whose files and tables tests may change; each test uses different names."""
    folder = tmp_path_factory.mktemp("served")
    lay_out(folder)
    servers = Served(folder)
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def bakery(served: Served) -> Iterator[str]:
    """Returns the address of a web site for the fetch server."""
    with serve_site(served.folder / "site") as address:
        yield address


@pytest.fixture(scope="session")
def host_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of the minimal host."""
    with serve_host(tmp_path_factory.mktemp("host")) as address:
        yield address


@pytest_asyncio.fixture(loop_scope="session")
async def host(page: Page, host_address: str) -> MinimalHost:
    """Returns the minimal host in a page of this test."""
    return MinimalHost(page, host_address)


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    """Starts the inspector with a separate home directory."""
    with run_inspector(tmp_path_factory.mktemp("inspector")) as running:
        yield running
