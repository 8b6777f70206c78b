"""At the end of the run each failure that was seen in other servers is printed, with what all of them do today."""

from collections import defaultdict
from typing import Any

import pytest

Outcomes = dict[str, dict[str, str]]

TABLES: dict[str, Outcomes] = defaultdict(lambda: defaultdict(dict))


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    """Those of the kind of servers that the module compares: by scenario, and then by server."""
    return TABLES[request.module.KIND]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints a table for each kind."""
    for kind, outcomes in TABLES.items():
        terminalreporter.section(f"failures seen in other {kind} servers")
        width = max(map(len, outcomes))
        for name, servers in outcomes.items():
            row = "  ".join(f"{server} {outcome:8}" for server, outcome in servers.items())
            terminalreporter.write_line(f"{name:{width}}  {row}")
