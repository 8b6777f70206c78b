"""The servers that are measured, and how each is started."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests import npm, pypi
from tests.checks.benchmarks.tree import NEEDLE
from tests.npm import Unavailable

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
PUBLIC = FOLDER / "public"
NPM_PACKAGE = "@modelcontextprotocol/server-filesystem"
SESSIONS = "100000"
UNLIMITED = ["--max-sessions", SESSIONS, "--max-client-sessions", SESSIONS]
UNLIMITED += ["--max-rate", "1000000", "--max-burst", "1000000", "--max-client-calls", SESSIONS]
"""One client does what a thousand do elsewhere."""
"""More than a load opens: what is measured is not how a server refuses."""


@dataclass(frozen=True)
class Peer:
    """One server: its name in the table, and its commands. What gives a command raises Unavailable."""

    name: str
    stdio: Callable[[Path], list[str]]
    http: Callable[[Path, int], list[str]] | None = None


def _module(name: str, *arguments: str | Path | int) -> list[str]:
    return [sys.executable, "-m", name, *map(str, arguments)]


def _npm_server(folder: Path) -> list[str]:
    node = find_node()
    return [str(node), str(FOLDER / "node_modules" / NPM_PACKAGE / "dist" / "index.js"), str(folder)]


def find_rg() -> str:
    """Where ripgrep is. Raises Unavailable."""
    program = shutil.which("rg")
    if program is None:
        raise Unavailable("ripgrep is not installed (Debian and Ubuntu: apt install ripgrep)")
    return program


@cache
def find_node() -> Path:
    """The Node that runs the npm server, which is installed if need be: the one on the path, which a host would
    start, else the one that comes with the tests. Raises Unavailable."""
    node = npm.find_node()
    npm.require(node, FOLDER, "the npm server")
    on_path = shutil.which("node")
    return node if on_path is None else Path(on_path)


@cache
def go_program() -> str:
    """The program on mcp-go, built with the Go on the path, else with that of PyPI. Raises Unavailable."""
    go = shutil.which("go") or str(pypi.require("go", PUBLIC / "requirements.txt").with_name("go"))
    program = ROOT / "build" / "public-go"
    build = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=PUBLIC, capture_output=True, text=True, timeout=600, check=False
    )
    if build.returncode:
        raise Unavailable(f"the program in Go could not be built: {build.stderr.strip().splitlines()[-1]:.300}")
    return str(program)


def npm_version() -> str:
    """The version of the npm server that package.json asks for."""
    return npm.pinned(FOLDER)[NPM_PACKAGE]


BUNDLE_PACKAGE = Peer(
    "ours",
    lambda folder: _module("servers.filesystem", folder),
    lambda folder, port: _module("servers.filesystem", "--transport", "http", "--port", port, *UNLIMITED, folder),
)
SDK = Peer(
    "SDK",
    lambda folder: _module("tests.checks.benchmarks.sdk_server", folder),
    lambda folder, port: _module("tests.checks.benchmarks.sdk_server", folder, port),
)
NPM = Peer("npm", _npm_server)
GO = Peer("Go", lambda _folder: [go_program()])
FLOOR = Peer(
    "floor",
    lambda _folder: _module("tests.checks.benchmarks.floor_stdio"),
    lambda _folder, port: _module("tests.checks.benchmarks.floor_http", port),
)
# With limits as wide as those of the npm server, which has none.
OURS_WIDE = Peer(
    "ours",
    lambda folder: _module(
        "servers.filesystem",
        *("--allow-write", "--max-read", 900_000, "--max-entries", 100_000, "--max-result", 20_000_000),
        folder,
    ),
)
RG = Peer("rg", lambda folder: [find_rg(), "--line-number", NEEDLE, str(folder)])
OURS_SHARED = Peer(
    "ours",
    lambda folder: _module("servers.filesystem", "--allow-write", folder),
    lambda folder, port: _module(
        "servers.filesystem", "--allow-write", "--transport", "http", "--port", port, *UNLIMITED, folder
    ),
)
OURS_SIMPLE = Peer(
    "ours",
    lambda _folder: _module("servers.everything"),
    lambda _folder, port: _module("servers.everything", "--transport", "http", "--port", port, *UNLIMITED),
)

PEERS = (BUNDLE_PACKAGE, SDK, NPM, FLOOR)
