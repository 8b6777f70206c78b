"""`python -m servers list`: the servers of a catalog."""

from collections.abc import Sequence

from ..catalog import load_catalog
from .arguments import CommandParser, refuse

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Prints a line for each server; the exit code."""
    parser = CommandParser("list", "List the servers of the bundle, or of another catalog.")
    parser.add_catalog()
    try:
        catalog = load_catalog(parser.parse_args(argv).catalog)
    except ValueError as error:
        refuse(parser.prog, str(error))
    for entry in catalog.servers:
        print(f"{entry.name:12} python -m {entry.module:20} {entry.summary}")  # noqa: T201 - it is the output
    return 0
