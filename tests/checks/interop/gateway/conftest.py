"""The matrix of the gateway's ways: kept with each test, and printed at the end of the run."""

from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

import pytest

from tests.checks.interop.gateway.columns import Column
from tests.checks.interop.gateway.table import table
from tests.records import recorded

CELLS = "gateway"


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
