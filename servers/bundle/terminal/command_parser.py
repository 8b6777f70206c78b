"""What the commands have in common: how they are told of a catalog, and how they refuse."""

from pathlib import Path

from servers.catalog import CATALOG
from shared.program.line_parser import LineParser

from ..program_name import program_name


class CommandParser(LineParser):
    """The parser of one command."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(f"{program_name()} {name}", description=description, allow_abbrev=False)

    def add_catalog(self) -> None:
        """Takes `--catalog FILE`, for other servers than the bundle's own."""
        self.add_argument(
            "--catalog", type=Path, default=CATALOG, metavar="FILE", help="catalog of other servers to use instead"
        )

    def add_json(self) -> None:
        """Takes `--json`, for programs that read the output."""
        self.add_argument("--json", action="store_true", help="print JSON")
