"""One WebSocket, server side: texts in and out of a connection that has been upgraded (RFC 6455).

`websockets` has the state machine, which cuts frames and answers pings and closes; here is what holds a peer within
bounds. What has come and nobody has taken yet, and what the peer has not taken, stop the reading: who pings and never
reads holds up itself alone. A message is as long as the body of a request may be, in however many fragments, and has
as long to come. Who has not been heard of for two pauses is cut off, and so is who takes nothing of what is sent.

No extension is offered: compression would take more memory for each connection than everything else of it.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import cast

import anyio
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from ....concurrency import ExpiryQueue, Signal
from ....telemetry.footprint import count_bytes
from ..engine.write_backlog import backlog

CLOSE_SECONDS = 0.8
"""How long a peer that was sent a close frame has to answer it, and to take what was sent before: less than the
second for which a listener that stops waits for its connections, once its servers have drained."""
_UNTAKEN = 65_536
"""Bytes of messages that wait to be taken, from which on no more are read."""
_FRAME = 64
"""Bytes that a message takes besides its text, which may be empty."""
_READ = 4_096
"""Bytes that are cut into frames at once: 700 frames at most, which take some milliseconds."""
_FRAMES = 200
"""Frames from which on no more are cut until the event loop has turned."""
_PATIENCE = 2
"""Pauses in a row in which nothing was heard of the peer, after which it counts as dead."""

quiet = logging.getLogger("shared.transports.http.websocket.frames")
"""Where `websockets` logs: it would tell every connection, and the contents of its frames."""
quiet.setLevel(logging.WARNING)


class WebSocket(asyncio.Protocol):
    """One connection, once `frames` have accepted it. It ends by `close`."""

    def __init__(self, frames: ServerProtocol, pauses: ExpiryQueue, message_seconds: float) -> None:
        """`pauses` is that of all connections: when one is over, the peer is pinged. `message_seconds` is how long a
        message may take to come."""
        self._frames = frames
        self._pauses = pauses
        self._message_seconds = message_seconds
        self._texts: list[bytes] = []
        self._untaken = 0
        self._parts: bytearray | None = None
        self._left: memoryview | None = None
        self._moved = Signal()
        self._is_full = self._is_heard = self._is_finishing = self._is_lost = False
        self._silent = self._unsent = 0
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    # What whoever serves it does

    async def receive(self) -> Sequence[bytes]:
        """The messages that have come, one at least, once the peer takes what is sent. Raises EndOfStream once it is
        to `finish`, BrokenResourceError once it is closed."""
        while self._is_full or not self._texts:
            if self.is_closed:
                raise anyio.BrokenResourceError
            if self._is_finishing:
                raise anyio.EndOfStream
            await self._moved.wait()
        texts, self._texts, self._untaken = self._texts, [], 0
        self._read_on()
        return texts

    async def send(self, texts: Sequence[bytes]) -> None:
        """Sends messages; waits while the peer does not take them. Raises BrokenResourceError once it is closed."""
        if self.is_closed:
            raise anyio.BrokenResourceError
        for text in texts:
            count_bytes(len(text))
            self._frames.send_text(text)
        self._write()
        while self._is_full:
            if self.is_closed:
                raise anyio.BrokenResourceError
            await self._moved.wait()

    @property
    def is_closed(self) -> bool:
        """Whether either side has closed it, or the connection is lost."""
        return self._frames.state is not OPEN

    def finish(self) -> None:
        """Takes no more messages; what is due can still be sent."""
        self._is_finishing = True
        self._moved.wake()

    def close(self, code: int, reason: str) -> None:
        """Closes it, if it is open: nothing more is received or sent."""
        if not self.is_closed:
            self._frames.send_close(code, reason)
            self._write()

    async def lost(self) -> None:
        """Waits for the end of the connection, once it is closed: for `CLOSE_SECONDS` at most."""
        while not self._is_lost:
            await self._moved.wait()

    # What asyncio does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is this one's from now on."""
        self._transport = cast("asyncio.Transport", transport)
        self._pauses.start(self)

    def data_received(self, data: bytes) -> None:
        """Takes frames in. Of much that has come at once a part waits until the event loop has turned: a hundred
        thousand empty frames would hold up everybody else."""
        self._is_heard = True
        count_bytes(len(data))
        if len(data) > _READ:
            self._left = memoryview(data)
            self._go_on()
        else:
            self._cut(data)
            self._end_turn()

    def eof_received(self) -> None:
        """The peer has gone, with a close frame or without."""
        self._frames.receive_eof()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._frames.receive_eof()
        self._is_lost, self._is_full = True, False
        self._pauses.stop(self)
        if self._timer is not None:
            self._timer.cancel()
        self._moved.wake()

    def pause_writing(self) -> None:
        """The peer is too slow to take what is sent."""
        self._is_full = True
        self._read_on()

    def resume_writing(self) -> None:
        """The peer has taken most of what was sent."""
        self._is_full, self._is_heard = False, True
        self._read_on()
        self._moved.wake()

    # Frames

    def _go_on(self) -> None:
        """Takes in more of what is left, and has the event loop turn before anything is read: uvloop reads up to 32
        times a turn."""
        if self._left and not self._is_lost:
            frames = 0
            while self._left and frames < _FRAMES:
                frames += self._cut(self._left[:_READ])
                self._left = self._left[_READ:]
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._left = None
        self._end_turn()

    def _cut(self, data: bytes | memoryview) -> int:
        """Takes in the frames that `data` completes, and says how many they are."""
        self._frames.receive_data(bytes(data))
        frames = self._frames.events_received()
        for frame in frames:
            if isinstance(frame, Frame):
                self._take(frame)
        return len(frames)

    def _end_turn(self) -> None:
        self._write()
        if self._parts is None and not self._frames.reader.buffer:
            self._since = None
        elif self._since is None:
            self._since = asyncio.get_running_loop().time()
        self._read_on()

    def _take(self, frame: Frame) -> None:
        if self.is_closed:
            return
        if frame.opcode is Opcode.BINARY:
            self._frames.fail(CloseCode.UNSUPPORTED_DATA, "a message is a text frame")
        elif frame.opcode is Opcode.TEXT or frame.opcode is Opcode.CONT:
            self._take_text(frame)

    def _take_text(self, frame: Frame) -> None:
        """A message, or a part of one. That all parts together are within the limit `websockets` sees to."""
        # Nearly every message is one frame.
        if self._parts is None and frame.fin:
            text = bytes(frame.data)
        else:
            self._parts = self._parts or bytearray()
            self._parts += frame.data
            if not frame.fin:
                return
            text, self._parts = bytes(self._parts), None
        try:
            # `websockets` leaves that to its callers; RFC 6455, section 8.1, has the connection fail.
            text.decode()
        except UnicodeDecodeError:
            self._frames.fail(CloseCode.INVALID_DATA, "a message is text in UTF-8")
            return
        if not self._is_finishing:
            self._texts.append(text)
            self._untaken += _FRAME + len(text)
            self._since = None
            self._moved.wake()

    def _write(self) -> None:
        """Writes what is due; where that ends the connection, waits for its end, but not for long."""
        due = self._frames.data_to_send()
        if due and not self._transport.is_closing():
            self._transport.write(b"".join(due))
            # An empty piece is how `websockets` says that the sending side ends.
            if not due[-1] and self._transport.can_write_eof():
                self._transport.write_eof()
        if self.is_closed and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._transport.abort)
            self._moved.wake()
            self._read_on()

    def _read_on(self) -> None:
        """Reads on unless something is left, or too much waits already. What follows a close frame is read too, and
        dropped: to close the connection on a peer that still sends would lose it the close frame."""
        waits = self._is_full or self._untaken > _UNTAKEN
        if waits:
            self._since = None  # a message that we do not read takes no time of the peer
        if self._left is not None or (waits and not self.is_closed):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # The time

    def look(self) -> None:
        """Looks whether the peer is there, and pings it."""
        unsent = backlog(self._transport)
        # A peer that takes what is sent is alive, though it has no time to answer a ping.
        is_there = self._is_heard or unsent < self._unsent
        self._silent = 0 if is_there else self._silent + 1
        self._is_heard, self._unsent = False, unsent
        if self._silent >= _PATIENCE:
            self._transport.abort()
            return
        if self._since is not None and asyncio.get_running_loop().time() - self._since > self._message_seconds:
            self.close(CloseCode.POLICY_VIOLATION, "a message did not come in time")
        elif not (self.is_closed or self._is_full):
            self._frames.send_ping(b"")
            self._write()
        self._pauses.start(self)
