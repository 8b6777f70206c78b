"""The matrix: each test here runs for every transport and every mode of the official Python client.

These are rows for it alone, by the name of the test. What is asked of all clients is in `others`, where one test is
one column. At the end of the run a table is printed for each client.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.postgres_server import PostgresServer, short_folder
from tests.records import recorded
from tests.servers.postgres.databases import SAMPLE, Database, make_sample
from tests.servers.sqlite.samples import make_chinook

from .others.environments import OLDER, PEERS
from .pages import served
from .peers import DATABASE, LIBRARY, MODES, TRANSPORTS, URL, Case, HttpServers

CELL = "interop"
OFFICIAL = "sdk2"

Matrix = dict[str, dict[tuple[str, str], set[str]]]
Record = Callable[[str, tuple[str, str], Mapping[str, str]], None]
"""Takes what became of rows: of which peer, and over which transport in which mode."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that every filesystem server of this run serves; in it the database of every SQLite server."""
    folder = tmp_path_factory.mktemp("served")
    make_chinook(folder / DATABASE, wal=True)
    (folder / LIBRARY).mkdir()
    return folder


@pytest.fixture(scope="session")
def http_servers(folder: Path) -> Iterator[HttpServers]:
    servers = HttpServers(folder)
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def postgres(folder: Path, http_servers: HttpServers) -> Iterator[Database]:
    """The database of every PostgreSQL server of this run."""
    with short_folder() as place:
        server = PostgresServer(place)
        server.start()
        make_sample(server)
        database = Database(server, SAMPLE)
        (folder / URL).write_text(database.owner, encoding="utf-8")
        yield database
        http_servers.end("postgres")
        server.stop()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The URL of a web site for the fetch servers of this run."""
    with served() as url:
        yield url


@pytest.fixture(params=["stdio", "http+token"])  # without a token go the rows of all clients
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["auto", "legacy"])  # with a version that is pinned as well
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


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    return lambda *found: request.node.user_properties.append((CELL, found))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if report.when == "call" and "transport" in parameters and "peer" not in parameters:
        row = item.originalname.removeprefix("test_").replace("_", " ")
        outcome = "ok" if report.passed else report.outcome
        column = (parameters["transport"], parameters["mode"])
        report.user_properties.append((CELL, (OFFICIAL, column, {row: outcome})))
    return report


def print_tables(terminalreporter: Any) -> None:
    matrices: dict[str, Matrix] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for peer, column, found in recorded(terminalreporter, CELL):
        for row, outcome in found.items():
            matrices[peer][row][tuple(column)].add("pass" if outcome == "ok" else "FAIL")
    for peer in PEERS:
        if peer in matrices:
            terminalreporter.section(PEERS[peer].title)
            for line in _table(matrices[peer]):
                terminalreporter.write_line(line)


def _table(matrix: Matrix) -> Iterator[str]:
    seen = {column for cells in matrix.values() for column in cells}
    every = ((transport, mode) for transport in TRANSPORTS for mode in (*MODES, *OLDER))
    columns = [column for column in every if column in seen]
    width = max(map(len, matrix))
    for place in (0, 1):
        yield " ".join([" " * width, *(f"{column[place]:>10}" for column in columns)])
    for row, cells in matrix.items():
        shown = ("+".join(sorted(cells[column])) or "-" for column in columns)
        yield " ".join([f"{row:<{width}}", *(f"{cell:>10}" for cell in shown)])
