"""The stdio transport: one JSON message per line on fd 0 and fd 1 (2025-11-25, Transports, stdio).

stdout belongs to the protocol, so other output is kept away from it in two ways. First, the transport uses a private
copy of fd 1, and fd 1 itself becomes a copy of stderr, where a write by a C library or a child does no harm. Second,
`print` writes to the log: its output could wait in the buffer of `sys.stdout` until fd 1 is restored, and a write to
a stderr that nobody reads could block. fd 0 becomes empty, so that children can't read messages.

How a descriptor is read and written depends on its kind. Pipes and sockets are made non-blocking, and the event loop
waits for them. A file is always ready. A terminal is shared with the shell, so it must not become non-blocking.
Terminals, other kinds, and everything on systems where the event loop can't wait for pipes, are read and written in
threads. Unlike anyio's threads, these don't keep the process alive: a read that never returns must not keep the
process from ending.

The transport uses its codec directly. With `framed`, each message would pass through one more coroutine in each
direction: a ping took 19.2 us of CPU instead of 18.6.
"""

import asyncio
import io
import logging
import os
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

import anyio
import anyio.lowlevel

try:
    import fcntl
except ImportError:  # not on Windows
    _PIPE_SIZE = None
else:
    _PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)

from ..protocol.session.events import Outgoing
from ..protocol.wire.codec import MAX_MESSAGE, Codec
from ..protocol.wire.jsonrpc import Message
from ..protocol.wire.weight import HEAVY_BYTES
from ..steps import Steps
from ..telemetry.footprint import count_bytes

_CHUNK_BYTES = 65_536
_PIPE_BYTES = 1_048_576
"""The capacity of a pipe in bytes that is requested from the system, so that a large answer fits into one write."""
_LARGE_BYTES = 4_096
"""The size in bytes from which data are passed to `count_bytes`, so that their memory is returned to the system; for
smaller messages the garbage collector does that."""
_MAX_MESSAGES = 8
"""Maximum number of messages that `try_send` writes; `send` writes more, in pieces."""
_ATOMIC_BYTES = getattr(select, "PIPE_BUF", 512)
"""Maximum number of bytes of which a pipe accepts either all or none."""
_POLL_SECONDS = 0.02
"""Seconds between two checks of whether the output still has a reader."""
_UNREAD_SECONDS = 5.0
"""Seconds between two checks of a peer from which nothing is read, because it does not read its answers. If it has
closed its stream and has read nothing since the last check, it is considered gone."""
_CAN_WAIT = os.name == "posix" and hasattr(os, "set_blocking") and hasattr(select, "poll")
"""True if the event loop can wait for pipes; on Windows it can't."""

log = logging.getLogger("shared.stdout")


