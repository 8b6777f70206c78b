"""One session of the handshake era over HTTP: many POSTs, and streams opened by GET, that belong to one peer.

The session connects them with the `Connection` to that peer: messages from POSTs are processed at once, and outgoing
messages go to streams, which HTTP responses read. An idle session consists of a few objects, without a task or a
timer.

If several replicas serve one server, each replica that has received a request for the session has such an object: all
know the state of the handshake, while a call, and the requests that it sends to the client, stay on the replica where
the call arrived.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ....contracts import SessionRecord
from ....errors import Unavailable
from ....protocol.http.rules import Refusal, refuse
from ....protocol.identity import Principal
from ....protocol.session.events import Outgoing
from ....protocol.session.handshake import NEW, Snapshot, State
from ....protocol.versions import Version
from ....protocol.wire.codec import encode
from ....protocol.wire.framing import ServerSentEvent
from ....protocol.wire.jsonrpc import Failure, Message, Notification, Request, RequestId, Response, failure
from ....server.dispatch.connection import Connection
from ....server.dispatch.room import LARGE_RESULT_BYTES
from ....server.run import Run
from ..limits.endpoint_limits import SharedSessionState
from .streams import Reader, Streams

_ENDED = refuse(404, "the session has ended")
_STOPPING = refuse(503, "the server is stopping")
MAY_HAVE_RUN = Refusal(503, failure(None, Unavailable(may_have_run=True)))
"""Sent when it is unknown whether a request took effect: the session's changes could not be sent to the other
replicas, or this replica was separated from them."""
CATCH_UP_SECONDS = 0.5
"""Seconds that a session waits for a reader that is too far behind, before disconnecting it: a burst of messages
alone must not disconnect a client."""


class HttpSession:
    """One session, which ends with `try_end` or `finish`."""

    __slots__ = (
        "_adopting",
        "_answer",
        "_catch_up",
        "_connection",
        "_ended",
        "_held_back",
        "_is_closed",
        "_open_streams",
        "_published",
        "_received_id",
        "_shared_state",
        "_streams",
        "client",
        "id",
        "request_count",
        "subscription_registry",
    )

    def __init__(self, running: Run[Any], record: SessionRecord, shared_state: SharedSessionState) -> None:
        """`record` is the session's record in the store, or the initial one. `shared_state` is the state that all
        sessions share."""
        self.id, self.client = record.id, record.client
        self.request_count = int(record.snapshot.state is State.OPEN)
        """The number of requests that this replica has received for the session, counted by `Shares`. A session from
        another replica begins with 1, because `initialize` arrived there."""
        self._shared_state = shared_state
        self._published = NEW
        server_run = running.parts.for_principal(record.principal)
        events = shared_state.event_log.session(record.id)
        retry_ms, room = shared_state.limits.retry_ms, server_run.calls.room
        self._streams = Streams(record.id, events, shared_state.store, retry_ms, room=room, client=record.client)
        self._connection = running.connect(record.principal, self._deliver, record.client)
        self.subscription_registry = server_run.changes
        """The registry of the session's subscriptions."""
        self._adopting: dict[str, str] | None = None
        """The resources whose changes this replica begins to report in place of a lost replica, by the id of the
        request that subscribes to them."""
        self._held_back: Sequence[Outgoing] = ()
        """The messages that wait for a reader that is too far behind."""
        self._received_id: RequestId | None = None
        """The id of the request that `post_request` is processing, until the request is answered or has a stream."""
        self._answer: Reader | bytes | None = None
        """The encoded answer to that request, or the reader of its stream."""
        self._catch_up: tuple[asyncio.TimerHandle, Callable[[], None]] | None = None
        """While messages are held back: the timer that ends this, and a function that stops watching the reader."""
        self._open_streams = 0
        self._is_closed = False
        """True if the session has ended on this replica, though it may continue on others."""
        self._ended = False
        """True if the session has ended on all replicas."""
        if record.snapshot is not NEW:
            self.restore(record.snapshot)
        shared_state.idle.start(self)

    # Requests over HTTP

    @property
    def version(self) -> Version | None:
        """The negotiated version; None before `initialize` is answered."""
        return self._connection.session.version

    @property
    def connection(self) -> Connection:
        """The connection to the peer, for inspection."""
        return self._connection

    async def publish(self) -> None:
        """Inform other replicas of changes to the session's state. Raises Unavailable."""
        session, previous = self._connection.session, self._published
        if session.has_state(previous):
            return
        with ExitStack() as rollback:
            # If the store can't be reached, the other replicas keep the previous state, and the next message tries
            # again.
            rollback.callback(self._set_published, previous)
            self._set_published(session.snapshot())
            await self._shared_state.store.update(self.id, previous, self._published)
            rollback.pop_all()

    def _set_published(self, snapshot: Snapshot) -> None:
        self._published = snapshot

    async def publish_needed_scopes(self) -> None:
        """Inform other replicas of the scopes that calls of this session have required: readers of its streams there
        need these scopes too. Raises the same errors as `publish`."""
        if self._connection.session.needed_scopes != self._published.needed_scopes:
            await self.publish()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from the snapshot of another replica."""
        self._published = snapshot
        self._connection.session.restore(snapshot)

    def record(self) -> SessionRecord:
        """Return the record for the store when the session is opened."""
        seconds = self._shared_state.limits.idle_seconds
        self._published = self._connection.session.snapshot()
        return SessionRecord(self.id, self.principal, self.client, seconds, self._published)

    def post(self, message: Message, ids: tuple[RequestId, ...], principal: Principal | None) -> Reader | None:
        """Process a message from `principal`, the owner of the session, with the rights of the token that it was sent
        with. Returns the reader of the answers to the requests in it, whose ids are `ids`; None if there are no
        requests."""
        # It is the same principal, but this token may have other rights than the previous one.
        self._connection.session.principal = principal
        reader = self._streams.post(ids) if ids else None
        self._connection.receive(message)
        if reader is None:
            self.mark_idle()
        return reader

    def post_request(self, message: Message, id: RequestId, principal: Principal | None) -> Reader | bytes:
        """Process a message with one request like `post`, but without a stream if a result answers the request at
        once. Returns the encoded answer, or the reader of the stream."""
        self._connection.session.principal = principal
        self._received_id = id
        self._connection.receive(message)
        self._received_id, answer = None, self._answer
        self._answer = None
        if answer is None:
            return self._streams.post((id,))
        if isinstance(answer, bytes):
            self.mark_idle()
        return answer

    @property
    def principal(self) -> Principal | None:
        """The owner of the session."""
        return self._connection.session.principal

    def is_subscribed(self, uri: str) -> bool:
        """Return True if this replica notifies the client of changes of that resource."""
        return uri in self._connection.session.subscriptions.subscribed

    def unsubscribe(self, uri: str) -> list[str]:
        """Stop reporting that resource. Returns its key in the registry, in a list that may be empty."""
        return self._connection.session.subscriptions.unsubscribe(uri)

    def adopt(self, uris: Sequence[str]) -> None:
        """Report changes of the resources `uris` in place of a lost replica. Changes since its loss are unknown, so
        the client is notified that all of these resources have changed."""
        for uri in uris:
            # The subscription is made as if the client requested it, so that all checks apply. The id is random, so
            # that no id of the client can be the same.
            id_ = f"adopted {secrets.token_urlsafe(8)}"
            self._adopting = {**(self._adopting or {}), id_: uri}
            self._connection.receive(Request(id_, "resources/subscribe", {"uri": uri}))

    @property
    def is_listening(self) -> bool:
        """True if the client listens to unrequested messages on this replica."""
        return self._streams.is_listening

    def process_forwarded(self, message: Message) -> None:
        """Process a message that another replica has received, for a call on this replica."""
        self._connection.receive(message)

    async def listen(self) -> Reader | Refusal:
        """Return the reader of unrequested messages; 409 if there already is one."""
        return await self._streams.listen()

    async def resume(self, event_id: str) -> Reader | Refusal:
        """Return the reader of the events after `event_id`; 400 if the id is unknown, or if not all later events are
        stored."""
        return await self._streams.resume(event_id)

    def take_failure_with_status(self, reader: Reader) -> Failure | None:
        """Return the answer that waits for `reader`, and remove it, if it is an error that has an HTTP status of its
        own; otherwise return None."""
        return self._streams.take_failure_with_status(reader)

    def begin(self, reader: Reader) -> list[ServerSentEvent]:
        """Return the first events of the response that sends the messages of `reader`. From now on its client may
        reconnect."""
        return self._streams.begin(reader, sends_position=self.version is not None and self.version.priming_events)

    @property
    def open_streams(self) -> int:
        """The number of streams being read."""
        return self._open_streams

    @property
    def is_idle(self) -> bool:
        """True if none of its streams is being read."""
        return not self._open_streams

    @property
    def idle_seconds(self) -> float:
        """The seconds for which the session has been unused; 0 while it is in use."""
        return self._shared_state.idle.elapsed(self)

    def on_stream_opened(self) -> None:
        """Record that a stream of this session is being read: the session is not idle."""
        self._open_streams += 1
        self._shared_state.idle.stop(self)

    def on_stream_closed(self, reader: Reader) -> None:
        """Record that a response no longer sends the messages of `reader`. Remaining messages wait for the next
        reader, or are lost."""
        self._open_streams -= 1
        self.mark_idle()
        self._streams.leave(reader)
        if self._ended:
            reader.stream.forget()
        self.on_caught_up()

    def release_room(self, size: int) -> None:
        """Stop counting `size` bytes of large answers, which the client has read or will never read."""
        self._connection.calls.room.remove(self.client, size)

    def on_caught_up(self) -> None:
        """Record that a reader has caught up: messages that were held back for it, on any replica, can be sent."""
        self._streams.notify_taken()

    @property
    def is_busy(self) -> bool:
        """True if the session holds state here that can't continue on another replica."""
        return self._connection.is_busy

    async def finish(self, *, orderly: bool, continues_elsewhere: bool = False) -> None:
        """End the session: pending calls are finished within limits if `orderly`, otherwise cancelled. Its streams
        end, and requests without an answer are refused. If the session `continues_elsewhere`, on other replicas, only
        its part on this replica ends."""
        refusal = _STOPPING if orderly else MAY_HAVE_RUN if continues_elsewhere else _ENDED
        try:
            if orderly:
                # Other replicas forward the client's answers to this one.
                await self._connection.drain(still_answers=continues_elsewhere)
        finally:
            try:
                await self._connection.close()
            finally:  # clients get the refusal even if the server's own code raises an error
                self._close(refusal, continues_elsewhere=continues_elsewhere)

    def try_end(self, *, continues_elsewhere: bool = False) -> bool:
        """Cancel pending calls. Without any, end the session and return True; otherwise return False, and `finish`
        must be awaited."""
        is_finished = self._connection.begin_close()
        if is_finished:
            self._close(_ENDED, continues_elsewhere=continues_elsewhere)
        return is_finished

    def _close(self, refusal: Refusal, *, continues_elsewhere: bool) -> None:
        self._is_closed = True
        self._shared_state.idle.stop(self)
        self._stop_waiting()
        if continues_elsewhere:
            self._streams.hand_over(refusal)
            return
        self._ended = True
        self._streams.close(refusal)
        self._shared_state.event_log.drop(self.id)

    # Outgoing messages

    def _deliver(self) -> None:
        # Sending a message may produce more messages: for example, an answer lets a waiting call begin.
        while self._catch_up is None and (outgoing := self._connection.outgoing()):
            if self._received_id is not None and self._take_answer(self._received_id, outgoing):
                continue
            self._send(outgoing if self._adopting is None else self._replace_adopted(outgoing))
        if not self._open_streams:
            self._streams.compact()

    def _take_answer(self, id: RequestId, outgoing: Sequence[Outgoing]) -> bool:
        """Store the result of the request `id` for `post_request`, if `outgoing` contains nothing else. Otherwise
        open a stream for the request, and return False."""
        self._received_id, first = None, outgoing[0]
        if len(outgoing) > 1 or first.related_request_id != id or not isinstance(first.message, Response):
            self._answer = self._streams.post((id,))
            return False
        self._answer = answer = encode(first.message)
        self._shared_state.store.leave(self.id, (id,))
        if len(answer) >= LARGE_RESULT_BYTES:
            self._connection.calls.room.add(self.client, len(answer))
        return True

    def _replace_adopted(self, outgoing: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """Return `outgoing`, in which a notification that the resource has changed replaces each answer to a
        subscription by `adopt`."""
        adopting, replaced = self._adopting or {}, list[Outgoing]()
        for item in outgoing:
            uri = None if item.related_request_id is None else adopting.pop(str(item.related_request_id), None)
            replaced.append(
                item if uri is None else Outgoing(Notification("notifications/resources/updated", {"uri": uri}))
            )
        self._adopting = adopting or None
        return replaced

    def _send(self, outgoing: Sequence[Outgoing], *, may_wait: bool = True) -> None:
        self._held_back = self._streams.send(outgoing, may_wait=may_wait)
        if self._held_back:
            timer = asyncio.get_running_loop().call_later(CATCH_UP_SECONDS, self._resume_sending)
            self._catch_up = timer, self._streams.watch_taken(self._resume_sending)

    def _resume_sending(self) -> None:
        self._stop_waiting()
        self._send(self._held_back, may_wait=False)
        self._deliver()

    def _stop_waiting(self) -> None:
        if self._catch_up is not None:
            timer, stop_watching = self._catch_up
            timer.cancel()
            stop_watching()
            self._catch_up = None

    # Idleness

    def mark_idle(self) -> None:
        """Mark the session as idle, unless a stream is being read."""
        if not self._open_streams and not self._is_closed:
            self._streams.compact()
            self._shared_state.idle.start(self)
