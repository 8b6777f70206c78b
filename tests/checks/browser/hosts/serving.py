"""The four servers over HTTP with contents: a shop, its files, its pages, and prompts."""

import sys
from pathlib import Path

from servers.bundle.demo.work import PAGES
from servers.sqlite.engine.database import make_sample
from tests.checks.interop.peers import HttpServer

__all__ = ["Served", "lay_out"]

NOTES = """\
# The bakery

Bread for **four** streets, and for whoever comes by.

- [x] order flour
- [ ] clean the oven

| Day | Loaves |
| --- | ---: |
| Monday | 120 |
| Saturday | 310 |
"""
FILES = {
    "notes.md": NOTES,
    "prices.csv": "product,cents\nloaf,450\nroll,60\ncroissant,210\n",
    "src/oven.py": 'HEAT = 230\n\n\ndef bake(minutes: int) -> str:\n    return f"{minutes} min at {HEAT} degrees"\n',
    "src/shop/door.py": "OPEN = range(6, 18)\n",
    "src/shop/till.py": "TAX = 0.07\n",
    "letters/2025/flour.txt": "Dear miller, forty sacks, please.\n",
}


class Served:
    """The servers of one run, each started when first needed, with the contents of `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, HttpServer] = {}

    def url(self, server: str, *options: str) -> str:
        """Returns the endpoint of "filesystem", "sqlite", "fetch" or "prompts", with writing allowed."""
        if server not in self._running:
            served = {
                "filesystem": ["--allow-write", str(self.folder / "bakery")],
                "sqlite": ["--allow-write", str(self.folder / "shop.db")],
                "fetch": ["--allow-private", "127.0.0.1:*"],
                "prompts": [str(own)] if (own := self.folder / "prompts").is_dir() else ["--starter"],
            }[server]
            self._running[server] = HttpServer([sys.executable, "-m", f"servers.{server}", *served, *options], None)
        return self._running[server].url

    def close(self) -> None:
        """Stops all servers. Fails if a server wrote to stderr."""
        said = "".join(server.close() for server in self._running.values())
        assert not said, said


def lay_out(folder: Path) -> None:
    """Writes the contents of the servers: `bakery`, `shop.db` and `site` in `folder`."""
    for name, text in FILES.items():
        file = folder / "bakery" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    make_sample(folder / "shop.db")
    (folder / "site").mkdir()
    for name, text in PAGES.items():
        (folder / "site" / name).write_text(text)
