"""A server as a child process: one JSON message per line on its stdin and stdout (2025-11-25, Transports, stdio).

The child ends by steps: its stdin is closed, which asks it to finish; what does not help is followed by SIGTERM
and SIGKILL, each to the child and to what it started in its process group. It is waited for in every case, so that
no zombie is left; what it leaves behind in its group is killed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio
from anyio.abc import ByteReceiveStream, Process

from ..errors import ParseError
from ..kit.tasks import background
from ..protocol.session.events import Outgoing
from ..protocol.wire.framing import LineBuffer, Oversized
from ..protocol.wire.jsonrpc import Malformed, Message, decode, encode, failure

__all__ = ["ProcessTransport", "start_process"]

MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes of one message; longer ones are dropped."""
STDERR_KEPT = 65_536
"""Bytes of what the child wrote last to stderr."""
PATIENCE = 2.0
"""Seconds for each step of the end."""
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""What nobody can ignore; on Windows that is so of each."""


class ProcessTransport:
    """The two pipes of a child that runs."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lines = LineBuffer(MAX_MESSAGE)
        self._stderr = b""

    @property
    def exit_code(self) -> int | None:
        """How the child ended, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def stderr(self) -> str:
        """The last part of what the child wrote for people, where it was kept."""
        return self._stderr.decode("utf-8", "replace")

    async def receive(self) -> Sequence[Message]:
        """The messages that the next bytes complete. Raises EndOfStream when the child has closed stdout."""
        stdout = self._process.stdout
        while stdout is not None:
            try:
                lines = self._lines.feed(await stdout.receive())
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                lines, stdout = self._lines.end(), None
            if lines:
                return [_message(line) for line in lines]
        raise anyio.EndOfStream

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Writes messages, all in one go. Raises BrokenResourceError when the child reads no more."""
        data = b"".join(encode(one.message) + b"\n" for one in outgoing if one.message is not None)
        stdin = self._process.stdin
        try:
            if stdin is not None:
                await stdin.send(data)
        except (OSError, anyio.ClosedResourceError):
            raise anyio.BrokenResourceError from None

    async def keep_stderr(self, stream: ByteReceiveStream) -> None:
        """Reads stderr to its end and keeps the last part."""
        with suppress(anyio.ClosedResourceError):  # the end does not wait for others that have the pipe as well
            async for chunk in stream:
                self._stderr = (self._stderr + chunk)[-STDERR_KEPT:]

    async def aclose(self) -> None:
        """Ends the child, in the steps above: 6 seconds at most for one that listens to nothing."""
        with anyio.CancelScope(shield=True):
            if self._process.stdin is not None:
                with suppress(OSError):
                    await self._process.stdin.aclose()
            for number in (None, signal.SIGTERM, _KILL):
                if number is not None and self._process.returncode is None:
                    _signal(self._process, number)
                with anyio.move_on_after(PATIENCE):
                    await self._process.wait()
                    break
            if os.name == "posix":
                _signal(self._process, _KILL)
            await self._process.aclose()


def _message(line: bytes | Oversized) -> Message:
    if isinstance(line, Oversized):
        return Malformed(failure(None, ParseError(f"a message of more than {line.limit:,} bytes was dropped")), True)
    return decode(line)


def _signal(process: Process, number: signal.Signals) -> None:
    # Where nobody is left in the group but zombies, macOS forbids it.
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


@asynccontextmanager
async def start_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: Literal["inherit", "keep"] = "inherit",
) -> AsyncIterator[ProcessTransport]:
    """Runs `command` as long as the block; `env` replaces our own environment, which it inherits otherwise. Its
    stderr goes to ours, or the last part of it is kept.

    Raises OSError when the command can't be started.
    """
    process = await anyio.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if stderr == "keep" else None,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    transport = ProcessTransport(process)
    async with background() as tasks:
        if process.stderr is not None:
            tasks.start_soon(transport.keep_stderr, process.stderr)
        try:
            yield transport
        finally:
            await transport.aclose()
