"""The other peers and the environments they run in, each built when it is first needed.

A Python peer gets a virtual environment of its own from a pinned list of requirements, the TypeScript ones what
package-lock.json names. What is built stays, in folders that git ignores, until what is pinned changes.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests import npm, pypi
from tests.checks.interop.peers import STATELESS

FOLDER = Path(__file__).resolve().parent
OLDER = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Modes of a client that begins with `initialize` and takes no other version."""


@dataclass(frozen=True)
class Peer:
    """A client that is not ours: what it is, the modes it knows, how its driver is run, and over what it connects."""

    title: str
    modes: tuple[str, ...]
    command: Callable[[], list[str]]
    transports: tuple[str, ...] = ("stdio", "http+token")


def python_peer(name: str) -> Callable[[], list[str]]:
    """How the driver of a Python peer is run. What it gives builds the environment; raises Unavailable."""

    def command() -> list[str]:
        python = pypi.require(name, FOLDER / f"requirements-{name}.txt")
        return [str(python), str(FOLDER / f"drive_{name}.py")]

    return command


def typescript_peer(name: str) -> Callable[[], list[str]]:
    """How the driver of the TypeScript peers is run. What it gives installs them; raises Unavailable."""

    def command() -> list[str]:
        node = npm.find_node()
        npm.require(node, FOLDER, "the TypeScript clients")
        return [str(node), str(FOLDER / "drive_typescript.mjs"), name]

    return command


_OF_SDK_1 = ("stdio", "http+token", "sse+token", "websocket")

PEERS = {
    # Its `mode` picks the era, "auto" unless told otherwise. What is asked of it alone is in the folder above.
    "sdk2": Peer(
        f"official Python SDK {version('mcp')}",
        ("auto", "legacy", STATELESS),
        lambda: [sys.executable, str(FOLDER / "drive_sdk2.py")],
        ("stdio", "http", "http+token"),
    ),
    # Knows the handshake alone: LATEST_PROTOCOL_VERSION in its mcp/types.py is 2025-11-25.
    "sdk1": Peer(
        f"official Python SDK {pypi.pinned(FOLDER / 'requirements-sdk1.txt')['mcp']}",
        ("legacy",),
        python_peer("sdk1"),
        _OF_SDK_1,
    ),
    # Likewise: LATEST_PROTOCOL_VERSION in its dist/esm/types.js. The 2.x has another name on npm.
    "ts1": Peer(
        f"official TypeScript SDK {npm.pinned(FOLDER)['@modelcontextprotocol/sdk']}",
        ("legacy",),
        typescript_peer("ts1"),
        _OF_SDK_1,
    ),
    # Its `versionNegotiation.mode` picks the era: "legacy" unless told otherwise; "auto" asks by `server/discover`.
    # Its `supportedProtocolVersions` picks the version of the handshake.
    "ts2": Peer(
        f"official TypeScript client {npm.pinned(FOLDER)['@modelcontextprotocol/client']}",
        ("auto", "legacy", STATELESS, *OLDER),
        typescript_peer("ts2"),
        ("stdio", "http+token", "sse+token"),
    ),
    # Its `mode` picks the era, "auto" unless told otherwise. fastmcp-slim[client] is FastMCP without its server.
    "fastmcp": Peer(
        f"FastMCP's client {pypi.pinned(FOLDER / 'requirements-fastmcp.txt')['fastmcp-slim']}",
        ("auto", "legacy", STATELESS),
        python_peer("fastmcp"),
    ),
}
