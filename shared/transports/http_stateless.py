"""One request of 2026-07-28: each POST is a peer of its own, served inside its HTTP request.

The reply is JSON when the answer is the first thing to send, with the status that belongs to it, and an event
stream when a notification comes before. A client that goes away has cancelled its request.
"""

from collections.abc import Sequence

import anyio

from ..protocol.events import Outgoing
from ..protocol.framing import ServerSentEvent
from ..protocol.http_rules import refuse, stateless_status
from ..protocol.jsonrpc import Failure, Message, Request, Response, encode
from .http_streams import Reply, Stage

__all__ = ["Exchange"]


class Exchange:
    """The transport of one request and its answer."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self._inbox: list[Message] = [request]
        self._reply = reply
        self._over = anyio.Event()
        self._gone = False

    async def receive(self) -> Sequence[Message]:
        """The request. Then raises EndOfStream when its answer has left or the server stops, and
        BrokenResourceError when the client has gone away."""
        if self._inbox:
            messages, self._inbox = self._inbox, []
            return messages
        await self._over.wait()
        if self._gone:
            raise anyio.BrokenResourceError
        raise anyio.EndOfStream

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Writes messages into the reply, the answer last. Raises BrokenResourceError when the client has gone."""
        if self._gone:
            raise anyio.BrokenResourceError
        answer = next((one.message for one in outgoing if isinstance(one.message, Response | Failure)), None)
        if answer is not None and self._reply.stage is Stage.NEW and outgoing[0].message is answer:
            await self._reply.json(stateless_status(answer), encode(answer))
        else:
            events = [ServerSentEvent(encode(one.message)) for one in outgoing if one.message is not None]
            if events:
                await self._reply.events(events, last=answer is not None)
        if answer is not None:
            self.end()

    def end(self) -> None:
        """Nothing more is expected of the client: the answer has left, or the server stops."""
        self._over.set()

    def leave(self) -> None:
        """The client has gone away."""
        self._gone = self._reply.stage is not Stage.ENDED
        self._over.set()

    async def close(self) -> None:
        """Ends a reply that never got its answer: the server has stopped."""
        if not self._gone and self._reply.stage is not Stage.ENDED:
            await self._reply.refuse(refuse(503, "the server is stopping"))
