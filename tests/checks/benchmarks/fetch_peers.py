"""The fetch servers that are measured and compared, and how each is started."""

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests import npm, pypi
from tests.checks.benchmarks.peers import Peer

FOLDER = Path(__file__).resolve().parent / "fetch"
REQUIREMENTS = FOLDER / "requirements.txt"
PACKAGE = "mcp-server-fetch"
READABILITY = "@mozilla/readability"


@cache
def _official_program() -> list[str]:
    """Installs it, if need be, at its best: with what it would otherwise install with npm at the first page, or do
    without. It finds Node on the path alone. Raises Unavailable."""
    node = npm.find_node()
    npm.require(node, FOLDER, "what the official fetch server runs in Node")
    python = pypi.require(PACKAGE, REQUIREMENTS)
    [scripts] = python.parent.parent.glob("lib/python*/site-packages/readabilipy/javascript")
    with suppress(FileExistsError):
        (scripts / "node_modules").symlink_to(FOLDER / "node_modules", target_is_directory=True)
    path = os.pathsep.join((str(node.parent), os.environ.get("PATH", os.defpath)))
    return ["env", f"PATH={path}", str(python.with_name(PACKAGE))]


def official_command(*options: str) -> list[str]:
    """How the official server is started. Raises Unavailable."""
    return [*_official_program(), *options]


def ours_command(*options: str | int) -> list[str]:
    """How ours is started."""
    return [sys.executable, "-m", "servers.fetch", *map(str, options)]


def versions() -> dict[str, str]:
    """The versions that are pinned here, by package."""
    return {PACKAGE: pypi.pinned(REQUIREMENTS)[PACKAGE], READABILITY: npm.pinned(FOLDER)[READABILITY]}


# Each may reach the sites of this machine, which is all that is measured.
BUNDLE_PACKAGE = Peer("ours", lambda _folder: ours_command("--allow-private", "127.0.0.1:*"))
OURS_WIDE = Peer("ours", lambda _folder: ours_command("--allow-private", "127.0.0.1:*", "--max-per-host", 50))
TRAFILATURA = Peer("trafilatura", lambda _folder: [])
"""A library, which is called where the servers are asked."""
OFFICIAL = Peer("official", lambda _folder: official_command("--allow-private-ips"))
READERS = (BUNDLE_PACKAGE, TRAFILATURA, OFFICIAL)
"""Those that are compared by what they keep of a page."""
