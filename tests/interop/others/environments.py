"""The other peers and the environments they run in, each built when it is first needed.

A Python peer gets a virtual environment of its own from a pinned list of requirements, the TypeScript ones what
package-lock.json names. What is built stays, in folders that git ignores, until what is pinned changes.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import npm
from tests.interop.peers import ROOT, STATELESS
from tests.npm import Unavailable

FOLDER = Path(__file__).resolve().parent
OLDER = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Modes of a client that begins with `initialize` and takes no other version."""

INSTALL_SECONDS = 300


@dataclass(frozen=True)
class Peer:
    """A client that is not ours: what it is, the modes it knows, and how its driver is run."""

    title: str
    modes: tuple[str, ...]
    command: Callable[[], list[str]]


def python_peer(name: str) -> Callable[[], list[str]]:
    """How the driver of a Python peer is run. What it gives builds the environment; raises Unavailable."""

    def command() -> list[str]:
        folder = ROOT / f".venv-{name}"
        pinned = FOLDER / f"requirements-{name}.txt"
        built = folder / "requirements.txt"  # written last: where it is missing, building was broken off
        python = folder / "bin" / "python"
        if not built.exists() or built.read_text() != pinned.read_text():
            _run([sys.executable, "-m", "venv", "--clear", str(folder)], f"an environment for {name}")
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, "-r", str(pinned)], f"the packages of {pinned.name}")
            shutil.copyfile(pinned, built)
        return [str(python), str(FOLDER / f"drive_{name}.py")]

    return command


def typescript_peer(name: str) -> Callable[[], list[str]]:
    """How the driver of the TypeScript peers is run. What it gives installs them; raises Unavailable."""

    def command() -> list[str]:
        node = npm.find_node()
        npm.require(node, FOLDER, "the TypeScript clients")
        return [str(node), str(FOLDER / "drive_typescript.mjs"), name]

    return command


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: not installed within {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        errors = (line for line in done.stderr.splitlines() if line.startswith("ERROR"))
        raise Unavailable(f"{what} could not be installed: {next(errors, f'exit code {done.returncode}')[:300]}")


def _version(pinned: str, package: str) -> str:
    """The version of `package` that a file of pinned versions names."""
    text = (FOLDER / pinned).read_text()
    if pinned.endswith(".json"):
        return json.loads(text)["dependencies"][package]
    return dict(line.split("==") for line in text.splitlines())[package]


PEERS = {
    # Knows the handshake alone: LATEST_PROTOCOL_VERSION in its mcp/types.py is 2025-11-25.
    "sdk1": Peer(
        f"official Python SDK {_version('requirements-sdk1.txt', 'mcp')}",
        ("legacy",),
        python_peer("sdk1"),
    ),
    # Likewise: LATEST_PROTOCOL_VERSION in its dist/esm/types.js. The 2.x has another name on npm.
    "ts1": Peer(
        f"official TypeScript SDK {_version('package.json', '@modelcontextprotocol/sdk')}",
        ("legacy",),
        typescript_peer("ts1"),
    ),
    # Its `versionNegotiation.mode` picks the era: "legacy" unless told otherwise; "auto" asks by `server/discover`.
    # Its `supportedProtocolVersions` picks the version of the handshake.
    "ts2": Peer(
        f"official TypeScript client {_version('package.json', '@modelcontextprotocol/client')}",
        ("auto", "legacy", STATELESS, *OLDER),
        typescript_peer("ts2"),
    ),
    # Its `mode` picks the era, "auto" unless told otherwise. fastmcp-slim[client] is FastMCP without its server.
    "fastmcp": Peer(
        f"FastMCP's client {_version('requirements-fastmcp.txt', 'fastmcp-slim')}",
        ("auto", "legacy", STATELESS),
        python_peer("fastmcp"),
    ),
}
