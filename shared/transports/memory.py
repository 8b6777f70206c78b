"""Two connected transports in one process.

They exchange bytes, so that every test includes the codec. Each item of a queue is one complete message, so no
framing is needed.
"""

from collections.abc import Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ..protocol.session.events import Outgoing
from ..protocol.wire.codec import Codec
from ..protocol.wire.jsonrpc import Message


class MemoryTransport:
    """One end of the pair. Closing it ends the stream that the other end receives."""

    def __init__(
        self,
        outbox: MemoryObjectSendStream[bytes],
        inbox: MemoryObjectReceiveStream[bytes],
        *,
        is_client: bool = False,
        dialects: bool = False,
    ) -> None:
        self._outbox = outbox
        self._inbox = inbox
        self._codec = Codec(is_client=is_client, line_end=b"", dialects=dialects)

    async def receive(self) -> Sequence[Message]:
        """Return the next message. Raises EndOfStream when the other end is closed."""
        try:
            return self._codec.feed_body(await self._inbox.receive())
        except anyio.ClosedResourceError:
            raise anyio.EndOfStream from None

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Send messages. Raises BrokenResourceError when the other end is closed."""
        for item in outgoing:
            if item.message is not None and (data := self._codec.encode(item.message)):
                await self.send_bytes(data)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes, which need not be a valid message. Raises BrokenResourceError when the other end is closed."""
        try:
            await self._outbox.send(data)
        except anyio.ClosedResourceError:
            raise anyio.BrokenResourceError from None

    async def receive_bytes(self) -> bytes:
        """Return the bytes of the next message. Raises EndOfStream when the other end is closed."""
        return await self._inbox.receive()

    def close_sending(self) -> None:
        """Close the sending direction; messages from the other end can still be received."""
        self._outbox.close()

    def close(self) -> None:
        """Close both directions."""
        self._outbox.close()
        self._inbox.close()

    async def aclose(self) -> None:
        """Close both directions, as for any transport."""
        self.close()


def memory_pair(buffer_size: float = 1_024, *, dialects: bool = False) -> tuple[MemoryTransport, MemoryTransport]:
    """Return two connected transports, first the client's, then the server's. Each direction buffers `buffer_size`
    messages before its sender must wait. With `dialects`, the server accepts messages in dialects."""
    to_server, from_client = anyio.create_memory_object_stream[bytes](buffer_size)
    to_client, from_server = anyio.create_memory_object_stream[bytes](buffer_size)
    client = MemoryTransport(to_server, from_server, is_client=True)
    return client, MemoryTransport(to_client, from_client, dialects=dialects)
