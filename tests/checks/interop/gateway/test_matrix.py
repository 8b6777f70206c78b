"""Everything passes: each row, for every version of the client, by every way, to an old and a new server.

One test is one column. With `--peers` FastMCP's proxy goes through the same rows, and is printed beside ours.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from tests.checks.interop.gateway.columns import NAMES, Column, columns, drive
from tests.checks.interop.gateway.ways import BUNDLE_PACKAGE, DIRECT, OTHERS
from tests.npm import Unavailable

pytestmark = [pytest.mark.timeout(600)]

ROW_SECONDS = 60.0
SHORT_SECONDS = 2.0
"""How long a row may take that nothing is asserted of."""

Record = Callable[[Column, Mapping[str, str]], None]


def each(column: Column) -> object:
    return pytest.param(column, id=f"{column.way}-{column.version}-{column.age}".replace(" ", ""))


@pytest.mark.parametrize("column", [each(column) for column in columns([*DIRECT, *BUNDLE_PACKAGE])])
async def test_every_feature_passes_the_gateway(column: Column, record: Record, tmp_path: Path) -> None:
    found = await drive(column, tmp_path, ROW_SECONDS)
    record(column, found)
    assert found == dict.fromkeys(NAMES, "ok")


async def test_the_proxy_of_others_goes_through_the_same_rows(
    record: Record, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A row of which nothing comes takes all of its time, so they are gone through at once."""
    if not pytestconfig.getoption("peers"):
        pytest.skip("runs with --peers")
    found: dict[Column, dict[str, str]] = {}

    async def run(column: Column, folder: Path) -> None:
        folder.mkdir()
        found[column] = await drive(column, folder, SHORT_SECONDS)

    try:
        async with anyio.create_task_group() as tasks:
            for number, column in enumerate(columns(OTHERS)):
                tasks.start_soon(run, column, tmp_path / str(number))
    except* Unavailable as group:
        pytest.skip(str(group.exceptions[0]))
    for column, outcomes in found.items():
        record(column, outcomes)
    assert all(outcomes for outcomes in found.values())
