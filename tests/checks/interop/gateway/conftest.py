"""The matrix of the gateway's ways: kept with each test, and printed at the end of the run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from typing import Any

import pytest

from tests.checks.interop.gateway.columns import NAMES, Column
from tests.checks.interop.gateway.rows import EXCLUDED
from tests.records import recorded

CELLS = "gateway"

Found = Mapping[Column, Mapping[str, str]]
"""What became of the rows of each column."""


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Column, Mapping[str, str]], None]:
    """Takes what became of the rows of a column."""
    return lambda column, found: request.node.user_properties.append((CELLS, (astuple(column), dict(found))))


def print_tables(terminalreporter: Any) -> None:
    """Prints the matrix."""
    found = {Column(*column): outcomes for column, outcomes in recorded(terminalreporter, CELLS)}
    terminalreporter.section("through the gateway")
    for line in table(found):
        terminalreporter.write_line(line)


def table(found: Found) -> Iterator[str]:
    """Its lines: "ok"; "FAIL"; "-" where the connection did not last to the row; "no" where the version has no
    message for it, and that was said."""
    yield " ".join([f"{'way':<15} {'client':<11}{'server':<6}", *NAMES])
    for column, outcomes in found.items():
        marks = (_mark(column, name, outcomes).rjust(len(name)) for name in NAMES)
        yield " ".join([f"{column.way:<15} {column.version:<11}{column.age:<6}", *marks])


def _mark(column: Column, name: str, outcomes: Mapping[str, str]) -> str:
    outcome = outcomes.get(name, "-")
    if outcome == "ok":
        return "no" if (column.version, name) in EXCLUDED else "ok"
    return outcome if outcome == "-" else "FAIL"
