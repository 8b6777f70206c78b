"""Collects what the legs came to, for one table at the end of the run."""

from typing import Any

import pytest

from tests.conformance.legs import Outcome, table

OUTCOMES = pytest.StashKey[list[Outcome]]()


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> list[Outcome]:
    """The legs that have been run."""
    return pytestconfig.stash.setdefault(OUTCOMES, [])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints the table."""
    found = config.stash.get(OUTCOMES, [])
    if found:
        terminalreporter.section("official conformance suite")
        terminalreporter.write_line(table(found))
