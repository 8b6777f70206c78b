"""The matrix of our client at the servers of others: kept with each test, and printed at the end of the run."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.checks.interop.servers.driving import Column
from tests.checks.interop.servers.official import OFFICIAL
from tests.checks.interop.servers.rows import ROWS
from tests.records import recorded

CELL = "our client"

Columns = dict[tuple[str, str], Mapping[str, str]]


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Column, Mapping[str, str]], None]:
    """Takes what became of the rows of a column."""
    return lambda column, found: request.node.user_properties.append(
        (CELL, (column.server, column.transport, column.version, dict(found)))
    )


def print_tables(terminalreporter: Any) -> None:
    found: dict[str, Columns] = defaultdict(dict)
    for server, transport, version, outcomes in recorded(terminalreporter, CELL):
        found[server][transport, version] = outcomes
    terminalreporter.section("our client at the servers of others")
    for line in _table({server: found[server] for server in OFFICIAL if server in found}):
        terminalreporter.write_line(line)


def _table(found: Mapping[str, Columns]) -> Iterator[str]:
    yield " ".join([" " * 22, *ROWS])
    for server, columns in found.items():
        yield OFFICIAL[server].title
        for (transport, version), outcomes in columns.items():
            yield " ".join([f"  {transport:<9} {version}", *(_mark(outcomes, row) for row in ROWS)])


def _mark(outcomes: Mapping[str, str], row: str) -> str:
    outcome = outcomes.get(row, "-")
    return (outcome if outcome in ("ok", "-") else "FAIL").rjust(len(row))
