"""The official conformance suite, as pinned in package.json, and the Node that runs it."""

from dataclasses import dataclass
from pathlib import Path

from tests import npm

FOLDER = Path(__file__).resolve().parent
PACKAGE = "@modelcontextprotocol/conformance"


@dataclass(frozen=True)
class Suite:
    """The installed suite."""

    node: Path
    script: Path

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs the suite."""
        return [str(self.node), str(self.script), *arguments]


def pinned_version() -> str:
    """The version of the suite that package.json asks for."""
    return npm.pinned(FOLDER)[PACKAGE]


def find_suite() -> Suite:
    """The suite, installed if need be. Raises npm.Unavailable."""
    node = npm.find_node()
    npm.require(node, FOLDER, "the conformance suite")
    return Suite(node, FOLDER / "node_modules" / PACKAGE / "dist" / "index.js")
