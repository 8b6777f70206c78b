"""The command line parser of all commands, with the options that several of them have."""

import os
import re
from pathlib import Path

from servers.catalog import CATALOG
from shared.program.line_parser import LineParser

from ..program_name import program_name

VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")


class CommandParser(LineParser):
    """The parser of one command."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(f"{program_name()} {name}", description=description, allow_abbrev=False)

    def add_catalog(self) -> None:
        """Add `--catalog FILE`, for servers other than the bundle's own."""
        self.add_argument(
            "--catalog", type=Path, default=CATALOG, metavar="FILE", help="catalog to use instead of the bundle's"
        )

    def add_json(self) -> None:
        """Add `--json`, for programs that read the output."""
        self.add_argument("--json", action="store_true", help="print JSON")


def read_variable(text: str) -> tuple[str, str]:
    """Return the name and the value in `text`, the value of an option `--env`: `NAME=VALUE`, or `NAME` for the
    current value of that variable. Raises ValueError with a message for the user."""
    name, equals, value = text.partition("=")
    if not VARIABLE_NAME.fullmatch(name) or (not equals and name not in os.environ):
        raise ValueError("--env takes NAME=VALUE, or the NAME of a variable that is set here")
    return name, value if equals else os.environ[name]
