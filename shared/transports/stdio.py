"""The stdio transport: one JSON message per line on fd 0 and fd 1 (2025-11-25, Transports, stdio).

stdout belongs to the protocol, so fd 1 is guarded: the transport keeps a private copy and points 1 at stderr,
where a stray `print`, also one of a C library or a child, does no harm. fd 0 is handed to nobody: children
get an empty one.

Reading and writing depend on what the two descriptors are. Pipes and sockets are made non-blocking and waited
for; a file is always ready; a terminal is shared with the shell, which must not find it non-blocking, so it is
read and written in a thread, as is everything on systems that can't wait for pipes.
"""

import os
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio import to_thread

from ..errors import InvalidRequest
from ..protocol.events import Outgoing
from ..protocol.framing import LineBuffer, Oversized
from ..protocol.jsonrpc import Malformed, Message, decode, encode, failure

__all__ = ["StdioTransport", "stdio"]

MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes of one message that are read before it is refused."""
_CHUNK = 65_536
_CAN_WAIT = os.name == "posix"
"""Whether the event loop can wait for pipes; on Windows it can't."""


class StdioTransport:
    """Messages on two file descriptors, which it owns."""

    def __init__(self, fd_in: int, fd_out: int, max_message: int = MAX_MESSAGE) -> None:
        self._in = _Descriptor(fd_in)
        self._out = _Descriptor(fd_out)
        self._lines = LineBuffer(max_message)
        self._at_end = False
        self._reading = anyio.CancelScope()

    async def receive(self) -> Sequence[Message]:
        """The messages that the next bytes complete. Raises EndOfStream at the end of the input, or when stopped."""
        while not self._at_end:
            chunk = None
            with self._reading:
                chunk = await self._in.read()
            if chunk is None:
                break
            self._reading = anyio.CancelScope()
            lines = self._lines.feed(chunk) if chunk else self._lines.end()
            if not chunk:
                self._at_end = True
            if lines:
                return [_message(line) for line in lines]
        raise anyio.EndOfStream

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Writes messages, all in one go. Raises BrokenResourceError when nobody reads any more."""
        data = b"".join(encode(one.message) + b"\n" for one in outgoing if one.message is not None)
        try:
            await self._out.write(data)
        except OSError:
            raise anyio.BrokenResourceError from None

    def stop(self) -> None:
        """Ends the input as if the peer had ended it: what is under way is finished."""
        self._at_end = True
        self._reading.cancel()

    def close(self) -> None:
        """Closes both descriptors and leaves them as they were found."""
        self._in.close()
        self._out.close()


def _message(line: bytes | Oversized) -> Message:
    if isinstance(line, Oversized):
        return Malformed(failure(None, InvalidRequest(f"a message may have {line.limit:,} bytes at most")))
    return decode(line)


class _Descriptor:
    """One file descriptor, read or written without holding up the loop."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        mode = os.fstat(fd).st_mode
        self._is_file = stat.S_ISREG(mode)
        self._waits = _CAN_WAIT and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        self._was_blocking = self._waits and os.get_blocking(fd)
        if self._waits:
            os.set_blocking(fd, False)

    async def read(self) -> bytes:
        """The next bytes; none at the end, or when the other side has failed."""
        try:
            if self._is_file:
                return os.read(self._fd, _CHUNK)
            if not self._waits:
                return await to_thread.run_sync(os.read, self._fd, _CHUNK, abandon_on_cancel=True)
            return await self._read_when_ready()
        except OSError:
            return b""

    async def _read_when_ready(self) -> bytes:
        while True:
            try:
                return os.read(self._fd, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._fd)

    async def write(self, data: bytes) -> None:
        """Writes all of `data`. Raises OSError where that can't be done."""
        if not (self._is_file or self._waits):
            await to_thread.run_sync(_write_all, self._fd, data)
            return
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)

    def close(self) -> None:
        if self._was_blocking:
            os.set_blocking(self._fd, True)
        os.close(self._fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@asynccontextmanager
async def stdio(max_message: int = MAX_MESSAGE) -> AsyncIterator[StdioTransport]:
    """This process's own stdin and stdout as a transport; both stand as before at the end."""
    sys.stdout.flush()
    fd_in, fd_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    transport = StdioTransport(fd_in, fd_out, max_message)
    try:
        yield transport
    finally:
        os.dup2(fd_in, 0)
        os.dup2(fd_out, 1)
        transport.close()
