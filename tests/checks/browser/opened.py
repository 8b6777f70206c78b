"""`mcp-server-bundle open` as a process, with the contents of `hosts/serving.py`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from tests.checks.interop.peers import PATIENCE, ROOT

__all__ = ["Opened", "configure", "open_servers"]


class Opened:
    """Running servers with their workbench."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
        self._said: list[str] = []
        found: Future[str] = Future()
        self._reader = Thread(target=self._read, args=[found])
        self._reader.start()
        try:
            self.address = found.result(PATIENCE)
        except BaseException as error:
            error.add_note(self.close())
            raise

    def url(self, server: str) -> str:
        """Returns the endpoint of a server."""
        return f"{self.address}{server}/mcp"

    def close(self) -> str:
        """Stops the servers; returns their whole output with the log."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._reader.join()
            self._process.stderr.close()
        return "".join(self._said)

    def _read(self, found: "Future[str]") -> None:
        for line in self._process.stderr:
            self._said.append(line)
            named = re.match(r"the workbench is at (\S+/);", line)
            if named:
                found.set_result(named[1])
        if not found.done():
            found.set_exception(AssertionError("the servers were not opened"))


def configure(folder: Path, **others: Any) -> Path:
    """A configuration of the four servers over what was laid out in `folder`; `others` are settings of servers."""
    servers = {
        "filesystem": {"roots": [str(folder / "bakery")], "allow-write": True},
        "sqlite": {"databases": [str(folder / "shop.db")], "allow-write": True},
        "fetch": {"allow-private": ["127.0.0.1:*"]},
        "prompts": {"starter": True},
        **others,
    }
    file = folder / "servers.yaml"
    file.write_text(json.dumps({"servers": servers}))  # JSON is valid YAML
    return file


@contextmanager
def open_servers(configuration: Path, *options: str, token: str | None = None) -> Iterator[Opened]:
    """Runs the configured servers until the end of the block."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
    if token is not None:
        env["MCP_TOKEN"] = token
    command = [sys.executable, "-m", "servers", "open", "--no-browser", "--config", str(configuration), *options]
    opened = Opened(command, env)
    try:
        yield opened
    finally:
        opened.close()
