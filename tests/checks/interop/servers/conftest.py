"""The matrix of our client at the servers of others: kept with each test, and printed at the end of the run."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.checks.interop.servers.driving import Column
from tests.checks.interop.servers.official import OFFICIAL
from tests.checks.interop.servers.rows import ROWS

CELL = "our client"
SHOWN = {"passed": "ok", "skipped": "skip"}

Cells = dict[str, str]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if isinstance(column := parameters.get("column"), Column):
        cell = (column.server, column.transport, column.version, parameters["row"])
        report.user_properties.append((CELL, cell))
    return report


def print_tables(terminalreporter: Any) -> None:
    found: dict[str, dict[tuple[str, str], Cells]] = defaultdict(lambda: defaultdict(dict))
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            cell = dict(getattr(report, "user_properties", ())).get(CELL)
            if cell is not None and report.when == "call":
                server, transport, version, row = cell
                found[server][transport, version][row] = SHOWN.get(outcome, "FAIL")
    terminalreporter.section("our client at the servers of others")
    for line in _table({server: found[server] for server in OFFICIAL if server in found}):
        terminalreporter.write_line(line)


def _table(found: dict[str, dict[tuple[str, str], Cells]]) -> Iterator[str]:
    yield " ".join([" " * 22, *ROWS])
    for server, columns in found.items():
        yield OFFICIAL[server].title
        for (transport, version), cells in columns.items():
            shown = (cells.get(row, "-").rjust(len(row)) for row in ROWS)
            yield " ".join([f"  {transport:<9} {version}", *shown])
