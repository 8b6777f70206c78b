"""A byte stream as a transport: adds the framing that a custom connection needs.

    await serve(running, framed(stream, Codec()))

Each item from the stream may contain part of a message, one message, or many; messages are sent in one write.
Tested with sockets, and used for child processes.
"""

from collections.abc import Sequence

import anyio

from ..contracts import ByteStream, ClosableTransport, ImmediateStream
from ..protocol.session.events import Outgoing
from ..protocol.wire.codec import Codec
from ..protocol.wire.jsonrpc import Message


def framed(stream: ByteStream, codec: Codec) -> ClosableTransport:
    """Return the messages on `stream` as a transport for `serve` or a client. `codec` is for this stream only."""
    return _Framed(stream, codec)


class _Framed:
    def __init__(self, stream: ByteStream, codec: Codec) -> None:
        self._stream = stream
        self._immediate_stream = stream if isinstance(stream, ImmediateStream) else None
        self._codec = codec
        self._has_ended = False

    async def receive(self) -> Sequence[Message]:
        while not self._has_ended:
            try:
                data = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                data = b""
            except OSError:
                raise anyio.BrokenResourceError from None
            self._has_ended = not data
            messages = self._codec.feed(data) if data else self._codec.end()
            if messages:
                return messages
        raise anyio.EndOfStream

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        if self._immediate_stream is None:
            return False
        data = b"".join([self._codec.encode(item.message) for item in outgoing if item.message is not None])
        return not data or self._immediate_stream.try_send(data)

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        data = b"".join([self._codec.encode(item.message) for item in outgoing if item.message is not None])
        if not data:
            return
        try:
            await self._stream.send(data)
        except (OSError, anyio.ClosedResourceError):
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        await self._stream.aclose()
