"""How commands show what they found: for people, and for programs."""

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
    "public": "connects to hosts of the public internet",
    "any": "connects to any host",
}


def console() -> Console:
    """Prints for people. What a pipe gets has no colours; what is no table keeps its lines, to be copied from."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


def wrap(out: Console, line: str, indent: str = "") -> str:
    """A line as a narrower terminal shows it best: in several, with no word broken. A pipe gets it whole."""
    if not out.is_terminal:
        return line
    return fill(line, out.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def print_json(value: Any) -> None:
    """Prints one JSON text, in ASCII, which every pipe takes."""
    print(json.dumps(value, indent=2))  # noqa: T201 - it is the output


def cell(text: str, style: str = "") -> Text:
    """A cell of a table, or a line."""
    return Text("\n".join(plain(line) for line in text.split("\n")), style)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table without lines; its first column is never broken."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        made.add_column(heading, no_wrap=number == 0, overflow="fold")
    for row in rows:
        made.add_row(*map(cell, row))
    return made


def list_demands(entry: Entry) -> list[str]:
    """What the server takes hold of, in plain words."""
    asked = entry.permissions
    named = [one.metavar if one.option is None else one.option for one in entry.arguments if one.name in asked.paths]
    files = f"opens no files of yours but what you name with {', '.join(filter(None, named))}" if named else ""
    writing = f"changes nothing without {asked.writing}" if asked.writing else "changes nothing"
    return [files or "opens no files of yours", _NETWORK[asked.network], writing]