class StdioTransport:
    """The messages on two file descriptors, which the transport owns and closes."""

    def __init__(self, fd_in: int, fd_out: int, max_message: int = MAX_MESSAGE, *, dialects: bool = False) -> None:
        codec = Codec(max_message, dialects=dialects)
        self._out = _Output(fd_out, codec)
        self._in = _Input(fd_in, codec, self._out)
        self.ended = self._in.ended
        """Set when reading has ended: the peer has closed its stream, or `stop` was called."""
        # The methods of the parts are used directly, because wrappers would add a coroutine for each message.
        self.receive, self.receive_by = self._in.receive, self._in.receive_by
        self.send, self.try_send = self._out.send, self._out.try_send

    async def wait_gone(self) -> None:
        """Wait until reading has ended, and the output has no reader anymore or one that reads nothing."""
        await self.ended.wait()
        # The system reports a missing reader only when asked.
        while not (self._out.has_no_reader or self._in.is_abandoned):  # noqa: ASYNC110
            await anyio.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End the input as if the peer had ended it: pending calls are finished."""
        self._in.stop()

    def close(self) -> None:
        """Close both descriptors and restore their state, except the size of a pipe."""
        self._in.close()
        self._out.close()


class _Descriptor:
    """One file descriptor, read or written without blocking the event loop."""

    def __init__(self, fd: int, codec: Codec) -> None:
        self._fd = fd
        self._codec = codec
        mode = os.fstat(fd).st_mode
        self._is_file, self._is_pipe = stat.S_ISREG(mode), _CAN_WAIT and stat.S_ISFIFO(mode)
        self._can_wait = _CAN_WAIT and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        self._was_blocking = False
        if sys.platform != "win32" and self._can_wait:
            self._was_blocking = os.get_blocking(fd)
            # The flag belongs to the open file, not to the descriptor: all processes that share the pipe see it, so
            # `close` restores it.
            os.set_blocking(fd, False)
        if sys.platform != "win32" and _PIPE_SIZE is not None and stat.S_ISFIFO(mode):
            with suppress(OSError):  # the user's pipes may have reached their limit
                # Linux gives a pipe 64 KiB: an answer of a megabyte would take sixteen turns of both programs.
                fcntl.fcntl(fd, _PIPE_SIZE, _PIPE_BYTES)

    def close(self) -> None:
        """Close the descriptor and restore its state, except the size of a pipe."""
        if sys.platform != "win32" and self._was_blocking:
            os.set_blocking(self._fd, True)
        os.close(self._fd)


class _Input(_Descriptor):
    """The descriptor from which messages are read."""

    def __init__(self, fd: int, codec: Codec, output: "_Output") -> None:
        super().__init__(fd, codec)
        self._output = output
        self.ended = anyio.Event()
        self.is_abandoned = False
        """True if the peer has closed its stream and does not read the sent data."""
        self._arrival: asyncio.Future[Sequence[Message]] | None = None
        self._incomplete_bytes = 0
        """The number of bytes of an incomplete message that have arrived."""
        self._is_decoding = False
        """True while the end of a large message is decoded in steps."""
        self._is_registered = False
        self._handle: Callable[[Sequence[Message]], Sequence[Message]] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def receive(self) -> Sequence[Message]:
        """Return the messages that the next bytes complete. Raises EndOfStream at the end of the input, or after
        `stop`."""
        # Each path lets the event loop run other tasks: a peer that never pauses must not prevent the tasks for its
        # own messages from running.
        while not self.ended.is_set():
            if self._is_file:
                # A file is always ready, so without a checkpoint no other task would run.
                await anyio.lowlevel.checkpoint()
                messages = self._decode(_read(self._fd))
            else:
                self._arrival = asyncio.get_running_loop().create_future()
                if not self._is_registered:
                    self._start_reading()
                messages = await self._arrival
            if messages:
                return messages
        raise anyio.EndOfStream

    def receive_by(self, handle: Callable[[Sequence[Message]], Sequence[Message]]) -> None:
        """While `receive` is waiting, pass messages to `handle` as soon as they arrive; `receive` returns only the
        messages that `handle` returns. This has no effect if the input is read in threads or is a file."""
        self._handle = handle

    def stop(self) -> None:
        """End the input as if the peer had ended it."""
        self.ended.set()
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(())

    def close(self) -> None:
        """Close the descriptor and restore its state, except the size of a pipe."""
        self._stop_reading()
        super().close()

    def _start_reading(self) -> None:
        """Wait for the next bytes. The descriptor stays registered with the event loop afterwards, because
        registering it again costs more than reading a message."""
        loop = asyncio.get_running_loop()
        self._stop_checking()
        if self._can_wait:
            loop.add_reader(self._fd, self._on_readable)
            self._is_registered = True
        else:
            threading.Thread(target=self._read_in_thread, args=(loop,), name="stdin", daemon=True).start()

    def _stop_reading(self) -> None:
        if self._is_registered:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._is_registered = False
        self._stop_checking()

    def _check_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(
            _UNREAD_SECONDS, self._check_abandoned, self._output.written
        )

    def _check_abandoned(self, written: int) -> None:
        """End the input if the peer has closed its stream and has read nothing since the last check, when the number
        of `written` bytes was the same."""
        self._timer = None
        if _has_hung_up(self._fd) and self._output.written == written:
            self.is_abandoned = True
            self.stop()
        else:
            self._check_later()

    def _stop_checking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_readable(self) -> None:
        # While there is unread data, the event loop would call this in every turn, so the descriptor is unregistered.
        if self._arrival is None or self._arrival.done() or self._is_decoding:
            self._stop_reading()  # nothing reads at the moment: the peer has to wait
            if not self.ended.is_set():
                self._check_later()
            return
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._on_data(chunk)

    def _read_in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        data = _read(self._fd)
        with suppress(RuntimeError):  # the loop is closed, and nothing is waiting anymore
            # A future's result may be set only in the thread of its loop.
            loop.call_soon_threadsafe(self._on_data, data)

    def _on_data(self, chunk: bytes) -> None:
        arrival = self._arrival
        if arrival is None or arrival.done():
            return
        if self._incomplete_bytes >= HEAVY_BYTES and chunk:
            count_bytes(len(chunk))
            self._is_decoding = True
            self._decode_step(arrival, self._codec.feed_steps(chunk))
            return
        messages = self._decode(chunk)
        self._incomplete_bytes = 0 if messages else self._incomplete_bytes + len(chunk)
        if self._handle is not None and self._is_registered and chunk:
            # Handling messages here saves a turn of the event loop, which costs as much as a small answer.
            rest: Sequence[Message] | None = None
            try:
                rest = self._handle(messages)
            finally:
                error = sys.exception() if rest is None else None
                if error is not None:  # the event loop would only log the error, and these messages would be lost
                    arrival.set_exception(error)
            if not rest:
                return
            messages = rest
        arrival.set_result(messages)

    def _decode_step(self, arrival: "asyncio.Future[Sequence[Message]]", steps: Steps[list[Message]]) -> None:
        """Decode the next part of a large message, and continue in the next turn of the event loop until the end."""
        try:
            next(steps)
        except StopIteration as end:
            self._is_decoding = False
            self._incomplete_bytes = 0 if end.value else self._incomplete_bytes
            if not arrival.done() and end.value:
                arrival.set_result(end.value)
            elif not self._is_registered and not arrival.done():
                self._start_reading()
        else:
            asyncio.get_running_loop().call_soon(self._decode_step, arrival, steps)

    def _decode(self, chunk: bytes) -> Sequence[Message]:
        if not chunk:
            self.ended.set()
            return self._codec.end()
        if len(chunk) >= _LARGE_BYTES:
            count_bytes(len(chunk))
        return self._codec.feed(chunk)


class _Output(_Descriptor):
    """The descriptor to which messages are written."""

    def __init__(self, fd: int, codec: Codec) -> None:
        super().__init__(fd, codec)
        self.written = 0
        """The number of bytes that `send` has written. It grows only while the peer reads."""
        self._unsent: tuple[Sequence[Outgoing], bytes] = (), b""
        """The messages that `try_send` could not write, with their encoding."""

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        """Write a few small messages if this is possible without waiting: either all of them or none. Returns True if
        they were written."""
        # Only for pipes: a socket may accept a part of a write, and the rest would have to wait.
        if not self._is_pipe or len(outgoing) > _MAX_MESSAGES:
            return False
        data = b"".join([self._codec.encode(item.message) for item in outgoing if item.message is not None])
        if len(data) <= _ATOMIC_BYTES:  # a pipe accepts all of this or nothing
            try:
                # POSIX guarantees for at most PIPE_BUF bytes that all are written, or none with EAGAIN.
                os.write(self._fd, data)
            except OSError:  # no room, or an error that `send` reports
                pass
            else:
                return True
        self._unsent = outgoing, data
        return False

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Write messages, combining small ones. Raises BrokenResourceError when the reader has disconnected."""
        (unsent, data), self._unsent = self._unsent, ((), b"")
        # `try_send` has already encoded these messages; encoding takes longer than everything else here.
        encoded = [data] if outgoing is unsent else []
        size = 0
        try:
            for item in () if outgoing is unsent else outgoing:
                if item.message is not None:
                    encoded.append(self._codec.encode(item.message))
                    size += len(encoded[-1])
                if size >= HEAVY_BYTES:
                    # Encoding a large answer takes long, so other tasks run before the next.
                    await anyio.lowlevel.checkpoint()
                if size >= _CHUNK_BYTES:
                    await self._write(b"".join(encoded))
                    encoded, size = [], 0
            if encoded:
                await self._write(b"".join(encoded))
        except OSError:
            raise anyio.BrokenResourceError from None

    @property
    def has_no_reader(self) -> bool:
        """True if the reading side is closed, as far as this can be known without writing."""
        return self._can_wait and _has_hung_up(self._fd)

    async def _write(self, data: bytes) -> None:
        """Write all of `data`. Raises OSError if that fails."""
        if len(data) >= _LARGE_BYTES:
            count_bytes(len(data))
        if not (self._is_file or self._can_wait):
            await _write_in_thread(self._fd, data)
            self.written += len(data)
            return
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._fd, view)
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            else:
                view = view[written:]
                self.written += written


