"""A server as a child process: one JSON message per line on its stdin and stdout (2025-11-25, Transports, stdio).

The child ends by steps: its stdin is closed, which asks it to finish; what does not help is followed by SIGTERM
and SIGKILL, each to the child and to what it started in its process group. It is waited for in every case, so that
no zombie is left; what it leaves behind in its group is killed.

It does not inherit our environment, which may hold the secrets of others, but for what programs need to find their
way. What it writes to stderr is for people: no failure, and never more than we can take.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio

from ...concurrency import background
from .pipes import Child, PipeReader
from .stderr_log import StderrLog

Stderr = Literal["log", "keep", "inherit"]
"""Where a child's stderr goes: line by line to the log, as records of the level INFO; its last part into
`ProcessStream.stderr`; or where ours goes."""

STDERR_KEPT = 65_536
"""Bytes of what the child wrote last to stderr."""
PATIENCE = 2.0
"""Seconds for each step of the end."""
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""What nobody can ignore; on Windows that is so of each."""
_INHERITED = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if os.name == "nt"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""The variables that the official SDKs hand on."""


class ProcessStream:
    """The two pipes of a child that runs, as a `ByteStream`."""

    def __init__(self, process: Child) -> None:
        self._process = process
        self._stderr = b""
        self._is_closed = False

    @property
    def exit_code(self) -> int | None:
        """How the child ended, negative for a signal; None while it runs."""
        return self._process.exit_code

    @property
    def stderr(self) -> str:
        """The last part of what the child wrote for people, where it was kept."""
        return self._stderr.decode("utf-8", "replace")

    async def receive(self) -> bytes:
        """What the child wrote next to stdout. Raises EndOfStream when it has closed that."""
        return await self._process.stdout.receive()

    async def send(self, data: bytes) -> None:
        """Writes `data` to the child's stdin. Raises BrokenResourceError when it reads no more."""
        await self._process.send(data)

    def try_send(self, data: bytes) -> bool:
        """The same where it needs no waiting; False, and nothing is written, where it does."""
        return self._process.write(data)

    async def keep_stderr(self) -> None:
        """Reads stderr to its end and keeps the last part."""
        with suppress(anyio.EndOfStream):
            while True:
                self._stderr = (self._stderr + await self._process.stderr.receive())[-STDERR_KEPT:]

    async def aclose(self) -> None:
        """Ends the child, in the steps above: 6 seconds at most for one that listens to nothing."""
        if self._is_closed:
            return  # its group may be another one's by now
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            self._process.end_input()
            for number in (None, signal.SIGTERM, _KILL):
                if number is not None and self._process.exit_code is None:
                    _signal(self._process, number)
                with anyio.move_on_after(PATIENCE):
                    await self._process.wait()
                    break
            # Also where it ended by itself: what it has started may still be there, with our pipes open.
            if os.name == "posix":
                _signal(self._process, _KILL)
            self._process.close()
            await anyio.lowlevel.cancel_shielded_checkpoint()  # in which the pipes are closed


def _signal(process: Child, number: signal.Signals) -> None:
    # Where nobody is left in the group but zombies, macOS forbids it.
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)


def inherited_environment() -> dict[str, str]:
    """The part of our environment that a server is given: no more than programs need to find their way."""
    # A value that begins with () is a function of bash, which a child would run.
    return {name: value for name in _INHERITED if not (value := os.environ.get(name, "()")).startswith("()")}


@asynccontextmanager
async def start_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: Stderr = "log",
) -> AsyncIterator[ProcessStream]:
    """Runs `command` as long as the block. `env` is its whole environment, otherwise `inherited_environment()`.

    Raises OSError when the command can't be started.
    """
    # `env` is all of it: a secret of ours must not come along because somebody set one variable.
    environment = inherited_environment() if env is None else env
    # Cancelled half-way, asyncio would leave the pipes open. It takes milliseconds.
    with anyio.CancelScope(shield=True):
        process = await Child.start(command, env=environment, cwd=cwd, has_stderr=stderr != "inherit")
    stream = ProcessStream(process)
    async with background() as tasks:
        if stderr == "keep":
            tasks.start_soon(stream.keep_stderr)
        elif stderr == "log":
            tasks.start_soon(_log_stderr, process.stderr, StderrLog(Path(command[0]).name))
        try:
            yield stream
        finally:
            await stream.aclose()


async def _log_stderr(stream: PipeReader, lines: StderrLog) -> None:
    try:
        with suppress(anyio.EndOfStream):
            while True:
                lines.feed(await stream.receive())
    finally:
        lines.end()
