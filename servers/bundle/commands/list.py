"""`python -m servers list`: the servers of a catalog."""

from collections.abc import Sequence

from shared.kit.program import exit_with_error

from ..catalog import load_catalog
from .arguments import CommandParser
from .showing import asked_for, console, json_out, table

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Shows each server; the exit code."""
    parser = CommandParser("list", "List the servers of the bundle, or of another catalog.")
    parser.add_catalog()
    parser.add_json()
    given = parser.parse_args(argv)
    try:
        catalog = load_catalog(given.catalog)
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    if given.json:
        json_out(catalog.model_dump(mode="json", exclude_defaults=True))
        return 0
    rows = [(entry.name, entry.summary, "; ".join(asked_for(entry))) for entry in catalog.servers]
    console().print(table(("Name", "What it does", "What it asks for"), rows), soft_wrap=False)
    return 0