def _has_hung_up(fd: int) -> bool:
    """Return True if the other side of a pipe or socket is closed, even if data remain to be read."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    # With 0, only errors and hang-ups are reported, not that there is room to write.
    poll.register(fd, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK_BYTES)
    except OSError:
        return b""


async def _write_in_thread(fd: int, data: bytes) -> None:
    """Write all of `data` in a thread. Raises OSError if that fails. Cancelling this does not stop the thread, which
    does not keep the process alive."""
    loop, done = asyncio.get_running_loop(), anyio.Event()
    write_error: OSError | None = None

    def run() -> None:
        nonlocal write_error
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except OSError as error:
            write_error = error
        with suppress(RuntimeError):  # the loop is closed, and nothing is waiting anymore
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="stdout", daemon=True).start()
    await done.wait()
    if write_error is not None:
        raise write_error


@asynccontextmanager
async def stdio(max_message: int = MAX_MESSAGE, *, dialects: bool = False) -> AsyncIterator[StdioTransport]:
    """Yield this process's own stdin and stdout as a transport; both are restored at the end. With `dialects`,
    messages may be in a dialect."""
    _flush(sys.stdout)
    # Earlier output is written before the protocol begins, and not in the middle of it.
    fd_in, fd_out = os.dup(0), os.dup(1)
    transport = StdioTransport(fd_in, fd_out, max_message, dialects=dialects)
    try:
        with _protect_standard_files(fd_in, fd_out):
            yield transport
    finally:
        transport.close()


@contextmanager
def _protect_standard_files(fd_in: int, fd_out: int) -> Iterator[None]:
    """Redirect fd 0 and 1 during the block, so that only the owner of their copies `fd_in` and `fd_out` can use the
    original files."""
    null_fd = os.open(os.devnull, os.O_RDWR)
    # So that a child, or `input()`, can't consume messages.
    os.dup2(null_fd, 0)
    # C libraries write to fd 1, whatever `sys.stdout` is.
    os.dup2(2, 1)
    try:
        with redirect_stdout(_StdoutLog.open_text()):
            yield
    finally:
        if not _flush(sys.stdout):
            # Output that a broken stderr did not accept is dropped: it must not appear in the protocol.
            os.dup2(null_fd, 1)
            _flush(sys.stdout)
        os.dup2(fd_in, 0)
        os.dup2(fd_out, 1)
        os.close(null_fd)


def _flush(stream: TextIO | None) -> bool:
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        return False
    return True


class _StdoutLog(io.RawIOBase):
    """The replacement for `sys.stdout`: each line becomes a warning in the log."""

    @classmethod
    def open_text(cls) -> TextIO:
        return io.TextIOWrapper(cast("Any", cls()), "utf-8", errors="backslashreplace", line_buffering=True)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    def write(self, data: Any) -> int:
        # Empty lines are dropped: for a text of several lines, `print` writes an additional line end.
        for line in filter(None, bytes(data).decode("utf-8", "replace").splitlines()):
            log.warning("%s", line)
        return len(data)
