"""Records of tests for the tables at the end of a run. Reports carry them, since a test may have run in another
process than the one that prints."""

from collections.abc import Iterator
from typing import Any

import pytest


def recorded(terminalreporter: Any, name: str) -> Iterator[Any]:
    """Returns the values of the user property `name` of all tests, in the order of their start."""
    for report in sorted(_calls(terminalreporter), key=lambda report: report.start):
        yield from (value for key, value in report.user_properties if key == name)


def names_recorded(terminalreporter: Any) -> set[str]:
    """Returns the names of all records."""
    return {key for report in _calls(terminalreporter) for key, _ in report.user_properties}


def _calls(terminalreporter: Any) -> list[pytest.TestReport]:
    reports = (report for found in terminalreporter.stats.values() for report in found)
    return [report for report in reports if isinstance(report, pytest.TestReport) and report.when == "call"]
