"""The clients that log in, and the servers that they log in to: what each is, how it is run, and what it can't do."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from tests import npm, pypi
from tests.checks.benchmarks import prompts_peers
from tests.checks.interop.authorization.authority import FOLDER
from tests.checks.interop.others.environments import FOLDER as OTHERS

FASTMCP = OTHERS / "requirements-fastmcp.txt"
NO_PROOFS = {"is bound": "has no DPoP"}
_ONE_SCOPE = "asks for the same scope whatever is called"


@dataclass(frozen=True)
class Client:
    """One that is driven. `command` raises Unavailable."""

    title: str
    command: Callable[[], list[str]]
    lacks: Mapping[str, str] = field(default_factory=dict)
    """The rows that it can't go through, and why."""


@dataclass(frozen=True)
class Server:
    """A protected one. `command` is given a port, the issuer and the folder that is served; raises Unavailable."""

    title: str
    command: Callable[[int, str, Path], list[str]]
    lacks: Mapping[str, str] = field(default_factory=dict)
    introspects: bool = False
    """Whether it asks the issuer about tokens, which are no JWTs then."""


def _node() -> str:
    node = npm.find_node()
    npm.require(node, FOLDER, "the official TypeScript SDK")
    return str(node)


def _served_by(program: Callable[[], str], script: str) -> Callable[[int, str, Path], list[str]]:
    return lambda port, issuer, _folder: [program(), str(FOLDER / script), str(port), issuer]


CLIENTS = {
    "ours": Client("our client", lambda: [sys.executable, str(FOLDER / "drive_ours.py")]),
    "sdk2": Client(
        f"official Python SDK {version('mcp')}", lambda: [sys.executable, str(FOLDER / "drive_sdk2.py")], NO_PROOFS
    ),
    "typescript": Client(
        f"official TypeScript client {npm.pinned(FOLDER)['@modelcontextprotocol/client']}",
        lambda: [_node(), str(FOLDER / "drive_typescript.mjs")],
    ),
    "fastmcp": Client(
        f"FastMCP's client {pypi.pinned(FASTMCP)['fastmcp-slim']}",
        lambda: [str(pypi.require("fastmcp", FASTMCP)), str(FOLDER / "drive_fastmcp.py")],
        NO_PROOFS,
    ),
}

_ALL_OR_NOTHING = {**NO_PROOFS, "steps up": _ONE_SCOPE, "too narrow": _ONE_SCOPE}


def _ours(port: int, issuer: str, folder: Path) -> list[str]:
    server = [sys.executable, "-m", "servers.filesystem", str(folder), "--transport", "http", "--port", str(port)]
    return [*server, "--allow-write", "--auth-issuer", issuer]


def _ours_asking(port: int, issuer: str, folder: Path) -> list[str]:
    return [*_ours(port, issuer, folder), "--auth-client-id", "resource-server"]


SERVERS = {
    "ours": Server("our filesystem server", _ours),
    "ours-asks": Server("our filesystem server, which introspects", _ours_asking, introspects=True),
    "sdk2": Server(
        f"official Python SDK {version('mcp')}", _served_by(lambda: sys.executable, "serve_sdk2.py"), _ALL_OR_NOTHING
    ),
    "typescript": Server(
        f"official TypeScript SDK {npm.pinned(FOLDER)['@modelcontextprotocol/server']}",
        _served_by(_node, "serve_typescript.mjs"),
        NO_PROOFS,
    ),
    "fastmcp": Server(
        f"FastMCP {prompts_peers.versions()['fastmcp-slim']}",
        _served_by(lambda: str(pypi.require("fastmcp-server", prompts_peers.REQUIREMENTS)), "serve_fastmcp.py"),
        _ALL_OR_NOTHING,
    ),
}
