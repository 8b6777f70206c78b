"""Tries each failure that was seen in other servers on ours, and with `--peers` on theirs as well. Prints the
outcomes.

Others are installed in fixed versions, so that what they do changes only where these do. Half of their calls hang
until the test gives them up.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.records import recorded

COMPARED = "compared"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test each server of its module, the first of which is ours."""
    if "server" in metafunc.fixturenames:
        servers = metafunc.module.SERVERS
        metafunc.parametrize("server", servers if metafunc.config.getoption("peers") else servers[:1])


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Callable[[str, str, Awaitable[bool]], Awaitable[None]]:
    """Takes a scenario, a server and whether that passes, for the table of the module's kind of servers. Ours has
    to."""

    async def one(scenario: str, server: str, passing: Awaitable[bool]) -> None:
        try:
            outcome = "passes" if await passing else "fails"
        except TimeoutError:
            outcome = "hangs"
        except (EOFError, anyio.BrokenResourceError):
            outcome = "ends"
        request.node.user_properties.append((COMPARED, (request.module.KIND, scenario, server, outcome)))
        assert outcome == "passes" or server != "ours"

    return one


def print_tables(terminalreporter: Any) -> None:
    """Prints a table for each kind."""
    tables: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for kind, scenario, server, outcome in recorded(terminalreporter, COMPARED):
        tables[kind][scenario][server] = outcome
    for kind, outcomes in tables.items():
        terminalreporter.section(f"failures seen in other {kind} servers")
        width = max(map(len, outcomes))
        for name, servers in outcomes.items():
            row = "  ".join(f"{server} {outcome:8}" for server, outcome in servers.items())
            terminalreporter.write_line(f"{name:{width}}  {row}")
