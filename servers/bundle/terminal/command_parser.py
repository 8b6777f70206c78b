"""The command line parser of all commands, with the options that several of them have."""

from pathlib import Path

from servers.catalog import CATALOG
from shared.program.line_parser import LineParser

from ..program_name import program_name


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
