"""A server on a port, and a plain HTTP client for all that is not load: opening sessions, looking at answers."""

import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Self

from tests.checks.benchmarks import messages
from tests.checks.benchmarks.messages import HANDSHAKE, STATELESS, Ask
from tests.checks.benchmarks.peers import ROOT
from tests.checks.benchmarks.pipes import last_words

HOST = "127.0.0.1"
PATH = "/mcp"
PATIENCE = 60.0
ALWAYS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Web:
    """One server process, and one connection to it."""

    def __init__(self, command: list[str], port: int, path: str = PATH) -> None:
        self.port = port
        self.path = path
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        self._connection = HTTPConnection(HOST, port, timeout=PATIENCE)

    def __enter__(self) -> Self:
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit and self._process.poll() is None:
            with suppress(ConnectionRefusedError):
                self._connection.connect()
                return self
            time.sleep(0.02)
        said = last_words(self._log)
        self.__exit__()
        raise TimeoutError(f"{self._process.args} does not listen, and said {said}")

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, ask: Ask, headers: Mapping[str, str], id: int) -> None:
        """Asks once. Raises ValueError where the answer is not a good one."""
        self._connection.close()  # the server may have closed it while there was load; this opens a new one
        self._post(ask.text(id), headers, ask.expected)

    def open_session(self) -> str:
        """Shakes hands, and returns the id of the session."""
        hello = self._post(messages.INITIALIZE.text(1), {}, messages.INITIALIZE.expected)
        session = hello.getheader("Mcp-Session-Id")
        if session is None:
            raise ValueError("the answer to initialize names no session")
        self._post(messages.INITIALIZED, in_session(session), b"")
        return session

    def _post(self, body: bytes, headers: Mapping[str, str], expected: bytes) -> HTTPResponse:
        self._connection.request("POST", self.path, body, {**ALWAYS, **headers})
        response = self._connection.getresponse()
        content = response.read()
        if response.status not in (200, 202) or expected not in content:
            raise ValueError(f"{body!r:.200} was answered by {response.status} {content!r:.500}")
        return response


def in_session(session: str) -> dict[str, str]:
    """The headers of a request within a session."""
    return {"MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": session}


def stateless(ask: Ask) -> dict[str, str]:
    """The headers with which a request of 2026-07-28 repeats its body."""
    named = {"Mcp-Name": ask.params["name"]} if "name" in ask.params else {}
    return {"MCP-Protocol-Version": STATELESS, "Mcp-Method": ask.method, **named}
