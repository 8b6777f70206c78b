"""A child process and the pipes to it, with as few turns of the event loop per message as possible.

A write happens at once if the pipe has room, and arriving data wakes its reader directly: the streams of asyncio, and
those built on them, take two more turns for each message.
"""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from ...concurrency import Signal

MAX_WAITING_BYTES = 262_144
"""Maximum number of received bytes that nobody has read yet; beyond it, reading from the pipe is paused."""
FLOOD_BYTES = 32_768
"""The number of unread bytes from which `receive` checks for cancellation. Only the output of a child that sends a
lot, or without a pause, reaches this number."""
STDIN, STDOUT, STDERR = 0, 1, 2


class PipeReader(asyncio.Protocol):
    """The output of a child on one pipe, as an `anyio` byte stream without `aclose`."""

    def __init__(self) -> None:
        self._pipe: asyncio.ReadTransport | None = None
        self._previous_protocol: asyncio.BaseProtocol | None = None
        self._chunks: list[bytes] = []
        self._waiting_bytes = 0
        self._has_ended = False
        self._woken = Signal()

    def attach(self, pipe: asyncio.ReadTransport) -> None:
        """Receive the data of `pipe` in place of its previous protocol, which is still notified of the end."""
        self._pipe, self._previous_protocol = pipe, pipe.get_protocol()
        pipe.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._chunks.append(data)
        self._waiting_bytes += len(data)
        # The pipe then fills, and the child waits: it can't make this process buffer more.
        if self._waiting_bytes > MAX_WAITING_BYTES and self._pipe is not None:
            self._pipe.pause_reading()
        self._woken.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self.end()
        if self._previous_protocol is not None:
            self._previous_protocol.connection_lost(exc)

    def end(self) -> None:
        """Mark the end of the stream."""
        self._has_ended = True
        self._woken.wake()

    async def receive(self) -> bytes:
        """Return all available bytes. Raises EndOfStream when the pipe is closed."""
        while not self._chunks:
            if self._has_ended:
                raise anyio.EndOfStream
            await self._woken.wait()
        if self._waiting_bytes > FLOOD_BYTES:
            # Tasks are cancelled while they wait: a task for which there is always more data could not be cancelled.
            await anyio.lowlevel.checkpoint_if_cancelled()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        if self._waiting_bytes > MAX_WAITING_BYTES and self._pipe is not None and not self._has_ended:
            self._pipe.resume_reading()
        self._waiting_bytes = 0
        return data


class Child(asyncio.SubprocessProtocol):
    """A running process, with its pipes and its exit code."""

    def __init__(self) -> None:
        self.stdout = PipeReader()
        self.stderr = PipeReader()
        self._transport: asyncio.SubprocessTransport
        self._stdin: Any = None
        self._has_room = True
        self._accepts_input = True
        self._changed = Signal()
        self._exited = anyio.Event()

    @classmethod
    async def start(
        cls, command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path | None, captures_stderr: bool
    ) -> "Child":
        """Start `command` in its own session, with pipes for its standard streams; without `captures_stderr` the
        child shares this process's stderr. Raises OSError if the command can't be started."""
        stderr = subprocess.PIPE if captures_stderr else None
        # In its own session: Ctrl-C in a terminal is for the client, which then stops its servers cleanly.
        _, child = await asyncio.get_running_loop().subprocess_exec(
            cls, *command, stderr=stderr, env=env, cwd=cwd, start_new_session=True
        )
        return child

    @property
    def pid(self) -> int:
        """The process id, which may be reused after the process has ended."""
        return self._transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, negative for a signal; None while it runs."""
        return self._transport.get_returncode()

    def write(self, data: bytes) -> bool:
        """Write `data` to stdin if there is room. Returns False if stdin is full or closed."""
        if not self._has_room or self._is_input_closed:
            return False
        self._stdin.write(data)
        return True

    @property
    def _is_input_closed(self) -> bool:
        # A pipe without a reader is closed some time before that is reported, and uvloop rejects writes in the
        # meantime.
        return not self._accepts_input or self._stdin.is_closing()

    async def send(self, data: bytes) -> None:
        """Write `data` to stdin, waiting while it is full. Raises BrokenResourceError if stdin is closed."""
        if self._is_input_closed:
            raise anyio.BrokenResourceError
        self._stdin.write(data)
        while not self._has_room:
            if self._is_input_closed:
                raise anyio.BrokenResourceError
            await self._changed.wait()

    def end_input(self) -> None:
        """Close stdin."""
        self._accepts_input = False
        self._stdin.close()
        self._changed.wake()

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self._exited.wait()

    def close(self) -> None:
        """Release the pipes, and kill the process if it is still running."""
        self._transport.close()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the process has started."""
        # The transports of uvloop have the same methods as asyncio's transports, but not the same classes.
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = self._transport.get_pipe_transport(STDIN)
        for number, reader in ((STDOUT, self.stdout), (STDERR, self.stderr)):
            pipe = self._transport.get_pipe_transport(number)
            if pipe is not None:
                reader.attach(cast("asyncio.ReadTransport", pipe))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called for data that arrived before its pipe had a reader."""
        (self.stdout if fd == STDOUT else self.stderr).data_received(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called when one of the standard streams is closed."""
        if fd == STDIN:
            self._accepts_input = False
            self._changed.wake()
        else:
            (self.stdout if fd == STDOUT else self.stderr).end()

    def process_exited(self) -> None:
        """Called when the process has ended."""
        self._exited.set()

    def pause_writing(self) -> None:
        """Called when stdin is full."""
        self._has_room = False

    def resume_writing(self) -> None:
        """Called when stdin has room again."""
        self._has_room = True
        self._changed.wake()
