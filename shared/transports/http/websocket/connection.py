"""The server side of one WebSocket: messages to and from an upgraded connection (RFC 6455).

The library `websockets` contains the state machine, which parses frames and answers pings and close frames. This
module limits the resources that a peer can use. Reading pauses while much received data is unprocessed, or while the
peer does not read: a peer that sends pings and never reads delays only itself. A message, in any number of fragments,
has the limits of length and time of a request's body. A peer that is silent for two ping intervals is disconnected,
and so is a peer that does not read.

No extension is offered: compression would need more memory for each connection than everything else together.
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
"""Seconds that a peer has to read the remaining data and to answer a close frame. It is less than the second for
which a stopping listener waits for its connections after the calls of its servers have ended."""
_COPIES = 3
"""The copies of a message in memory while it is written: the result, its JSON, and the data not read by the peer."""
_MAX_UNPROCESSED_BYTES = 65_536
"""Maximum number of bytes of received messages that have not been processed; beyond it, reading is paused."""
_MESSAGE_OVERHEAD_BYTES = 64
"""Bytes counted for each message in addition to its text, because many empty messages use memory too."""
_PARSED_BYTES = 4_096
"""Number of bytes parsed at once. They contain at most 700 frames, which take a few milliseconds."""
_MAX_FRAMES = 200
"""Number of frames after which parsing waits for the next turn of the event loop."""
_MAX_SILENT_INTERVALS = 2
"""Consecutive ping intervals without a sign of life after which the peer is considered dead."""

frames_log = logging.getLogger("shared.transports.http.websocket.frames")
"""The logger of `websockets`, which would record every connection, and the contents of its frames."""
frames_log.setLevel(logging.WARNING)


class WebSocket(UpgradedProtocol):
    """One connection, whose handshake `protocol` has completed. It ends with `close`."""

    def __init__(self, protocol: ServerProtocol, ping_timers: ExpiryQueue, message_seconds: float) -> None:
        """`ping_timers` is shared by all connections, and calls `check_alive` at the end of each ping interval.
        `message_seconds` is the time limit for a message to arrive."""
        self._protocol = protocol
        self._ping_timers = ping_timers
        self._message_seconds = message_seconds
        self._messages: list[bytes] = []
        self._unprocessed_bytes = 0
        self._fragments: bytearray | None = None
        self._unparsed: memoryview | None = None
        self._state_changed = Signal()
        self._is_peer_slow = self._has_read_or_sent = self._is_finishing = self._is_lost = False
        self._silent_intervals = self._backlog = 0
        self._message_began: float | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    # For the session

    async def receive(self) -> Sequence[bytes]:
        """Return the received messages, at least one. Waits while the peer does not read the sent data. Raises
        EndOfStream after `finish`, BrokenResourceError once the connection is closed."""
        while self._is_peer_slow or not self._messages:
            if self.is_closed:
                raise anyio.BrokenResourceError
            if self._is_finishing:
                raise anyio.EndOfStream
            await self._state_changed.wait()
        messages, self._messages, self._unprocessed_bytes = self._messages, [], 0
        self._update_reading()
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages. Waits while the peer does not read them. Raises BrokenResourceError once the connection is
        closed."""
        if self.is_closed:
            raise anyio.BrokenResourceError
        for message in messages:
            count_bytes(len(message))
            self._protocol.send_text(message)
        self._write()
        while self._is_peer_slow:
            if self.is_closed:
                raise anyio.BrokenResourceError
            await self._state_changed.wait()

    @property
    def is_closed(self) -> bool:
        """True if either side has closed the connection, or it is lost."""
        return self._protocol.state is not OPEN

    def finish(self) -> None:
        """Stop accepting messages; pending ones can still be sent."""
        self._is_finishing = True
        self._state_changed.wake()

    def close(self, code: int, reason: str) -> None:
        """Close the connection, if it is open: nothing more is received or sent."""
        if not self.is_closed:
            self._protocol.send_close(code, reason)
            self._write()

    async def wait_until_lost(self) -> None:
        """Wait for the end of the connection once it is closed, for at most `CLOSE_SECONDS`."""
        while not self._is_lost:
            await self._state_changed.wait()

    # For asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._ping_timers.start(self)

    def data_received(self, data: bytes) -> None:
        """Parse received frames."""
        self._has_read_or_sent = True
        count_bytes(len(data))
        if len(data) > _PARSED_BYTES:
            # The data is parsed in several turns of the event loop: otherwise a hundred thousand empty frames would
            # delay all other connections.
            self._unparsed = memoryview(data)
            self._parse_more()
        else:
            self._parse(data)
            self._end_turn()

    def eof_received(self) -> None:
        """Called when the peer has ended its side, with or without a close frame."""
        self._protocol.receive_eof()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the connection is lost."""
        self._protocol.receive_eof()
        self._is_lost, self._is_peer_slow = True, False
        self._stop_counting_unread()
        self._ping_timers.stop(self)
        if self._close_timer is not None:
            self._close_timer.cancel()
        self._state_changed.wake()

    def pause_writing(self) -> None:
        """Called when the peer reads too slowly."""
        self._is_peer_slow = True
        if self.unread is not None:
            self.unread.add(self._transport, _COPIES)
        self._update_reading()

    def resume_writing(self) -> None:
        """Called when the peer has read most of the sent data."""
        self._is_peer_slow, self._has_read_or_sent = False, True
        self._stop_counting_unread()
        self._update_reading()
        self._state_changed.wake()

    def _stop_counting_unread(self) -> None:
        if self.unread is not None:
            self.unread.remove(self._transport)

    # Frames

    def _parse_more(self) -> None:
        """Parse more of the remaining data. Reading resumes one turn of the event loop later, because uvloop may read
        32 times in one turn."""
        if self._unparsed and not self._is_lost:
            frames = 0
            while self._unparsed and frames < _MAX_FRAMES:
                frames += self._parse(self._unparsed[:_PARSED_BYTES])
                self._unparsed = self._unparsed[_PARSED_BYTES:]
            asyncio.get_running_loop().call_soon(self._parse_more)
        else:
            self._unparsed = None
        self._end_turn()

    def _parse(self, data: bytes | memoryview) -> int:
        """Process the frames that `data` completes, and return their number."""
        self._protocol.receive_data(bytes(data))
        frames = self._protocol.events_received()
        for frame in frames:
            if not isinstance(frame, Frame) or self.is_closed:
                continue
            if frame.opcode is Opcode.BINARY:
                self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "a message must be a text frame")
            elif frame.opcode is Opcode.TEXT or frame.opcode is Opcode.CONT:
                self._process_text(frame)
        return len(frames)

    def _end_turn(self) -> None:
        self._write()
        if self._fragments is None and not self._protocol.reader.buffer:
            self._message_began = None
        elif self._message_began is None:
            self._message_began = asyncio.get_running_loop().time()
        self._update_reading()

    def _process_text(self, frame: Frame) -> None:
        """Process a message, or a fragment of one. `websockets` limits the length of all fragments together."""
        # Nearly every message is one frame.
        if self._fragments is None and frame.fin:
            text = bytes(frame.data)
        else:
            self._fragments = self._fragments or bytearray()
            self._fragments += frame.data
            if not frame.fin:
                return
            text, self._fragments = bytes(self._fragments), None
        try:
            # `websockets` leaves the check of UTF-8 to its callers. RFC 6455, section 8.1, requires the connection to
            # fail.
            text.decode()
        except UnicodeDecodeError:
            self._protocol.fail(CloseCode.INVALID_DATA, "a message must be UTF-8 text")
            return
        if not self._is_finishing:
            self._messages.append(text)
            self._unprocessed_bytes += _MESSAGE_OVERHEAD_BYTES + len(text)
            self._message_began = None
            self._state_changed.wake()

    def _write(self) -> None:
        """Write pending frames. If they close the connection, abort it after `CLOSE_SECONDS` unless the peer does."""
        pieces = self._protocol.data_to_send()
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))
            # `websockets` returns an empty piece at the end of what it sends.
            if not pieces[-1] and self._transport.can_write_eof():
                self._transport.write_eof()
        if self.is_closed and self._close_timer is None:
            self._close_timer = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._transport.abort)
            self._state_changed.wake()
            self._update_reading()

    def _update_reading(self) -> None:
        """Pause reading while received data has not been parsed, too much is unprocessed, or the peer does not read;
        otherwise resume. After a close frame, data is read and dropped: if the connection closed while the peer is
        still sending, the peer would lose the close frame."""
        is_paused = self._is_peer_slow or self._unprocessed_bytes > _MAX_UNPROCESSED_BYTES
        if is_paused:
            self._message_began = None  # the time in which this side does not read is not counted
        if self._unparsed is not None or (is_paused and not self.is_closed):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Liveness

    def check_alive(self) -> None:
        """Check that the peer is alive, and ping it."""
        unread_bytes = backlog(self._transport)
        # A peer that reads is alive, even if it has no time to answer a ping.
        is_alive = self._has_read_or_sent or unread_bytes < self._backlog
        self._silent_intervals = 0 if is_alive else self._silent_intervals + 1
        self._has_read_or_sent, self._backlog = False, unread_bytes
        if self._silent_intervals >= _MAX_SILENT_INTERVALS:
            self._transport.abort()
            return
        if (
            self._message_began is not None
            and asyncio.get_running_loop().time() - self._message_began > self._message_seconds
        ):
            self.close(CloseCode.POLICY_VIOLATION, "a message did not arrive in time")
        elif not (self.is_closed or self._is_peer_slow):
            self._protocol.send_ping(b"")
            self._write()
        self._ping_timers.start(self)
