"""One column of the matrix: a way, the version that the client speaks, and the age of the server behind it.

A column is one connection, which goes through all rows, each within a limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shared.client.connect import connect
from shared.errors import McpError
from tests.checks.interop.gateway.rows import EXCLUDED, ROWS, WITHOUT, opens, options
from tests.checks.interop.gateway.ways import WAYS
from tests.checks.interop.servers.rows import Ears, Row, Talk, outcome

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
AGES = ("old", "new")
OPENS, BROKEN = "opens", "broken off"
NAMES = (OPENS, *ROWS)


@dataclass(frozen=True)
class Column:
    """One column."""

    way: str
    version: str
    age: str

    @property
    def rows(self) -> dict[str, Row]:
        """Its rows in their order; those that have no message there hold that this is said."""
        refused = {row: WITHOUT[row] for version, row in EXCLUDED if version == self.version}
        return {OPENS: opens(self.version), **ROWS, **refused}

    @property
    def spoken(self) -> bool:
        """Whether there is such a column: a server that shakes hands has nothing to say to a client that does not,
        unless something stands between."""
        return (self.way, self.age, self.version) not in {(way, "old", VERSIONS[-1]) for way in ("stdio", "http")}


def columns(ways: Iterable[str] = WAYS) -> list[Column]:
    """Every column of these ways."""
    every = (Column(way, version, age) for way in ways for version in VERSIONS for age in AGES)
    return [column for column in every if column.spoken]


async def drive(column: Column, folder: Path, seconds: float) -> dict[str, str]:
    """What becomes of each row of a column, none of which may take longer than `seconds`."""
    found: dict[str, str] = {}
    ears = Ears()
    try:
        async with (
            WAYS[column.way](column.age, folder) as target,
            connect(target, options(column.version, ears)) as client,
        ):
            talk = Talk(client, ears, str(folder), "")
            for name, row in column.rows.items():
                found[name] = await outcome(row, talk, seconds)
    except (OSError, McpError, AssertionError) as error:
        found[BROKEN] = f"{type(error).__name__}: {error}"
    return found
