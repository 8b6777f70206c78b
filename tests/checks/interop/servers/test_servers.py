"""Our client at servers that are not ours: each row for every transport and era that each of them speaks.

One column of the matrix is one connection, which goes through all rows; what became of them is printed at the end of
the run. Where a server can't be installed its tests are skipped and say why; under CI=true they fail.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.checks.interop.servers.driving import Column, drive
from tests.checks.interop.servers.official import OFFICIAL
from tests.checks.interop.servers.rows import CLOSES
from tests.npm import Unavailable

pytestmark = [pytest.mark.timeout(900)]  # the first one may have to build an environment

NOT_REACHED = "the connection did not last to this row"

Driven = Callable[[Column], dict[str, str]]


def cells() -> Iterator[object]:
    for name, official in OFFICIAL.items():
        for transport in official.versions:
            for mode in official.modes(transport):
                column = Column(name, transport, mode)
                for row in (*column.rows, CLOSES):
                    yield pytest.param(column, row, id=f"{name}-{transport}-{mode}-{row}")


@pytest.fixture(scope="module")
def driven(site: str, tmp_path_factory: pytest.TempPathFactory) -> Driven:
    """What became of the rows of a column, each of which is gone through once."""

    @cache
    def run(column: Column) -> dict[str, str] | Unavailable:
        try:
            return asyncio.run(drive(column, tmp_path_factory.mktemp("given"), site))
        except Unavailable as reason:
            return reason

    def found(column: Column) -> dict[str, str]:
        outcomes = run(column)
        if isinstance(outcomes, Unavailable):
            if os.environ.get("CI") == "true":
                pytest.fail(str(outcomes))
            pytest.skip(str(outcomes))
        return outcomes

    return found


@pytest.mark.parametrize(("column", "row"), list(cells()))
def test_row(driven: Driven, column: Column, row: str) -> None:
    outcome = driven(column).get(row, NOT_REACHED)
    assert outcome == "ok", outcome
