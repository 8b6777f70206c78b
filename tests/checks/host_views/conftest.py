"""At the end of the run it is printed in which form, and in how many bytes, each host gave results to its model."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.npm import Unavailable
from tests.records import recorded

RECEIVED = "received by a model"


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[str, str, int, str], None]:
    """Takes a host, a call, and the bytes and the form in which its result came."""

    def one(host: str, call: str, size: int, form: str) -> None:
        request.node.user_properties.append((RECEIVED, (host, call, size, form)))

    return one


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Any:
    """Skips what needs a host that can't be installed; in CI that fails."""
    try:
        return (yield)
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(str(reason))
        pytest.skip(str(reason))


def print_tables(terminalreporter: Any) -> None:
    """Prints a line for each host and call."""
    terminalreporter.section("what models receive")
    for host, call, size, form in dict.fromkeys(map(tuple, recorded(terminalreporter, RECEIVED))):
        terminalreporter.write_line(f"{host:12} {call:40} {size:8,} bytes  {form}")
