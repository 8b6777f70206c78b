"""The prompt servers that are measured, and how each is started."""

import sys
from functools import cache
from pathlib import Path

from tests import pypi
from tests.checks.benchmarks.peers import FOLDER, Peer
from tests.checks.benchmarks.prompts_library import LIBRARY

# What `fastmcp-slim[server]` asks for, one by one: certifi, which has no part in stdio, is older than that wants.
REQUIREMENTS = FOLDER / "prompts" / "requirements.txt"
PACKAGE = "fastmcp-slim"


@cache
def _fastmcp_program() -> list[str]:
    """Builds its environment, if need be. Raises Unavailable."""
    return [str(pypi.require("fastmcp-server", REQUIREMENTS)), str(FOLDER / "fastmcp_server.py")]


def ours_command(folder: Path) -> list[str]:
    """How ours is started."""
    return [sys.executable, "-m", "servers.prompts", str(folder / LIBRARY)]


def versions() -> dict[str, str]:
    """The versions that are pinned here, by package."""
    return {PACKAGE: pypi.pinned(REQUIREMENTS)[PACKAGE]}


BUNDLE_PACKAGE = Peer("ours", ours_command)
FASTMCP = Peer("FastMCP", lambda _folder: _fastmcp_program())
