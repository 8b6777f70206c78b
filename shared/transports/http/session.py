"""One session of the handshake era over HTTP: many POSTs and at most one GET make one peer.

It drives the connection with that peer: what POSTs bring is taken in at once, what is due goes to the streams that
HTTP responses read. Idle, a session is a few objects, and neither a task nor a timer.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from ...protocol.http.rules import Refusal, refuse, request_ids
from ...protocol.identity import Principal
from ...protocol.session.events import Outgoing
from ...protocol.versions import Version
from ...protocol.wire.framing import ServerSentEvent
from ...protocol.wire.jsonrpc import Message
from ...server.running import Running
from .limits import Keeping, Room
from .replay import Reader
from .routing import Streams

__all__ = ["HttpSession"]

_ENDED = refuse(404, "the session has ended")
CATCH_UP_SECONDS = 0.5
"""How long a session waits for a reader that is too far behind, before it is cut off. A burst is no slow client."""


class HttpSession:
    """One session. It ends by `leave` or `finish`."""

    __slots__ = (
        "_connection",
        "_ended",
        "_held",
        "_idle",
        "_loop",
        "_open",
        "_patience",
        "_streams",
        "_unused",
        "client",
        "id",
        "principal",
        "uses",
    )

    def __init__(
        self,
        running: Running[Any],
        principal: Principal | None,
        client: str,
        keeping: Keeping,
        unused: Callable[["HttpSession"], None],
    ) -> None:
        """`client` names who has opened it. `keeping` is that of all sessions. `unused` is told when nobody
        has used this one for too long."""
        self.id = secrets.token_urlsafe(32)
        self.principal = principal
        self.client = client
        self.uses = 0
        """How many requests it has had since it was opened."""
        limits = keeping.limits
        self._streams = Streams(limits, Room(limits.session_replay_bytes, keeping.room), keeping.unread)
        self._connection = running.connect(principal, self._deliver, client)
        self._held: Sequence[Outgoing] = ()
        self._patience: asyncio.TimerHandle | None = None
        self._open = 0
        self._ended = False
        self._unused = unused
        self._loop = asyncio.get_running_loop()
        self._idle = keeping.idle
        self._idle.start(self, unused)

    # What HTTP requests do

    @property
    def spoken(self) -> Version | None:
        """The version negotiated, once `initialize` is answered."""
        return self._streams.spoken

    def in_use(self, message: Message) -> bool:
        """Whether `message` has the id of a request that is not answered yet."""
        return self._streams.in_use(request_ids(message))

    def post(self, message: Message) -> Reader | None:
        """Takes a message in; who reads its answers, or None where none is due."""
        ids = request_ids(message)
        reader = self._streams.post(ids) if ids else None
        self._connection.take(message)
        if reader is None:
            self._use()
        return reader

    def listen(self) -> Reader | Refusal:
        """Who reads what no request asked for; 409 while somebody does."""
        return self._streams.listen()

    def resume(self, event_id: str) -> Reader | Refusal:
        """Who reads what came after that event; 400 where it is unknown, or not everything after it is kept."""
        return self._streams.resume(event_id)

    def begin(self, reader: Reader) -> list[ServerSentEvent]:
        """What the response of `reader` begins with; from now on its client may come back."""
        return self._streams.begin(reader)

    @property
    def streams(self) -> int:
        """How many streams are being read."""
        return self._open

    def opened(self) -> None:
        """A stream of this session is being read: the session is not idle."""
        self._open += 1
        self._idle.stop(self)

    def closed(self, reader: Reader) -> None:
        """`reader` reads no more. What it would still get waits for the next one, or is lost."""
        self._open -= 1
        self._use()
        self._streams.leave(reader)
        if self._ended:
            reader.stream.forget()
        self.caught_up()

    def caught_up(self) -> None:
        """A reader has taken what there was for it: what was held back for its sake goes on."""
        if self._patience is not None:
            self._patience.cancel()
            self._go_on()

    async def finish(self, *, orderly: bool) -> None:
        """Ends the session: what is under way is finished within limits if `orderly`, else cancelled. Its streams
        end, those without an answer with a refusal."""
        refusal = refuse(503, "the server is stopping") if orderly else _ENDED
        try:
            if orderly:
                await self._connection.drain()
        finally:
            try:
                await self._connection.close()
            finally:  # whatever the server's own code does, clients don't wait for it
                self._close(refusal)

    def leave(self) -> bool:
        """Cancels what is under way and ends the session, if nothing was; else `finish` has to wait for the end."""
        left = self._connection.leave()
        if left:
            self._close(_ENDED)
        return left

    def _close(self, refusal: Refusal) -> None:
        self._ended = True
        self._idle.stop(self)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self._streams.close(refusal)

    # What is due to the client

    def _deliver(self) -> None:
        while self._patience is None and (outgoing := self._connection.outgoing()):
            self._send(outgoing)
        if not self._open:
            self._streams.compact()

    def _send(self, outgoing: Sequence[Outgoing], *, patient: bool = True) -> None:
        self._held = self._streams.send(outgoing, patient=patient)
        if self._held:
            self._patience = self._loop.call_later(CATCH_UP_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._patience = None
        self._send(self._held, patient=False)
        self._deliver()

    # The time

    def _use(self) -> None:
        """From now on it is idle, unless a stream is being read."""
        if not self._open and not self._ended:
            self._streams.compact()
            self._idle.start(self, self._unused)
