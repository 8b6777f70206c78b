"""The server side of one WebSocket: texts to and from an upgraded connection (RFC 6455).

`websockets` has the state machine, which parses frames and answers pings and closes; this module limits a peer in its
use of resources. Reading pauses while received data is unconsumed, or while the peer has not read sent data: a peer
that pings and never reads delays only itself. A message has the length limit and the time limit of the body of a
request, in any number of fragments. A peer that is silent for two ping intervals is disconnected, and so is a peer
that does not read.

No extension is offered: compression would need more memory for each connection than everything else.
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
from ..engine.write_backlog import UpgradedProtocol, backlog

CLOSE_SECONDS = 0.8
"""Seconds that a peer has to answer a close frame, and to read the data before it: less than the second for which a
stopping listener waits for its connections, once its servers have drained."""
_COPIES = 3
"""The copies of a message that is being written: the result, its JSON, and the data that the peer has not read."""
_MAX_UNREAD_BYTES = 65_536
"""Maximum number of bytes of unread messages; beyond it, reading is paused."""
_FRAME_BYTES = 64
"""Bytes counted for a message in addition to its text, which may be empty."""
_READ_BYTES = 4_096
"""Number of bytes parsed at once: at most 700 frames, which take some milliseconds."""
_MAX_FRAMES = 200
"""Frames after which parsing waits for the next turn of the event loop."""
_MAX_SILENT_PAUSES = 2
"""Consecutive silent pauses after which the peer is considered dead."""

quiet = logging.getLogger("shared.transports.http.websocket.frames")
"""The logger of `websockets`, which would record every connection, and the contents of its frames."""
quiet.setLevel(logging.WARNING)


class WebSocket(UpgradedProtocol):
    """One connection, once `frames` have accepted it. It ends with `close`."""

    def __init__(self, frames: ServerProtocol, pauses: ExpiryQueue, message_seconds: float) -> None:
        """`pauses` is shared by all connections: at the end of each pause, the peer is pinged. `message_seconds` is
        the time limit for a message to arrive."""
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

    # For the session

    async def receive(self) -> Sequence[bytes]:
        """Return the received messages, at least one, once the peer reads the sent data. Raises EndOfStream after
        `finish`, BrokenResourceError once it is closed."""
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
        """Send messages; waits while the peer does not read them. Raises BrokenResourceError once it is closed."""
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
        """True if either side has closed the connection, or it is lost."""
        return self._frames.state is not OPEN

    def finish(self) -> None:
        """Stop accepting messages; pending ones can still be sent."""
        self._is_finishing = True
        self._moved.wake()

    def close(self, code: int, reason: str) -> None:
        """Close the connection, if it is open: nothing more is received or sent."""
        if not self.is_closed:
            self._frames.send_close(code, reason)
            self._write()

    async def lost(self) -> None:
        """Wait for the end of the connection once it is closed, for at most `CLOSE_SECONDS`."""
        while not self._is_lost:
            await self._moved.wait()

    # For asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._pauses.start(self)

    def data_received(self, data: bytes) -> None:
        """Parse received frames."""
        self._is_heard = True
        count_bytes(len(data))
        if len(data) > _READ_BYTES:
            # A part waits for the next turn of the event loop: a hundred thousand empty frames would delay all other
            # connections.
            self._left = memoryview(data)
            self._go_on()
        else:
            self._cut(data)
            self._end_turn()

    def eof_received(self) -> None:
        """Called when the peer has ended its side, with or without a close frame."""
        self._frames.receive_eof()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection is lost."""
        self._frames.receive_eof()
        self._is_lost, self._is_full = True, False
        self._not_unread()
        self._pauses.stop(self)
        if self._timer is not None:
            self._timer.cancel()
        self._moved.wake()

    def pause_writing(self) -> None:
        """Called when the peer reads too slowly."""
        self._is_full = True
        if self.unread is not None:
            self.unread.add(self._transport, _COPIES)
        self._read_on()

    def resume_writing(self) -> None:
        """Called when the peer has read most of the sent data."""
        self._is_full, self._is_heard = False, True
        self._not_unread()
        self._read_on()
        self._moved.wake()

    def _not_unread(self) -> None:
        if self.unread is not None:
            self.unread.remove(self._transport)

    # Frames

    def _go_on(self) -> None:
        """Parse more of the remaining data, and let the event loop turn before anything is read: uvloop reads up to
        32 times in a turn."""
        if self._left and not self._is_lost:
            frames = 0
            while self._left and frames < _MAX_FRAMES:
                frames += self._cut(self._left[:_READ_BYTES])
                self._left = self._left[_READ_BYTES:]
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._left = None
        self._end_turn()

    def _cut(self, data: bytes | memoryview) -> int:
        """Process the frames that `data` completes, and return their number."""
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
            self._frames.fail(CloseCode.UNSUPPORTED_DATA, "a message must be a text frame")
        elif frame.opcode is Opcode.TEXT or frame.opcode is Opcode.CONT:
            self._take_text(frame)

    def _take_text(self, frame: Frame) -> None:
        """Process a message, or a part of one. `websockets` enforces the limit of all parts combined."""
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
            # `websockets` leaves that to its callers; RFC 6455, section 8.1, requires the connection to fail.
            text.decode()
        except UnicodeDecodeError:
            self._frames.fail(CloseCode.INVALID_DATA, "a message must be UTF-8 text")
            return
        if not self._is_finishing:
            self._texts.append(text)
            self._untaken += _FRAME_BYTES + len(text)
            self._since = None
            self._moved.wake()

    def _write(self) -> None:
        """Write pending frames; if they end the connection, wait for its end, but not for long."""
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
        """Resume reading unless data remains, or too much is unconsumed. Data after a close frame is read and
        dropped: a peer that still sends would lose the close frame if the connection closed."""
        waits = self._is_full or self._untaken > _MAX_UNREAD_BYTES
        if waits:
            self._since = None  # time in which this side does not read does not count against the peer
        if self._left is not None or (waits and not self.is_closed):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Liveness

    def look(self) -> None:
        """Check that the peer is alive, and ping it."""
        unsent = backlog(self._transport)
        # A peer that reads is alive, even if it has no time to answer a ping.
        is_there = self._is_heard or unsent < self._unsent
        self._silent = 0 if is_there else self._silent + 1
        self._is_heard, self._unsent = False, unsent
        if self._silent >= _MAX_SILENT_PAUSES:
            self._transport.abort()
            return
        if self._since is not None and asyncio.get_running_loop().time() - self._since > self._message_seconds:
            self.close(CloseCode.POLICY_VIOLATION, "a message did not arrive in time")
        elif not (self.is_closed or self._is_full):
            self._frames.send_ping(b"")
            self._write()
        self._pauses.start(self)
