"""Our servers as processes, and the official client connected to them.

`Connect` opens the client of one case of the matrix: a transport and a mode. `HttpServers` keeps one process per
server and token for the whole run. Every wait is bounded, and every process is waited for at the end.
"""

import asyncio
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.postgres_server import any_database

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
TOKEN = "a-token-for-tests"
DATABASE = "chinook.db"
"""The sample database, in the served directory."""
URL = "postgres.url"
"""A file in it, with the URL of a PostgreSQL database."""
LIBRARY = "library"
"""A directory of prompts in it."""
NEWEST_HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"

TRANSPORTS = ("stdio", "http", "http+token", "sse+token", "websocket")
MODES = ("auto", "legacy", STATELESS)

T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """One cell of the matrix."""

    transport: str
    mode: str
    folder: Path
    http: "HttpServers"

    @property
    def handshake(self) -> bool:
        """Whether this mode begins with `initialize`."""
        return self.mode == "legacy"

    @property
    def version(self) -> str:
        """The version that client and server settle on."""
        return NEWEST_HANDSHAKE if self.handshake else STATELESS

    @property
    def token(self) -> str | None:
        """What the HTTP server asks for."""
        return TOKEN if self.transport == "http+token" else None

    @asynccontextmanager
    async def connect(self, server: str, **options: Any) -> AsyncIterator[Client]:
        """The official client at a server that `command` knows; `options` are those of its constructor."""
        url = None if self.transport == "stdio" else self.http.url(server, self.token)
        async with self._connected(server, url, options) as client:
            yield client

    @asynccontextmanager
    async def connect_alone(self, server: str, **options: Any) -> AsyncIterator[Client]:
        """Like `connect`, to a server of this test's own, which the test may end."""
        with ExitStack() as stack:
            url = None
            if self.transport != "stdio":
                process = HttpServer(command(server, self.folder), self.token)
                stack.callback(process.close)
                url = process.url
            async with self._connected(server, url, options) as client:
                yield client

    @asynccontextmanager
    async def _connected(self, server: str, url: str | None, options: dict[str, Any]) -> AsyncIterator[Client]:
        opening = over_stdio(command(server, self.folder)) if url is None else over_http(url, self.token)
        with anyio.fail_after(PATIENCE):
            async with (
                opening as transport,
                Client(transport, mode=self.mode, read_timeout_seconds=PATIENCE, **options) as client,
            ):
                yield client


@asynccontextmanager
async def over_stdio(arguments: list[str]) -> AsyncIterator[Any]:
    """The client's transport to a new process, which must have nothing to complain of."""
    parameters = StdioServerParameters(command=arguments[0], args=arguments[1:], cwd=ROOT)
    with tempfile.TemporaryFile("w+") as stderr:
        try:
            yield stdio_client(parameters, errlog=stderr)
        except BaseException as error:
            error.add_note(f"the server said: {_said(stderr) or 'nothing'}")
            raise
        said = _said(stderr)
        assert not said, said


def _said(stderr: TextIO) -> str:
    stderr.seek(0)
    return stderr.read()[-4000:]


@asynccontextmanager
async def over_http(url: str, token: str | None) -> AsyncIterator[Any]:
    """The client's transport to `url`, with the token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE) as http:
        yield streamable_http_client(url, http_client=http)


def command(server: str, folder: Path) -> list[str]:
    """How "filesystem", "sqlite", "postgres", "everything" or "bench" is started."""
    if server == "bench":
        return [sys.executable, "-m", "tests.checks.interop.bench_server"]
    served = {
        "filesystem": [str(folder)],
        "sqlite": ["--allow-write", str(folder / DATABASE)],
        "fetch": ["--allow-private", "127.0.0.1:*"],
        "prompts": ["--starter", str(folder / LIBRARY)],
    }
    if server == "postgres":
        kept = folder / URL
        served[server] = ["--allow-write", kept.read_text(encoding="utf-8")] if kept.exists() else [any_database()]
    return [sys.executable, "-m", f"servers.{server}", *served.get(server, [])]


class HttpServers:
    """The HTTP servers of this run, each started when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[tuple[str, str | None], HttpServer] = {}

    def url(self, server: str, token: str | None) -> str:
        """The endpoint of `server`, which asks for `token`."""
        key = (server, token)
        if key not in self._running:
            self._running[key] = HttpServer(command(server, self._folder), token)
        return self._running[key].url

    def end(self, server: str) -> None:
        """Ends those of one kind. Fails where one had something to complain of."""
        said = "".join(self._running.pop(key).close() for key in [*self._running] if key[0] == server)
        assert not said, said

    def close(self) -> None:
        """Ends them all. Fails where one had something to complain of."""
        said = "".join(server.close() for server in self._running.values())
        assert not said, said


class HttpServer:
    """One HTTP server on a free port."""

    def __init__(self, arguments: list[str], token: str | None) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
        if token is not None:
            env["MCP_TOKEN"] = token
        self._process = subprocess.Popen(
            [*arguments, "--transport", "http", "--port", "0"], cwd=ROOT, env=env, stderr=subprocess.PIPE
        )
        self._said = b""
        self._reader: threading.Thread | None = None
        try:
            self.url = self._announced()
        except BaseException:
            self.close()
            raise
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _announced(self) -> str:
        """The URL that the server names once it accepts connections."""
        deadline = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stderr, selectors.EVENT_READ)
            while selector.select(max(0, deadline - time.monotonic())):
                part = os.read(self._process.stderr.fileno(), 65536)
                self._said += part
                if self._said.startswith(b"listening on ") and b"\n" in self._said:
                    line, _, self._said = self._said.partition(b"\n")
                    return line.removeprefix(b"listening on ").decode()
                if not part:
                    break
        raise AssertionError(f"the server does not listen; it said: {self._said.decode()}")

    def _read(self) -> None:
        self._said += self._process.stderr.read()

    def close(self) -> str:
        """Ends it, and waits for it; what it said besides its URL."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            if self._reader is not None:
                self._reader.join()
            self._process.stderr.close()
        return self._said.decode("utf-8", "replace")


class Heard:
    """A message handler that keeps what it hears, in order."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        self._messages.put_nowait(message)

    async def first(self, kind: type[T]) -> T:
        """The next message of that kind; others are dropped. The connection's limit bounds the wait."""
        while True:
            message = await self._messages.get()
            if isinstance(message, kind):
                return message
