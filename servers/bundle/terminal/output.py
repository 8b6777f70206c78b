"""The output of commands: tables and lines for people, JSON for programs."""

import json
from collections.abc import Iterable
from textwrap import fill
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servers.catalog import Entry
from shared.text import plain

_NETWORK = {
    "none": "connects to no other host",
    "public": "connects to hosts on the public internet",
    "named": "connects only to the hosts you name",
    "any": "connects to any host",
}


def console() -> Console:
    """Return a console for output to people. It has no colors if stdout is not a terminal. Text outside tables is not
    wrapped, so that it can be copied."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


def wrap(out: Console, line: str, indent: str = "") -> str:
    """Return `line` wrapped at the width of the terminal, without breaking words; unchanged without a terminal."""
    if not out.is_terminal:
        return line
    return fill(line, out.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def print_json(value: Any) -> None:
    """Print `value` as JSON, in ASCII, since stdout may have any encoding."""
    print(json.dumps(value, indent=2))  # noqa: T201 - it is the output


def cell(text: str, style: str = "") -> Text:
    """Return `text` for a cell of a table, or as a line, without control characters."""
    return Text("\n".join(plain(line) for line in text.split("\n")), style)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table without borders, whose first column is never wrapped."""
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        grid.add_column(heading, no_wrap=number == 0, overflow="fold")
    for row in rows:
        grid.add_row(*map(cell, row))
    return grid


def list_demands(entry: Entry) -> list[str]:
    """Return what the server needs access to, in words for the user."""
    permissions = entry.permissions
    named = [
        argument.metavar if argument.option is None else argument.option
        for argument in entry.arguments
        if argument.name in permissions.paths
    ]
    options = ", ".join(filter(None, named))
    files = f"opens none of your files except those you name with {options}" if named else ""
    writing = f"changes nothing without {permissions.writing}" if permissions.writing else "changes nothing"
    return [files or "opens none of your files", _NETWORK[permissions.network], writing]
