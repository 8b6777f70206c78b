"""A server process on the descriptors that a test gives it, with every wait bounded."""

import fcntl
import json
import os
import re
import select
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from tests.wire import CLIENT_INFO, NEWEST_HANDSHAKE, PATIENCE, STATELESS

ROOT = Path(__file__).resolve().parents[1]
SLOW = [sys.executable, "-m", "tests.slow_server"]
FILES = [sys.executable, "-m", "servers.filesystem"]
BARE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""The environment of somebody who has installed the bundle, and no checkout."""

Json = dict[str, Any]


def request(id: int | str, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def call(id: int | str, tool: str, **arguments: Any) -> Json:
    return request(id, "tools/call", {"name": tool, "arguments": arguments})


def stateless(message: Json) -> Json:
    """Returns `message` with the envelope of the stateless era, which needs no handshake."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "info",
    }
    return {**message, "params": {**message["params"], "_meta": meta}}


def headers_of(message: Json) -> dict[str, str]:
    """Returns the HTTP headers of a message of either era."""
    sent = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if "_meta" in message["params"]:
        sent |= {"mcp-protocol-version": STATELESS, "mcp-method": message["method"]}
        sent |= {"mcp-name": message["params"]["name"]} if "name" in message["params"] else {}
    return sent


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of sites without TLS: loading the certificates of the system takes longer than the request."""
INITIALIZE = request(
    "init", "initialize", {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT_INFO}
)
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def lines(*messages: Json) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


class Raw:
    """One server process. `stdin`, `stdout`, `stderr` are as in Popen; pipes by default."""

    def __init__(self, command: list[str], *, env: Mapping[str, str] | None = None, **streams: Any) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # With buffered output, the default, printed text may arrive late.
        env = {name: value for name, value in (env or os.environ).items() if name != "PYTHONUNBUFFERED"}
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, bufsize=0, **{**pipes, **streams})
        self.pid = self.process.pid
        self._received = bytearray()
        given = self.process.stdin, self.process.stdout
        self.fd_in, self.fd_out = (-1 if file is None else file.fileno() for file in given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            if file is not None:
                file.close()
        self.process.wait(PATIENCE)

    def open(self) -> Self:
        """Performs the handshake."""
        self.send(INITIALIZE, INITIALIZED)
        assert "result" in self.answer("init")
        return self

    def send(self, *messages: Json) -> None:
        self.send_bytes(lines(*messages))

    def send_bytes(self, data: bytes) -> None:
        assert self.push(data) == len(data), "the server took nothing for too long"

    def push(self, data: bytes, patience: float = PATIENCE) -> int:
        """Sends bytes until all are sent or the server reads none for that long; returns the number sent."""
        fcntl.fcntl(self.fd_in, fcntl.F_SETFL, fcntl.fcntl(self.fd_in, fcntl.F_GETFL) | os.O_NONBLOCK)
        view = memoryview(data)
        while view and select.select([], [self.fd_in], [], patience)[1]:
            view = view[os.write(self.fd_in, view[:65_536]) :]
        return len(data) - len(view)

    def receive(self) -> Json:
        """Returns the next message. Raises EOFError at the end, TimeoutError if none arrives in time."""
        message: Json = json.loads(self._take_line())
        return message

    def _take_line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            self._read()
        return self._take(end + 1)

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            self._read()
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _read(self) -> None:
        if not select.select([self.fd_out], [], [], PATIENCE)[0]:
            raise TimeoutError
        chunk = os.read(self.fd_out, 1 << 20)
        if not chunk:
            raise EOFError
        self._received += chunk

    def answer(self, id: int | str) -> Json:
        """Returns the answer to `id`; earlier messages are dropped."""
        return self.until(lambda message: "method" not in message and message.get("id") == id)

    def begun(self) -> None:
        """Waits until a tool reports that it has started."""
        self.until(lambda message: message.get("params", {}).get("data") == "begun")

    def until(self, matches: Any) -> Json:
        while True:
            message = self.receive()
            if matches(message):
                return message

    def rest(self) -> list[Json]:
        """Returns everything up to the end of the stream."""
        messages = []
        while True:
            try:
                messages.append(self.receive())
            except EOFError:
                assert not self._received, "half a message"
                return messages

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> None:
        """Closes its stdin, and checks that it sends nothing more and exits in order."""
        self.close_stdin()
        assert self.rest() == []
        assert self.wait() == 0

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def stderr(self) -> str:
        """Returns its stderr, after its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def memory(self, field: str = "VmHWM") -> int:
        """Returns its memory in bytes, at the peak (VmHWM) or now (VmRSS)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field}")


class WithHeaders(Raw):
    """A server whose messages have a `Content-Length` header."""

    def send(self, *messages: Json) -> None:
        self.send_bytes(b"".join(with_length(json.dumps(message).encode()) for message in messages))

    def receive(self) -> Json:
        header, blank = self._take_line(), self._take_line()
        assert (header[:16], header[-2:], blank) == (b"Content-Length: ", b"\r\n", b"\r\n")
        message: Json = json.loads(self._take(int(header[16:])))
        return message


def with_length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def listening(server: Raw, patience: float = PATIENCE) -> str:
    """Waits until the server listens; returns its URL."""
    output, stderr = "", server.process.stderr
    assert stderr is not None
    while not (found := re.search(r"listening on (http[^\s\"]+)[\s\"]", output)):
        assert select.select([stderr], [], [], patience)[0], f"it said nothing more:\n{output}"
        chunk = os.read(stderr.fileno(), 1)
        assert chunk, f"it ended:\n{output}"
        output += chunk.decode()
    return found.group(1)


def post(url: str, message: Json, **headers: str) -> httpx.Response:
    sent = {**headers_of(message), **headers}
    return httpx.post(url, content=lines(message), headers=sent, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
