"""Every server of the bundle as it lists its tools, with and without what it may change."""

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from servers.catalog import Entry, load_catalog
from tests.postgres_server import any_database
from tests.servers.peers import inside

ROOT = Path(__file__).resolve().parents[3]

Json = dict[str, Any]


@dataclass(frozen=True)
class Offer:
    """A server, and whether it lists the tools that change something, too."""

    entry: Entry
    writing: bool

    def __str__(self) -> str:
        return f"{self.entry.name}, writing" if self.writing else self.entry.name

    def options(self, folder: Path) -> list[str]:
        """Its command line, with places in `folder`."""
        named = {"DIR": lambda: folder, "DATABASE": lambda: folder / "data.db", "URL": any_database}
        (folder / "data.db").touch()
        places = [str(named[one.metavar or ""]()) for one in self.entry.arguments if one.option is None]
        if not self.writing:
            return places
        files = [part for one in self.entry.arguments if one.name == "files" for part in ("--files", str(folder))]
        return ["--allow-write", *files, *places]

    def command(self, folder: Path) -> list[str]:
        """Its program, and the command line."""
        return [sys.executable, "-m", self.entry.module, *self.options(folder)]

    async def listed(self, folder: Path, version: str) -> Json:
        """The result of `tools/list`, which has all tools on one page."""
        app = import_module(f"{self.entry.module}.server").app
        async with inside(app, *self.options(folder), era=version) as peer:
            result: Json = (await peer.request("tools/list"))["result"]
        assert "nextCursor" not in result
        return result


OFFERS = [
    Offer(entry, writing)
    for entry in load_catalog().servers
    for writing in ([False, True] if entry.tools.write else [False])
]
