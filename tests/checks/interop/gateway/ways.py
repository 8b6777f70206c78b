"""The ways from a client to the server of the matrix: what a client is given to connect to, a URL or a command.

Each is made of the programs that users start: nothing in between is of the tests, but for the server.
"""

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import httpx

from tests.checks.benchmarks import prompts_peers
from tests.pypi import require
from tests.wire import serving, start_http

BUNDLE = [sys.executable, "-m", "servers"]
READY_SECONDS = 60
ANYWHERE = ["--host", "127.0.0.1", "--port", "0"]

Target = str | list[str]
Way = Callable[[str, Path], AbstractAsyncContextManager[Target]]
"""Opens the way to a server that is "old" or "new", whose directory is given, until the end of the block."""


def upstream(age: str, folder: Path) -> list[str]:
    """The command of the server: an "old" one knows the handshake alone."""
    return aged(age, [sys.executable, "-m", "tests.checks.interop.gateway.upstream", str(folder)])


def aged(age: str, command: list[str]) -> list[str]:
    """The command of a server of ours that is "old" or "new": PYTHON, -m, MODULE, and its arguments."""
    return [*command[:2], "tests.checks.interop.gateway.old", *command[2:]] if age == "old" else command


@asynccontextmanager
async def _stdio(age: str, folder: Path) -> AsyncIterator[Target]:
    yield upstream(age, folder)


@asynccontextmanager
async def _http(age: str, folder: Path) -> AsyncIterator[Target]:
    async with start_http(upstream(age, folder)) as base:
        yield f"{base}/mcp"


@asynccontextmanager
async def _connect(age: str, folder: Path) -> AsyncIterator[Target]:
    async with start_http(upstream(age, folder)) as base:
        yield [*BUNDLE, "connect", f"{base}/mcp"]


def _expose(*options: str) -> Way:
    @asynccontextmanager
    async def way(age: str, folder: Path) -> AsyncIterator[Target]:
        async with serving([*BUNDLE, "expose", *ANYWHERE, *options, "--", *upstream(age, folder)]) as base:
            yield f"{base}/mcp"

    return way


@asynccontextmanager
async def _joined_http(age: str, folder: Path) -> AsyncIterator[Target]:
    file = _configuration(folder, {"command": upstream(age, folder)})
    async with serving([*BUNDLE, "serve", *ANYWHERE, "--join", "--config", str(file)]) as base:
        await ready(base)
        yield f"{base}/mcp"


@asynccontextmanager
async def _joined_stdio(age: str, folder: Path) -> AsyncIterator[Target]:
    async with start_http(upstream(age, folder)) as base:
        file = _configuration(folder, {"url": f"{base}/mcp"})
        yield [*BUNDLE, "run", "--join", "--config", str(file)]


@asynccontextmanager
async def _fastmcp(age: str, folder: Path) -> AsyncIterator[Target]:
    python = require("fastmcp-server", prompts_peers.REQUIREMENTS)
    program = Path(__file__).with_name("proxy_fastmcp.py")
    async with start_http(upstream(age, folder)) as base:
        yield [str(python), str(program), f"{base}/mcp"]


async def ready(base: str) -> None:
    """Waits until every server behind `base` was opened: not every client comes again where it is told to."""
    async with httpx.AsyncClient(trust_env=False, timeout=READY_SECONDS) as http:
        with anyio.fail_after(READY_SECONDS):
            while (await http.get(f"{base}/readyz")).status_code != httpx.codes.OK:
                await anyio.sleep(0.05)


def _configuration(folder: Path, server: dict[str, object]) -> Path:
    """The file of a bundle that has this server of others beside one of its own."""
    library = folder / "library"
    library.mkdir()
    file = folder / "bundle.yaml"
    servers = {"upstream": server, "prompts": {"libraries": [str(library)]}}
    file.write_text(json.dumps({"servers": servers}))  # which is YAML as well
    return file


DIRECT: dict[str, Way] = {"stdio": _stdio, "http": _http}
"""Without anything in between: here every row has to pass, or it asks for what is not so."""

BUNDLE_PACKAGE: dict[str, Way] = {
    "connect": _connect,
    "expose": _expose(),
    "expose --shared": _expose("--shared"),
    "serve --join": _joined_http,
    "run --join": _joined_stdio,
}

OTHERS: dict[str, Way] = {"FastMCP": _fastmcp}
"""Printed beside ours, and asserted nothing of."""

WAYS = {**DIRECT, **BUNDLE_PACKAGE, **OTHERS}
