"""One session of the handshake era over HTTP: many POSTs and at most one GET make one peer.

It drives the connection with that peer: what POSTs bring is taken in at once, what is due goes to the streams that
HTTP responses read. Idle, a session is a few objects, and neither a task nor a timer.

Where several replicas serve one server, each that was asked for the session has it: who the client is they all know,
calls and questions are where they landed.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from ....contracts import SessionRecord
from ....errors import Unavailable
from ....protocol.http.rules import Refusal, refuse
from ....protocol.identity import Principal
from ....protocol.session.events import Outgoing
from ....protocol.session.handshake import NEW, Snapshot, State
from ....protocol.versions import Version
from ....protocol.wire.framing import ServerSentEvent
from ....protocol.wire.jsonrpc import Failure, Message, Notification, Request, RequestId, failure
from ....server.dispatch.connection import Connection
from ....server.run import Run
from ..limits.endpoint_limits import Keeping
from .streams import Reader, Streams

_ENDED = refuse(404, "the session has ended")
_STOPPING = refuse(503, "the server is stopping")
LOST = Refusal(503, failure(None, Unavailable(may_have_run=True)))
"""What others are to know of a request they can't be told, or this replica is none of them any more."""
CATCH_UP_SECONDS = 0.5
"""How long a session waits for a reader that is too far behind, before it is cut off. A burst is no slow client."""


