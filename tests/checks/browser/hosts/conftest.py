"""Hosts of MCP Apps that are not ours, and our servers, which they reach over HTTP."""

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
    """Our four servers, whose files and tables tests may change; each test has its own names."""
    folder = tmp_path_factory.mktemp("served")
    lay_out(folder)
    servers = Served(folder)
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def bakery(served: Served) -> Iterator[str]:
    """The address of a web site for the fetch server."""
    with serve_site(served.folder / "site") as address:
        yield address


@pytest.fixture(scope="session")
def host_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the minimal host is."""
    with serve_host(tmp_path_factory.mktemp("host")) as address:
        yield address


@pytest_asyncio.fixture(loop_scope="session")
async def host(page: Page, host_address: str) -> MinimalHost:
    """The minimal host, in a page of this test."""
    return MinimalHost(page, host_address)


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    """The inspector, with its own home."""
    with run_inspector(tmp_path_factory.mktemp("inspector")) as running:
        yield running
