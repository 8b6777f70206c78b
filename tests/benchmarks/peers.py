"""The servers that are measured, and how each is started."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.benchmarks.tree import NEEDLE
from tests.conformance import suite
from tests.conformance.suite import Unavailable

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
NPM_PACKAGE = "@modelcontextprotocol/server-filesystem"
SESSIONS = "100000"
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
    node = suite.find_node(suite._candidates())
    if _installed_version() != npm_version():
        _install(node)
    on_path = shutil.which("node")
    return node if on_path is None else Path(on_path)


def npm_version() -> str:
    """The version of the npm server that package.json asks for."""
    version: str = json.loads((FOLDER / "package.json").read_text())["dependencies"][NPM_PACKAGE]
    return version


def _installed_version() -> str | None:
    """npm writes this file last: where it is missing, an installation was broken off."""
    lock = FOLDER / "node_modules" / ".package-lock.json"
    if not lock.exists():
        return None
    version: str | None = (
        json.loads(lock.read_text())["packages"].get(f"node_modules/{NPM_PACKAGE}", {}).get("version")
    )
    return version


def _install(node: Path) -> None:
    npm = suite._npm(node)
    if npm is None:
        raise Unavailable("npm is needed to install the npm server")
    command = [str(node), str(npm), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, timeout=suite.INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm did not install its server within {suite.INSTALL_SECONDS} seconds") from None
    if done.returncode:
        raise Unavailable("npm could not install its server; run `npm ci` in tests/benchmarks to see why")


OURS = Peer(
    "ours",
    lambda folder: _module("servers.filesystem", folder),
    lambda folder, port: _module(
        "servers.filesystem", "--transport", "http", "--port", port, "--max-sessions", SESSIONS, folder
    ),
)
SDK = Peer(
    "SDK",
    lambda folder: _module("tests.benchmarks.sdk_server", folder),
    lambda folder, port: _module("tests.benchmarks.sdk_server", folder, port),
)
NPM = Peer("npm", _npm_server)
FLOOR = Peer(
    "floor",
    lambda _folder: _module("tests.benchmarks.floor_stdio"),
    lambda _folder, port: _module("tests.benchmarks.floor_http", port),
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
PEERS = (OURS, SDK, NPM, FLOOR)
