"""A server as a child process: one JSON message per line on its stdin and stdout (2025-11-25, Transports, stdio).

The child is ended in steps: closing its stdin asks it to finish; if that does not suffice, SIGTERM and SIGKILL
follow, each sent to the child and its process group. The client always waits for the child, so that no zombie
remains, and kills processes that the child leaves behind in its group.

The child inherits only those environment variables that programs need, since this process's environment may contain
other programs' secrets. The stderr of the child is for people: output there is not a failure. Only a limited amount
of it is logged or stored.
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
"""The use of a child's stderr: "log" logs each line at level INFO, "keep" stores its last part in
`ProcessStream.stderr`, and "inherit" lets the child write to this process's stderr."""

MAX_STDERR_BYTES = 65_536
"""Maximum size, in bytes, of the last part of stderr that "keep" stores."""
STEP_SECONDS = 2.0
"""Seconds for each step of ending the process."""
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no process can ignore: SIGKILL, or on Windows, where every signal ends a process, SIGTERM."""
_INHERITED_VARIABLES = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if os.name == "nt"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""The environment variables that a child inherits; they are the ones that the official SDKs pass on."""


class ProcessStream:
    """The two pipes of a running child, as a `ByteStream`."""

    def __init__(self, process: Child) -> None:
        self._process = process
        self._stderr = b""
        self._is_closed = False

    @property
    def exit_code(self) -> int | None:
        """The exit code of the child, negative for a signal; None while it runs."""
        return self._process.exit_code

    @property
    def stderr(self) -> str:
        """The last part of stderr, with "keep"."""
        return self._stderr.decode("utf-8", "replace")

    async def receive(self) -> bytes:
        """Return the next bytes of stdout. Raises EndOfStream when the child has closed it."""
        return await self._process.stdout.receive()

    async def send(self, data: bytes) -> None:
        """Write `data` to stdin. Raises BrokenResourceError when the child no longer reads it."""
        await self._process.send(data)

    def try_send(self, data: bytes) -> bool:
        """Write `data` if this is possible without waiting; otherwise return False."""
        return self._process.write(data)

    async def collect_stderr(self) -> None:
        """Read stderr to its end and store the last part."""
        with suppress(anyio.EndOfStream):
            while True:
                self._stderr = (self._stderr + await self._process.stderr.receive())[-MAX_STDERR_BYTES:]

    async def aclose(self) -> None:
        """End the child in the three steps that the module describes, which take at most 6 seconds."""
        if self._is_closed:
            return  # the child has ended, and another process group may have its id now
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            self._process.end_input()
            for signal_number in (None, signal.SIGTERM, _KILL):
                if signal_number is not None and self._process.exit_code is None:
                    _signal(self._process, signal_number)
                with anyio.move_on_after(STEP_SECONDS):
                    await self._process.wait()
                    break
            # Even if the child has ended on its own: processes that it started may still be running with the pipes
            # open.
            if os.name == "posix":
                _signal(self._process, _KILL)
            self._process.close()
            await anyio.lowlevel.cancel_shielded_checkpoint()  # in which the pipes are closed


def _signal(process: Child, signal_number: signal.Signals) -> None:
    # macOS raises PermissionError if only zombies are left in the group.
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal_number)
        else:
            os.kill(process.pid, signal_number)


def inherited_environment() -> dict[str, str]:
    """Return the variables of this process's environment that a server receives: only those that programs need."""
    # A value that begins with () is an exported function of bash; a shell would define it in the child.
    return {
        name: value for name in _INHERITED_VARIABLES if not (value := os.environ.get(name, "()")).startswith("()")
    }


@asynccontextmanager
async def start_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: Stderr = "log",
) -> AsyncIterator[ProcessStream]:
    """Run `command` during the block. `env` is its whole environment, by default `inherited_environment()`.

    Raises OSError if the command can't be started. With "log", a ConnectionError that leaves the block gets a note
    with the last line of stderr, which often says why the child has ended.
    """
    # `env` is complete: setting one variable must not pass on this process's secrets.
    environment = inherited_environment() if env is None else env
    # A start takes milliseconds. It is shielded because asyncio leaves the pipes open if it is cancelled halfway.
    with anyio.CancelScope(shield=True):
        process = await Child.start(command, env=environment, cwd=cwd, captures_stderr=stderr != "inherit")
    stream, stderr_log = ProcessStream(process), StderrLog(Path(command[0]).name)
    async with background() as tasks:
        if stderr == "keep":
            tasks.start_soon(stream.collect_stderr)
        elif stderr == "log":
            tasks.start_soon(_log_stderr, process.stderr, stderr_log)
        try:
            yield stream
        except ConnectionError as error:
            await stream.aclose()
            if stderr_log.last_line:
                error.add_note(f"last output of the server: {stderr_log.last_line}")
            raise
        finally:
            await stream.aclose()


async def _log_stderr(stream: PipeReader, stderr_log: StderrLog) -> None:
    try:
        with suppress(anyio.EndOfStream):
            while True:
                stderr_log.feed(await stream.receive())
    finally:
        stderr_log.end()