class HttpSession:
    """One session. It ends by `leave` or `finish`."""

    __slots__ = (
        "_adopting",
        "_connection",
        "_ended",
        "_held",
        "_is_closed",
        "_keeping",
        "_known",
        "_open",
        "_streams",
        "_waiting",
        "changes",
        "client",
        "id",
        "uses",
    )

    def __init__(self, running: Run[Any], record: SessionRecord, keeping: Keeping) -> None:
        """`record` is what its store has, or what it begins with. `keeping` is that of all sessions."""
        self.id, self.client = record.id, record.client
        self.uses = int(record.snapshot.state is State.OPEN)
        """How many requests it has had, as far as this replica knows: where it came from another one, the first."""
        self._keeping = keeping
        self._known = NEW
        self._streams = Streams(record.id, keeping.log.session(record.id), keeping.store, keeping.limits.retry_ms)
        self._connection = running.connect(record.principal, self._deliver, record.client)
        self.changes = running.parts.for_principal(record.principal).changes
        """Where its subscriptions are held."""
        self._adopting: dict[str, str] | None = None
        """The resources that it begins to tell of in the place of others, by the id of the request for that."""
        self._held: Sequence[Outgoing] = ()
        self._waiting: tuple[asyncio.TimerHandle, Callable[[], None]] | None = None
        self._open = 0
        self._is_closed = self._ended = False
        if record.snapshot is not NEW:
            self.restore(record.snapshot)
        keeping.idle.start(self)

    # What HTTP requests do

    @property
    def spoken(self) -> Version | None:
        """The version negotiated, once `initialize` is answered."""
        return self._connection.session.version

    @property
    def connection(self) -> Connection:
        """That with its peer, for who looks."""
        return self._connection

    def learn(self) -> tuple[Snapshot, Snapshot] | None:
        """What other replicas know, and what lasts of it now, where that is something else; now they will know."""
        session, before = self._connection.session, self._known
        if session.is_at(before):
            return None
        self._known = session.snapshot()
        return before, self._known

    def unlearn(self, before: Snapshot) -> None:
        """They know what they knew before, after all: they are told again when the next message comes."""
        self._known = before

    def restore(self, snapshot: Snapshot) -> None:
        """Goes on from what another replica knows."""
        self._known = snapshot
        self._connection.session.restore(snapshot)

    def record(self) -> SessionRecord:
        """What its store has to know when it is opened."""
        seconds = self._keeping.limits.idle_seconds
        self.learn()
        return SessionRecord(self.id, self.principal, self.client, seconds, self._known)

    def post(self, message: Message, ids: tuple[RequestId, ...], principal: Principal | None) -> Reader | None:
        """Takes a message of `principal` in, whose session it is, with what this token of his allows; who reads the
        answers to the requests `ids` in it, or None where none is due."""
        # The same one, but this token may allow less or more than the one before.
        self._connection.session.principal = principal
        reader = self._streams.post(ids) if ids else None
        self._connection.take(message)
        if reader is None:
            self.rest()
        return reader

    @property
    def principal(self) -> Principal | None:
        """Whose it is."""
        return self._connection.session.principal

    def subscribes(self, uri: str) -> bool:
        """Whether its client is told of that resource from here."""
        return uri in self._connection.session.subscriptions.subscribed

    def unsubscribe(self, uri: str) -> list[str]:
        """Tells no more of that resource; the key that was held for it, or nothing."""
        return self._connection.session.subscriptions.unsubscribe(uri)

    def adopt(self, uris: Sequence[str]) -> None:
        """Tells of resources of which a replica told that is gone. What has become of them since nobody knows, so
        that the client is to look again."""
        for uri in uris:
            # As a request of the client's own, so that all checks of a subscription hold. No client knows the id,
            # and so can't have one like it.
            id_ = f"adopted {secrets.token_urlsafe(8)}"
            self._adopting = {**(self._adopting or {}), id_: uri}
            self._connection.take(Request(id_, "resources/subscribe", {"uri": uri}))

    @property
    def listens(self) -> bool:
        """Whether its client listens here to what no request asked for."""
        return self._streams.listens

    def take(self, message: Message) -> None:
        """Takes in what another replica was sent for a call that is here."""
        self._connection.take(message)

    async def listen(self) -> Reader | Refusal:
        """Who reads what no request asked for; 409 while somebody does."""
        return await self._streams.listen()

    async def resume(self, event_id: str) -> Reader | Refusal:
        """Who reads what came after that event; 400 where it is unknown, or not everything after it is kept."""
        return await self._streams.resume(event_id)

    def forbidden(self, reader: Reader) -> Failure | None:
        """The answer that `reader` has, where that is that the token of its request does not allow it."""
        return self._streams.forbidden(reader)

    def begin(self, reader: Reader) -> list[ServerSentEvent]:
        """What the response of `reader` begins with; from now on its client may come back."""
        return self._streams.begin(reader, primes=self.spoken is not None and self.spoken.priming_events)

    @property
    def streams(self) -> int:
        """How many streams are being read."""
        return self._open

    @property
    def is_idle(self) -> bool:
        """Whether nobody reads any of its streams."""
        return not self._open

    @property
    def idle_seconds(self) -> float:
        """For how long nobody has used it; 0 where somebody does."""
        return self._keeping.idle.waited(self)

    def opened(self) -> None:
        """A stream of this session is being read: the session is not idle."""
        self._open += 1
        self._keeping.idle.stop(self)

    def closed(self, reader: Reader) -> None:
        """`reader` reads no more. What it would still get waits for the next one, or is lost."""
        self._open -= 1
        self.rest()
        self._streams.leave(reader)
        if self._ended:
            reader.stream.forget()
        self.caught_up()

    def caught_up(self) -> None:
        """A reader has taken what there was for it: what any replica held back for its sake goes on."""
        self._streams.taken()

    @property
    def is_busy(self) -> bool:
        """Whether it has anything here that it could not go on with at another replica."""
        return self._connection.is_busy

    async def finish(self, *, orderly: bool, goes_on: bool = False) -> None:
        """Ends the session: what is under way is finished within limits if `orderly`, else cancelled. Its streams
        end, those without an answer with a refusal. Where it `goes_on`, at other replicas, only what is here ends."""
        refusal = _STOPPING if orderly else LOST if goes_on else _ENDED
        try:
            if orderly:
                await self._connection.drain(is_heard=goes_on)  # by way of other replicas
        finally:
            try:
                await self._connection.close()
            finally:  # whatever the server's own code does, clients don't wait for it
                self._close(refusal, goes_on=goes_on)

    def leave(self, *, goes_on: bool = False) -> bool:
        """Cancels what is under way and ends the session, if nothing was; else `finish` has to wait for the end."""
        left = self._connection.leave()
        if left:
            self._close(_ENDED, goes_on=goes_on)
        return left

    def _close(self, refusal: Refusal, *, goes_on: bool) -> None:
        self._is_closed = True
        self._keeping.idle.stop(self)
        self._stop_waiting()
        if goes_on:
            self._streams.hand_over(refusal)
            return
        self._ended = True
        self._streams.close(refusal)
        self._keeping.log.drop(self.id)

    # What is due to the client

    def _deliver(self) -> None:
        # What is sent may bring more: an answer makes room for a call that waited.
        while self._waiting is None and (outgoing := self._connection.outgoing()):
            self._send(outgoing if self._adopting is None else self._adopted(outgoing))
        if not self._open:
            self._streams.compact()

    def _adopted(self, outgoing: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """`outgoing` with a notice in the place of each answer that nobody has asked for."""
        adopting, told = self._adopting or {}, list[Outgoing]()
        for one in outgoing:
            uri = None if one.about is None else adopting.pop(str(one.about), None)
            told.append(
                one if uri is None else Outgoing(Notification("notifications/resources/updated", {"uri": uri}))
            )
        self._adopting = adopting or None
        return told

    def _send(self, outgoing: Sequence[Outgoing], *, patient: bool = True) -> None:
        self._held = self._streams.send(outgoing, patient=patient)
        if self._held:
            timer = asyncio.get_running_loop().call_later(CATCH_UP_SECONDS, self._go_on)
            self._waiting = timer, self._streams.hear_taken(self._go_on)

    def _go_on(self) -> None:
        self._stop_waiting()
        self._send(self._held, patient=False)
        self._deliver()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            timer, stop_hearing = self._waiting
            timer.cancel()
            stop_hearing()
            self._waiting = None

    # The time

    def rest(self) -> None:
        """From now on it is idle, unless a stream is being read."""
        if not self._open and not self._is_closed:
            self._streams.compact()
            self._keeping.idle.start(self)
