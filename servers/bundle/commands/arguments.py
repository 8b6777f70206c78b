"""What the commands have in common: how they are told of a catalog, and how they refuse."""

from pathlib import Path
from typing import NoReturn

from shared.program.options import LineParser

from ..catalog import CATALOG
from ..program import program, refuse

__all__ = ["CommandParser", "refuse"]


class CommandParser(LineParser):
    """The parser of one command, which complains in one line."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(f"{program()} {name}", description=description, allow_abbrev=False)

    def add_catalog(self) -> None:
        """Takes `--catalog FILE`, for other servers than the bundle's own."""
        self.add_argument(
            "--catalog", type=Path, default=CATALOG, metavar="FILE", help="catalog of other servers to use instead"
        )

    def add_json(self) -> None:
        """Takes `--json`, for programs that read the output."""
        self.add_argument("--json", action="store_true", help="print JSON")

    def error(self, message: str) -> NoReturn:
        """Ends the program, without the usage, which would hide what is wrong."""
        refuse(self.prog, self.advised(message))
