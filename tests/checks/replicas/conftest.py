"""The replicas that the tests of a file share, and the tables of figures that some of them print."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.checks.replicas.cluster import Cluster, cluster
from tests.records import recorded

FIGURES = "figures of replicas"
LEASE = 1.0

Row = tuple[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _three(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path_factory.mktemp("three"), lease=LEASE) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def three(_three: Cluster) -> Cluster:
    """Three replicas that are all there, with the Redis that they share and the proxy before them."""
    await _three.heal()
    return _three


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Connections, none of which is used twice: a request never meets one that has just been closed."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as session:
        yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Shows what the replicas have said beside a failure."""
    report = yield
    found = getattr(item, "funcargs", {}).get("three")
    if report.failed and found is not None:
        report.sections.append(("the replicas said", found.replicas.said()[-8000:]))
    return report


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[str, list[Row]], None]:
    """Takes the figures of a test, under a title, for the end of the run."""
    return lambda title, rows: request.node.user_properties.append((FIGURES, (title, rows)))


def print_tables(terminalreporter: Any) -> None:
    """Prints the figures."""
    for title, rows in recorded(terminalreporter, FIGURES):
        terminalreporter.section(title)
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            terminalreporter.write_line(f"{name:<{width}}  {value}")
