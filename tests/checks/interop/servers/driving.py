"""Starts a server, and goes through its rows with our client."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from shared.client.connect import connect
from shared.errors import McpError
from tests.checks.interop.peers import NEWEST_HANDSHAKE
from tests.checks.interop.servers.official import OFFICIAL
from tests.checks.interop.servers.rows import CLOSES, NOTE, ROWS, Ears, Row, Talk, opens, outcome, ping
from tests.descriptors import left_open, settled_descriptors
from tests.ports import free_port

HOST = "127.0.0.1"
START_SECONDS = 30.0
ROW_SECONDS = 10.0
URLS = {"http": "http://{}:{}/mcp", "sse": "http://{}:{}/sse", "websocket": "ws://{}:{}/mcp"}


@dataclass(frozen=True)
class Column:
    """One column of the matrix: a server, what it is reached over, and how it is opened."""

    server: str
    transport: str
    mode: str

    @property
    def version(self) -> str:
        """The version that client and server settle on."""
        return OFFICIAL[self.server].versions[self.transport] if self.mode == "auto" else NEWEST_HANDSHAKE

    @property
    def rows(self) -> dict[str, Row]:
        """The rows that the server has, in their order, but for the end of the connection."""
        official = OFFICIAL[self.server]
        every = {"opens": opens(self.version, official.name), "ping": ping, **official.rows}
        return {row: every[row] for row in ROWS if row in every and (self.version, row) not in official.without}


async def drive(column: Column, folder: Path, site: str) -> dict[str, str]:
    """What becomes of each row of a column. Raises Unavailable where its server can't be had here."""
    (folder / "note.txt").write_text(NOTE)
    port = free_port()
    command = OFFICIAL[column.server].start(column.transport, port, folder)
    if column.transport == "stdio":
        return await _driven(column, command, str(folder), site)
    with serving(command, port):
        return await _driven(column, URLS[column.transport].format(HOST, port), str(folder), site)


async def _driven(column: Column, target: str | list[str], folder: str, site: str) -> dict[str, str]:
    found: dict[str, str] = {}
    ears = Ears()
    before = settled_descriptors()
    try:
        async with connect(target, ears.options(column.mode)) as client:
            talk = Talk(client, ears, folder, site)
            for name, row in column.rows.items():
                found[name] = await outcome(row, talk, ROW_SECONDS)
    except (OSError, McpError) as error:
        return {**found, CLOSES: f"{type(error).__name__}: {error}"}
    left = left_open(before)
    return {**found, CLOSES: f"still open: {left}" if left else "ok"}


@contextmanager
def serving(command: list[str], port: int, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """A server that listens on that port until the end of the block."""
    with TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=env)
        try:
            _await_listening(process, port)
            yield
        except TimeoutError as error:
            error.add_note(f"it said: {os.pread(said.fileno(), 4_000, 0).decode(errors='replace')}")
            raise
        finally:
            process.kill()
            process.wait()


def _await_listening(process: subprocess.Popen[bytes], port: int) -> None:
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        with suppress(ConnectionRefusedError):
            socket.create_connection((HOST, port)).close()
            return
        time.sleep(0.02)
    raise TimeoutError(f"{process.args} does not listen")
