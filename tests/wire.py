"""A client on the level of bytes: it shares no code with the servers it tests, and uses no SDK.

`Wire` speaks newline-delimited JSON with a child process. Every message that comes back is checked against
the official schema of the version it was sent under (`schemas.py`). Every wait is bounded.

    async with Wire([sys.executable, "-m", "servers.filesystem", "."]) as wire:
        await wire.initialize()
        response = await wire.request("tools/list")
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import anyio
from anyio.abc import Process

from tests import schemas

NEWEST_HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
CLIENT_INFO = {"name": "wire", "version": "1"}
PATIENCE = 60.0
STDERR_LIMIT = 1_000_000  # enough for the import log of an interpreter

Json = dict[str, Any]


class Wire:
    """One server process. `version` is the one negotiated by `initialize`, `STATELESS` without it.

    What arrives while `request` waits is kept: `notifications`, `server_requests`, and `responses` by id.
    A server request whose method is in `answers` is answered at once with that result.
    """

    def __init__(
        self,
        command: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        answers: Mapping[str, Json | Callable[[Json], Json]] | None = None,
        check: bool = True,
    ) -> None:
        self.command = command
        self.env = env
        self.cwd = cwd
        self.answers = dict(answers or {})
        self.check = check and schemas.wanted()
        self.version: str | None = None
        self.notifications: list[Json] = []
        self.server_requests: list[Json] = []
        self.responses: dict[int | str, Json] = {}
        self._pending: dict[int | str, tuple[str, str]] = {}  # id -> method, version
        self._last_id = 0
        self._received = bytearray()
        # A file and not a pipe: it takes any amount without a task that reads it.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __aexit__
        self._last_words = ""
        self._process: Process

    async def __aenter__(self) -> Self:
        self._process = await anyio.open_process(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=self.env,
            cwd=self.cwd,
        )
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        with anyio.CancelScope(shield=True):
            await self.close_stdin()
            with anyio.move_on_after(PATIENCE / 2):
                await self._process.wait()
            if self._process.returncode is None:
                self._process.kill()
            with anyio.fail_after(PATIENCE):
                await self._process.aclose()
        self._last_words = self.stderr
        self._stderr.close()

    @property
    def stderr(self) -> str:
        """Returns the last part of stderr, also after the end of the server."""
        if self._stderr.closed:
            return self._last_words
        size = self._stderr.seek(0, os.SEEK_END)
        return os.pread(self._stderr.fileno(), STDERR_LIMIT, max(0, size - STDERR_LIMIT)).decode("utf-8", "replace")

    @property
    def alive(self) -> bool:
        """Returns whether the process still runs."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Returns the id of the process."""
        return self._process.pid

    def terminate(self) -> None:
        """Send SIGTERM."""
        if self.alive:
            self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.alive:
            self._process.kill()

    async def send(self, message: Json | list[Any] | bytes) -> None:
        """Send a message, a batch, or bytes exactly as given. Requests are remembered for `receive`."""
        if isinstance(message, bytes):
            data = message
        else:
            for part in message if isinstance(message, list) else [message]:
                self._remember(part)
            data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        with anyio.fail_after(PATIENCE):
            await self._process.stdin.send(data)

    def _remember(self, message: Json) -> None:
        if not isinstance(message, dict) or "method" not in message or not isinstance(message.get("id"), int | str):
            return
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        stateless = isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta
        version = STATELESS if stateless else self.version or NEWEST_HANDSHAKE
        self._pending[message["id"]] = (message["method"], version)

    async def receive(self, timeout: float = PATIENCE) -> Any:
        """Returns the next message.

        Raises TimeoutError when none comes in time, EOFError when the server has closed stdout.
        """
        with anyio.fail_after(timeout):
            line = await self._receive_line()
        message = json.loads(line)
        if self.check:
            self._check(message)
        for part in message if isinstance(message, list) else [message]:
            if "method" not in part:
                self._pending.pop(part.get("id"), None)
        return message

    async def _receive_line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            try:
                self._received += await self._process.stdout.receive()
            except anyio.EndOfStream:
                raise EOFError(f"the server closed stdout; it said:\n{self.stderr[-4000:]}") from None
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _check(self, message: Any) -> None:
        if isinstance(message, list):
            methods = {key: method for key, (method, _) in self._pending.items()}
            schemas.check(message, self.version or NEWEST_HANDSHAKE, method=methods)
            return
        method, version = None, None
        if "method" not in message and message.get("id") in self._pending:
            method, version = self._pending[message["id"]]
        if method == "initialize" and "result" in message:
            version = message["result"]["protocolVersion"]
        if version is not None:
            schemas.check(message, version, method=method)
            return
        # No request determines the version of a notification: it may be any version in use.
        self._check_any(message, sorted({version for _, version in self._pending.values()} | {self._session()}))

    def _check_any(self, message: Json, versions: list[str]) -> None:
        problems = []
        for version in versions:
            try:
                return schemas.check(message, version)
            except AssertionError as problem:
                problems.append(str(problem))
        raise AssertionError("\n".join(problems))

    def _session(self) -> str:
        return self.version or STATELESS

    async def request(
        self, method: str, params: Json | None = None, id: int | str | None = None, timeout: float = PATIENCE
    ) -> Json:
        """Returns the response to a request; other messages meanwhile go to the lists of this object."""
        if id is None:
            self._last_id += 1
        key = self._last_id if id is None else id
        message: Json = {"jsonrpc": "2.0", "id": key, "method": method}
        await self.send(message if params is None else {**message, "params": params})
        return await self.response(key, timeout)

    async def response(self, id: int | str, timeout: float = PATIENCE) -> Json:
        """Returns the response to an earlier request."""
        with anyio.fail_after(timeout):
            while id not in self.responses:
                message = await self.receive(timeout)
                for part in message if isinstance(message, list) else [message]:
                    await self._keep(part)
        return self.responses.pop(id)

    async def _keep(self, message: Json) -> None:
        if "method" not in message:
            self.responses[message.get("id", "")] = message
        elif "id" not in message:
            self.notifications.append(message)
        else:
            self.server_requests.append(message)
            if (answer := self.answers.get(message["method"])) is not None:
                result = answer(message) if callable(answer) else answer
                await self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        await self.send(message if params is None else {**message, "params": params})

    async def initialize(self, version: str = NEWEST_HANDSHAKE, capabilities: Json | None = None) -> Json:
        """Shake hands, and return the result of `initialize`."""
        response = await self.request(
            "initialize",
            {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": CLIENT_INFO},
        )
        assert "result" in response, response
        result: Json = response["result"]
        self.version = result["protocolVersion"]
        await self.notify("notifications/initialized")
        return result

    async def stateless(
        self, method: str, params: Json | None = None, *, capabilities: Json | None = None, **meta: Any
    ) -> Json:
        """Returns the response to a stateless request. `meta` adds keys to `_meta`, e.g. progressToken."""
        return await self.request(method, with_envelope(params, capabilities=capabilities, **meta))

    async def close_stdin(self) -> None:
        """Close the stdin of the server."""
        with anyio.fail_after(PATIENCE):
            await self._process.stdin.aclose()

    async def wait(self, timeout: float = PATIENCE) -> int:
        """Returns the exit code, after the end of the process."""
        with anyio.fail_after(timeout):
            return await self._process.wait()


def with_envelope(params: Json | None = None, *, capabilities: Json | None = None, **meta: Any) -> Json:
    """Returns params with the `_meta` that every request of 2026-07-28 carries."""
    params = dict(params or {})
    envelope = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
    }
    return {**params, "_meta": {**envelope, **meta, **params.get("_meta", {})}}


async def listening(process: Wire) -> str:
    """Waits until a server over HTTP prints its base URL; returns it."""
    with anyio.fail_after(2 * PATIENCE):
        while not (found := re.search(r"listening on (http://[^\s/]+)/", process.stderr)):
            assert process.alive, f"the server ended; it said:\n{process.stderr}"
            await anyio.sleep(0.02)
    return found.group(1)


@asynccontextmanager
async def serving(command: list[str], *, env: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """Start `command`, which serves over HTTP; yields its base URL."""
    async with Wire(command, env=env) as process:
        try:
            yield await listening(process)
        finally:
            process.terminate()


@asynccontextmanager
async def start_http(command: list[str], *, env: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """Start `command` with `--transport http` on a free port; yields its base URL."""
    options = ["--transport", "http", "--host", "127.0.0.1", "--port", "0"]
    async with serving([*command, *options], env=env) as base:
        yield base
