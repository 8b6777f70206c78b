"""What tests record for the tables at the end of a run. It travels with their reports: a test may have run in another
process than the one that prints."""

from collections.abc import Iterator
from typing import Any

import pytest


def recorded(terminalreporter: Any, name: str) -> Iterator[Any]:
    """The values of the user property `name` of all tests that were run, in the order in which these began."""
    reports = [report for found in terminalreporter.stats.values() for report in found if _of_a_call(report)]
    for report in sorted(reports, key=lambda report: report.start):
        yield from (value for key, value in report.user_properties if key == name)


def _of_a_call(report: Any) -> bool:
    return isinstance(report, pytest.TestReport) and report.when == "call"
