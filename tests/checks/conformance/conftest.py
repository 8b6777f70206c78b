"""Collects what the legs came to, for one table at the end of the run."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.checks.conformance.legs import Outcome, row, table
from tests.records import recorded

LEG = "leg of the conformance suite"


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Outcome], None]:
    """Takes the outcome of a leg that has been run."""
    return lambda outcome: request.node.user_properties.append((LEG, row(outcome)))


def print_tables(terminalreporter: Any) -> None:
    """Prints the table."""
    found = list(recorded(terminalreporter, LEG))
    if found:
        terminalreporter.section("official conformance suite")
        terminalreporter.write_line(table(found))
