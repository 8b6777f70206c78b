"""One peer on a WebSocket: both eras and dialects are spoken on it, as on any stream of messages, one in each text
frame.

The handshake is an HTTP request that has passed all guards, and where it is refused it has an answer of HTTP. What
follows is served inside that request, and has a place among the sessions until it ends.
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
from ....server.run import Run
from ..engine.connections import hand_over
from ..streamable.reply import Http
from ..streamable.sessions import logged
from ..streamable.token_expiry import ending_with_token
from .connection import WebSocket, quiet

SUBPROTOCOL = Subprotocol("mcp")
"""What the clients of the official SDKs ask for."""
_OTHER_VERSION = refuse(426, "the version of WebSocket must be 13", Upgrade="websocket", Sec_WebSocket_Version="13")
_NO_HANDSHAKE = refuse(400, "these headers do not begin a WebSocket with the subprotocol 'mcp' or none")
_ELSEWHERE = refuse(501, "this listener has no WebSockets")


def negotiate(headers: HttpHeaders, max_message: int) -> tuple[ServerProtocol, bytes] | Refusal:
    """What reads and writes the frames after a handshake with these headers, and its answer. Messages have
    `max_message` bytes at most."""
    if headers.get("sec-websocket-version") != "13":
        return _OTHER_VERSION
    # OPEN is the state in which it reads frames: the request was read by others.
    frames = ServerProtocol(state=OPEN, max_size=max_message, select_subprotocol=_select, logger=quiet)
    response = frames.accept(Request("/", Headers(headers.values)))
    return (frames, response.serialize()) if response.status_code == 101 else _NO_HANDSHAKE


def _select(_frames: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Who asks for no subprotocol gets none, and speaks the same; browsers give up who asks for others."""
    if offered and SUBPROTOCOL not in offered:
        raise NegotiationError("no subprotocol in common")
    return SUBPROTOCOL if offered else None


class WebSocketSession:
    """One peer, as a transport for `serve`."""

    def __init__(
        self,
        socket: WebSocket,
        client: str,
        decode: Callable[[bytes], Awaitable[Sequence[Message]]],
        encode: Callable[[Message], bytes],
        use: Callable[["WebSocketSession"], None],
    ) -> None:
        """`client` is whose place it takes among the sessions; `decode` makes messages of a text, and `encode` a text
        of a message, or nothing where the peer gets none; `use` is told of each message that has come."""
        self.client = client
        self.uses = -1  # the `initialize` that opens other sessions is a message to this one
        self._use = use
        self._opened = asyncio.get_running_loop().time()
        self._socket = socket
        self._decode = decode
        self._encode = encode
        self._farewell: tuple[int, str] = CloseCode.NORMAL_CLOSURE, ""
        self._scope = CancelScope()

    @property
    def is_idle(self) -> bool:
        """Whether its peer has not said a word."""
        return self.uses < 0

    @property
    def idle_seconds(self) -> float:
        """For how long it has been open without a word."""
        return asyncio.get_running_loop().time() - self._opened if self.is_idle else 0.0

    def lapse(self) -> None:
        """Closes it, if its peer has not said a word."""
        if self.is_idle:
            self._socket.close(CloseCode.POLICY_VIOLATION, "no message has come")

    async def run(self, running: Run[Any], http: Http, answer: bytes) -> Refusal | None:
        """Answers the handshake with `answer`, and serves the peer until either side ends it."""
        # Under another ASGI server there is no connection to take over.
        if not hand_over(http.receive, self._socket, answer):
            return _ELSEWHERE
        try:
            end = partial(self.lapse_of_token, running.calls.limits.drain_seconds)
            with self._scope, logged(self.fail), ending_with_token(http.principal, lambda: None, end):
                await serve(running, self, principal=http.principal, client=self.client)
        finally:
            self._socket.close(*self._farewell)
        await self._socket.lost()
        return None

    def finish(self, seconds: float) -> None:
        """The server stops: nothing more is taken in, and what is under way has so many seconds to finish. That is
        counted from here: a peer that reads nothing does not let `serve` see that the stream has ended."""
        self._end(CloseCode.GOING_AWAY, "the server is stopping", seconds)

    def lapse_of_token(self, seconds: float) -> None:
        """The token of its peer is no longer valid: as at the end of the server."""
        self._end(CloseCode.POLICY_VIOLATION, "the token is no longer valid", seconds)

    def _end(self, code: int, reason: str, seconds: float) -> None:
        self._farewell = code, reason
        self._scope.deadline = anyio.current_time() + seconds
        self._socket.finish()

    def fail(self) -> None:
        """The server has failed, or what it says can't be written: what is under way is cancelled."""
        self._socket.close(CloseCode.INTERNAL_ERROR, "the server has failed")

    def make_room(self) -> None:
        """Others have fewer places: what is under way is cancelled."""
        self._socket.close(CloseCode.TRY_AGAIN_LATER, "too many sessions are open")

    async def receive(self) -> Sequence[Message]:
        """The messages that have come. Raises EndOfStream once the server stops, BrokenResourceError once the peer
        is gone."""
        messages = [message for text in await self._socket.receive() for message in await self._decode(text)]
        for _ in messages:
            self._use(self)
        return messages

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Sends messages. Raises BrokenResourceError once the peer is gone."""
        texts = [self._encode(one.message) for one in outgoing if one.message is not None]
        await self._socket.send([text for text in texts if text])
