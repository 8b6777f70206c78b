"""At the end of the run each failure that was seen in the npm server is printed, with what both servers do today."""

from collections import defaultdict
from typing import Any

import pytest

OUTCOMES: dict[str, dict[str, str]] = defaultdict(dict)


@pytest.fixture(scope="session")
def outcomes() -> dict[str, dict[str, str]]:
    """By scenario, and then by server."""
    return OUTCOMES


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the table."""
    if OUTCOMES:
        terminalreporter.section("failures seen in other filesystem servers")
        width = max(map(len, OUTCOMES))
        for name, servers in OUTCOMES.items():
            row = "  ".join(f"{server} {outcome:8}" for server, outcome in sorted(servers.items(), reverse=True))
            terminalreporter.write_line(f"{name:{width}}  {row}")
