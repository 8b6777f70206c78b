"""The matrix as text: a line for each column, and a mark for each row."""

from collections.abc import Iterator, Mapping

from tests.checks.interop.gateway.columns import NAMES, Column
from tests.checks.interop.gateway.rows import EXCLUDED

Found = Mapping[Column, Mapping[str, str]]
"""What became of the rows of each column."""


def table(found: Found) -> Iterator[str]:
    """Its lines: "ok"; "FAIL"; "-" where the connection did not last to the row; "no" where the version has no
    message for it, and that was said."""
    yield " ".join([f"{'way':<15} {'client':<11}{'server':<6}", *NAMES])
    for column, outcomes in found.items():
        marks = (_mark(column, name, outcomes).rjust(len(name)) for name in NAMES)
        yield " ".join([f"{column.way:<15} {column.version:<11}{column.age:<6}", *marks])


def _mark(column: Column, name: str, outcomes: Mapping[str, str]) -> str:
    outcome = outcomes.get(name, "-")
    if outcome == "ok":
        return "no" if (column.version, name) in EXCLUDED else "ok"
    return outcome if outcome == "-" else "FAIL"
