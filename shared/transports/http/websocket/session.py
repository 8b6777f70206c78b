"""One peer on a WebSocket, with one message in each text frame. Both eras and the dialects are supported, as on any
stream of messages.

The handshake is an HTTP request that has passed all guards, and a refusal is an HTTP answer. The messages that follow
are served inside that request, which counts as a session until it ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio
from anyio import CancelScope
from websockets.datastructures import Headers
from websockets.exceptions import NegotiationError
from websockets.frames import CloseCode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from ....protocol.http.rules import Headers as HttpHeaders
from ....protocol.http.rules import Refusal, refuse
from ....protocol.session.events import Outgoing
from ....protocol.wire.jsonrpc import Message
from ....server.dispatch.connection import serve
from ....server.dispatch.room import Room
from ....server.run import Run
from ..engine.connections import hand_over
from ..streamable.reply import HttpExchange
from ..streamable.sessions import log_errors
from ..streamable.token_expiry import end_with_token
from .connection import WebSocket, frames_log

SUBPROTOCOL = Subprotocol("mcp")
"""The subprotocol that clients of the official SDKs request."""
_CHUNK_BYTES = 65_536
"""Number of bytes of messages from which they are sent before more are encoded."""
_OTHER_VERSION = refuse(426, "the WebSocket version must be 13", Upgrade="websocket", Sec_WebSocket_Version="13")
_NO_HANDSHAKE = refuse(400, "these headers do not open a WebSocket with the subprotocol 'mcp' or none")
_UNSUPPORTED = refuse(501, "this listener does not support WebSockets")


def negotiate(headers: HttpHeaders, max_message: int) -> tuple[ServerProtocol, bytes] | Refusal:
    """Perform the handshake with the headers of a request. Returns the state machine for the frames that follow and
    the answer to the request, or a refusal. Messages may have at most `max_message` bytes."""
    if headers.get("sec-websocket-version") != "13":
        return _OTHER_VERSION
    # The state is OPEN, in which frames are read, because uvicorn has already read the request.
    protocol = ServerProtocol(state=OPEN, max_size=max_message, select_subprotocol=_select, logger=frames_log)
    response = protocol.accept(Request("/", Headers(headers.values)))
    return (protocol, response.serialize()) if response.status_code == 101 else _NO_HANDSHAKE


def _select(_protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Select the subprotocol. A client that requests none gets none, and the messages are the same. If a client
    requests only other subprotocols, the handshake is refused, since browsers would fail if none of theirs was
    selected."""
    if offered and SUBPROTOCOL not in offered:
        raise NegotiationError("no common subprotocol")
    return SUBPROTOCOL if offered else None


class WebSocketSession:
    """A session on a WebSocket, as a transport for `serve`."""

    def __init__(
        self,
        socket: WebSocket,
        client: str,
        decode: Callable[[bytes], Awaitable[Sequence[Message]]],
        encode: Callable[[Message], bytes],
        on_message: Callable[["WebSocketSession"], None],
    ) -> None:
        """`client` is the name of the client that the session is counted for. `decode` converts a text to messages,
        and `encode` a message to a text, which is empty if nothing is to be sent. `on_message` is called for each
        received message."""
        self.client = client
        # `initialize` is also counted here; in other sessions it comes before the first counted request.
        self.request_count = -1
        self._on_message = on_message
        self._opened_at = asyncio.get_running_loop().time()
        self._socket = socket
        self._decode = decode
        self._encode = encode
        self._close_reason: tuple[int, str] = CloseCode.NORMAL_CLOSURE, ""
        self._scope = CancelScope()
        self._room: Room

    @property
    def is_idle(self) -> bool:
        """True if its peer has not sent a message."""
        return self.request_count < 0

    @property
    def idle_seconds(self) -> float:
        """The seconds for which the connection has been open without a message."""
        return asyncio.get_running_loop().time() - self._opened_at if self.is_idle else 0.0

    def close_if_idle(self) -> None:
        """Close the connection if its peer has not sent a message."""
        if self.is_idle:
            self._socket.close(CloseCode.POLICY_VIOLATION, "no message has arrived")

    async def run(self, running: Run[Any], http: HttpExchange, answer: bytes) -> Refusal | None:
        """Send `answer`, the answer to the handshake, and serve the peer until either side ends the connection."""
        # Only under uvicorn with our connections is there a connection to take over.
        if not hand_over(http.receive, self._socket, answer):
            return _UNSUPPORTED
        self._room = running.parts.for_principal(http.principal).calls.room
        try:
            end = partial(self.on_token_expired, running.calls.limits.drain_seconds)
            with self._scope, log_errors(self.fail), end_with_token(http.principal, lambda: None, end):
                await serve(running, self, principal=http.principal, client=self.client)
        finally:
            self._socket.close(*self._close_reason)
        await self._socket.wait_until_lost()
        return None

    def finish(self, drain_seconds: float) -> None:
        """End the session because the server stops: messages are no longer accepted, and pending calls have
        `drain_seconds` to finish. The time is limited here, because `serve` does not notice the end of the stream
        while the peer reads nothing."""
        self._end(CloseCode.GOING_AWAY, "the server is stopping", drain_seconds)

    def on_token_expired(self, drain_seconds: float) -> None:
        """End the connection because the token of its peer is no longer valid, like `finish`."""
        self._end(CloseCode.POLICY_VIOLATION, "the token is no longer valid", drain_seconds)

    def _end(self, code: int, reason: str, drain_seconds: float) -> None:
        self._close_reason = code, reason
        self._scope.deadline = anyio.current_time() + drain_seconds
        self._socket.finish()

    def fail(self) -> None:
        """End the connection: the server has failed, or a message can't be encoded. Pending calls are cancelled."""
        self._socket.close(CloseCode.INTERNAL_ERROR, "the server has failed")

    def evict(self) -> None:
        """End the connection to make room for another session. Pending calls are cancelled."""
        self._socket.close(CloseCode.TRY_AGAIN_LATER, "too many sessions are open")

    async def receive(self) -> Sequence[Message]:
        """Return the received messages. Raises EndOfStream once the server stops, BrokenResourceError once the peer
        has disconnected."""
        messages = [message for text in await self._socket.receive() for message in await self._decode(text)]
        for _ in messages:
            self._on_message(self)
        return messages

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Send messages. Raises BrokenResourceError once the peer has disconnected."""
        texts, size = list[bytes](), 0
        for item in outgoing:
            if item.message is not None and (text := self._encode(item.message)):
                texts.append(text)
                size += len(text)
            if size >= _CHUNK_BYTES:  # more is encoded once the peer has read these
                with self._room.use(self.client, size):
                    await self._socket.send(texts)
                texts, size = [], 0
        await self._socket.send(texts)
