"""Our client at servers that are not ours: each row for every transport and era that each of them speaks.

One test is one column of the matrix, a connection that goes through all rows; what became of them is printed at the
end of the run. Where a server can't be installed its tests are skipped and say why; under CI=true they fail.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.checks.interop.servers.driving import Column, drive
from tests.checks.interop.servers.official import OFFICIAL
from tests.checks.interop.servers.rows import CLOSES

pytestmark = [pytest.mark.timeout(900)]  # the first one may have to build an environment

NOT_REACHED = "the connection did not last to this row"

Record = Callable[[Column, Mapping[str, str]], None]


def columns() -> list[object]:
    every = (
        Column(name, transport, mode)
        for name, official in OFFICIAL.items()
        for transport in official.versions
        for mode in official.modes(transport)
    )
    return [pytest.param(one, id=f"{one.server}-{one.transport}-{one.mode}") for one in every]


@pytest.mark.parametrize("column", columns())
async def test_our_client_uses_every_feature(column: Column, site: str, tmp_path: Path, record: Record) -> None:
    found = await drive(column, tmp_path, site)
    outcomes = {row: found.get(row, NOT_REACHED) for row in (*column.rows, CLOSES)}
    record(column, outcomes)
    assert outcomes == dict.fromkeys(outcomes, "ok")
