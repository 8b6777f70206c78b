"""A child process and the pipes to it, with as few turns of the event loop for a message as there can be.

What is written leaves at once where the pipe has room, and what comes wakes its reader directly: the streams of
asyncio, and those above them, take two turns more for each message.
"""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from ...concurrency import Signal

HELD = 262_144
"""Bytes that may wait for a reader before the pipe is read no further."""
FLOOD = 32_768
"""Bytes that come at once only where more will come at once, or much was asked for."""
STDIN, STDOUT, STDERR = 0, 1, 2


class PipeReader(asyncio.Protocol):
    """What a child writes to one pipe, as an `anyio` byte stream without an `aclose`."""

    def __init__(self) -> None:
        self._pipe: asyncio.ReadTransport | None = None
        self._before: asyncio.BaseProtocol | None = None
        self._chunks: list[bytes] = []
        self._held = 0
        self._is_over = False
        self._woken = Signal()

    def attach(self, pipe: asyncio.ReadTransport) -> None:
        """Takes what comes from `pipe`, in place of the protocol before, which hears of the end alone."""
        self._pipe, self._before = pipe, pipe.get_protocol()
        pipe.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._chunks.append(data)
        self._held += len(data)
        # Then the pipe fills, and the child waits: it can't have us hold more than this.
        if self._held > HELD and self._pipe is not None:
            self._pipe.pause_reading()
        self._woken.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self.end()
        if self._before is not None:
            self._before.connection_lost(exc)

    def end(self) -> None:
        """Nothing more will come."""
        self._is_over = True
        self._woken.wake()

    async def receive(self) -> bytes:
        """The next bytes, as many as are there. Raises EndOfStream when the pipe was closed."""
        while not self._chunks:
            if self._is_over:
                raise anyio.EndOfStream
            await self._woken.wait()
        if self._held > FLOOD:
            # Who is woken in each turn of the event loop is never found waiting, and would not be cancelled.
            await anyio.lowlevel.checkpoint_if_cancelled()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        if self._held > HELD and self._pipe is not None and not self._is_over:
            self._pipe.resume_reading()
        self._held = 0
        return data


class Child(asyncio.SubprocessProtocol):
    """A process that runs, and what it has to be told and asked."""

    def __init__(self) -> None:
        self.stdout = PipeReader()
        self.stderr = PipeReader()
        self._transport: asyncio.SubprocessTransport
        self._stdin: Any = None
        self._has_room = True
        self._takes_input = True
        self._changed = Signal()
        self._exited = anyio.Event()

    @classmethod
    async def start(
        cls, command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path | None, has_stderr: bool
    ) -> "Child":
        """Starts `command` in a session of its own, with pipes for its standard streams, of which stderr is ours
        without `has_stderr`. Raises OSError when it can't be started."""
        stderr = subprocess.PIPE if has_stderr else None
        # In a session of its own: Ctrl-C in a terminal is for the client, which then ends its servers in order.
        started = asyncio.get_running_loop().subprocess_exec(
            cls, *command, stderr=stderr, env=env, cwd=cwd, start_new_session=True
        )
        return (await started)[1]

    @property
    def pid(self) -> int:
        """The process id, which is another one's at some time after the end."""
        return self._transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self._transport.get_returncode()

    def write(self, data: bytes) -> bool:
        """Writes `data` to its stdin where that has room; False where it has none, or is closed."""
        if not self._has_room or self._is_deaf:
            return False
        self._stdin.write(data)
        return True

    @property
    def _is_deaf(self) -> bool:
        # A pipe that nobody reads is closed some time before that is told, and uvloop lets nobody write meanwhile.
        return not self._takes_input or self._stdin.is_closing()

    async def send(self, data: bytes) -> None:
        """Writes `data` to its stdin, and waits while that is full. Raises BrokenResourceError when it is closed."""
        if self._is_deaf:
            raise anyio.BrokenResourceError
        self._stdin.write(data)
        while not self._has_room:
            if self._is_deaf:
                raise anyio.BrokenResourceError
            await self._changed.wait()

    def end_input(self) -> None:
        """Closes its stdin."""
        self._takes_input = False
        self._stdin.close()
        self._changed.wake()

    async def wait(self) -> None:
        """Waits until it has ended."""
        await self._exited.wait()

    def close(self) -> None:
        """Lets go of its pipes; it is killed where it still runs."""
        self._transport.close()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        # The transports of uvloop have what those of asyncio have, and are none of its classes.
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = self._transport.get_pipe_transport(STDIN)
        for number, reader in ((STDOUT, self.stdout), (STDERR, self.stderr)):
            pipe = self._transport.get_pipe_transport(number)
            if pipe is not None:
                reader.attach(cast("asyncio.ReadTransport", pipe))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It wrote before we could attach to its pipe."""
        (self.stdout if fd == STDOUT else self.stderr).data_received(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It has closed one of its streams."""
        if fd == STDIN:
            self._takes_input = False
            self._changed.wake()
        else:
            (self.stdout if fd == STDOUT else self.stderr).end()

    def process_exited(self) -> None:
        """It has ended."""
        self._exited.set()

    def pause_writing(self) -> None:
        """Its stdin is full."""
        self._has_room = False

    def resume_writing(self) -> None:
        """Its stdin has room again."""
        self._has_room = True
        self._changed.wake()
