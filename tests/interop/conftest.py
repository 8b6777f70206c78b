"""The matrix: each test here runs for every transport and every mode of the official client.

At the end of the run the outcome of each row, the test's name, is printed for each of them.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from .peers import MODES, TRANSPORTS, Case, HttpServers

CELL = "interop"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that every filesystem server of this run serves."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def http_servers(folder: Path) -> Iterator[HttpServers]:
    servers = HttpServers(folder)
    yield servers
    servers.close()


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def case(transport: str, mode: str, folder: Path, http_servers: HttpServers) -> Case:
    return Case(transport, mode, folder, http_servers)


@pytest.fixture
def key() -> str:
    """A name that no other test uses: the servers are shared."""
    return f"k{uuid4().hex[:12]}"


@pytest.fixture
def file(folder: Path, key: str) -> Iterator[Path]:
    """A file of this test's own, directly in the served directory."""
    path = folder / f"{key}.txt"
    path.write_text("before\n")
    yield path
    path.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "transport" in parameters:
        row = item.originalname.removeprefix("test_").replace("_", " ")
        report.user_properties.append((CELL, (row, parameters["transport"], parameters["mode"])))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    matrix: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if outcome and (cell := dict(getattr(report, "user_properties", ())).get(CELL)):
                row, *column = cell
                matrix[row][tuple(column)].add(outcome)
    if matrix:
        terminalreporter.section("official client")
        for line in _table(matrix):
            terminalreporter.write_line(line)


def _table(matrix: dict[str, dict[tuple[str, str], set[str]]]) -> Iterator[str]:
    columns = [(transport, mode) for transport in TRANSPORTS for mode in MODES]
    width = max(map(len, matrix))
    for place in (0, 1):
        yield " ".join([" " * width, *(f"{column[place]:>10}" for column in columns)])
    for row, cells in matrix.items():
        shown = ("+".join(sorted(cells[column])).replace("passed", "pass") or "-" for column in columns)
        yield " ".join([f"{row:<{width}}", *(f"{cell:>10}" for cell in shown)])
