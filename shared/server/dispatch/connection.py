"""The connection to one peer: its messages become calls, and messages for the peer wait until they are fetched.

    messages ──▶ receive ──▶ session.receive ──▶ calls.begin for a Call, calls.cancel for Cancelled, an answer stored
    calls ──▶ session.finish ──▶ `due` is called ──▶ outgoing ──▶ the transport

A connection is driven by the owner of the peer: `serve` drives one with a stream of messages; an HTTP session, or a
single HTTP request, drives its own. An idle connection is an object without a task. Its calls end with it.

`serve` stops reading only while a peer does not read its answers, so cancellations always get through.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio import CancelScope, create_task_group

from ...concurrency import Signal
from ...errors import InternalError
from ...protocol.identity import LogMessage, Principal
from ...protocol.session.events import (
    Call,
    Cancelled,
    Change,
    Opened,
    Outcome,
    Outgoing,
    RootsChanged,
    UnknownNotification,
)
from ...protocol.session.questions import Question
from ...protocol.session.server import ServerSession
from ...protocol.wire.jsonrpc import Failure, Message, RequestId, Response
from ...protocol.wire.weight import weigh_result

if TYPE_CHECKING:
    from ...contracts import Transport  # used in type hints only
    from .calls import Calls
    from .changes import Changes
    from .limits import CallLimits

MANY_CHANGES = 1_000
"""The number of waiting changes for one peer at which parts of resources are no longer distinguished."""
_MIN_COUNTED_BYTES = 4_096
"""The minimum size in bytes of a result that is counted; smaller results are bounded by the number of waiting
messages."""
_MAX_ANSWERED_AT_ONCE = 25
"""Maximum number of calls of one batch that are answered at once."""
_NO_ANSWER = Failure(None, -32603, "the client ended its stream")
"""The answer used for a client that will no longer answer."""


class Watcher(Protocol):
    """Receives the events of a connection. Its methods neither wait nor raise."""

    def on_roots_changed(self) -> None:
        """Handle the peer's notification that its roots have changed."""

    def on_client_notification(self, event: UnknownNotification) -> None:
        """Handle a notification from the peer that this package does not know."""

    def on_close(self) -> None:
        """Handle the departure of the peer."""


class Host(Protocol):
    """The server side of a connection: a `Run`, which imports this module and so is not named here."""

    def connect(self, principal: Principal | None, due: Callable[[], None], client: str = "") -> "Connection":
        """Create a connection; `due` is called whenever messages wait for the peer."""


async def serve(
    running: Host, transport: "Transport", *, principal: Principal | None = None, client: str = ""
) -> None:
    """Serve one peer on a stream of messages until the stream ends; then the calls in progress finish, or are
    cancelled if the peer has disconnected. `client` is the client's name among the clients that share the server.
    Never raises for an error of the peer."""
    stream = _Stream(transport)
    connection = stream.connection = running.connect(principal, stream.due, client)
    # The method of a `PromptReceiver`.
    receive_by = getattr(transport, "receive_by", None)
    if receive_by is not None:
        receive_by(stream.receive)
    writing = CancelScope()

    async def write() -> None:
        # The scope is inside the task, because the frames of a cancelled task, and all they hold, are freed only by
        # the garbage collector.
        with writing, suppress(anyio.BrokenResourceError):
            await stream.write()
        tasks.cancel_scope.cancel()

    try:
        async with create_task_group() as tasks:
            tasks.start_soon(write)
            with suppress(anyio.BrokenResourceError):
                await stream.read()
                # The peer has ended its side cleanly, and may still read the answers to its requests.
                await connection.drain()
            writing.cancel()
    finally:
        await connection.close()


class _Stream:
    """The messages that a connection and its transport exchange."""

    connection: "Connection"

    def __init__(self, transport: "Transport") -> None:
        self._transport = transport
        # The method of a `PromptTransport`.
        self._try_send: Callable[[list[Outgoing]], bool] | None = getattr(transport, "try_send", None)
        self._ready = asyncio.Event()
        self._unsent: list[Outgoing] = []
        """Messages that were fetched from the connection, but not sent yet."""
        self._is_receiving = False

    def due(self) -> None:
        """Wake `write`, unless `receive` is about to send the messages."""
        if not self._is_receiving:
            self._ready.set()

    async def read(self) -> None:
        """Receive messages until the peer ends its stream. Raises BrokenResourceError when it has disconnected."""
        while True:
            try:
                messages = await self._transport.receive()
            except anyio.EndOfStream:
                return
            while messages := self.receive(messages):
                await self.connection.wait_writable()
            if self.connection.is_behind:
                await self.connection.wait_writable()

    def receive(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Receive messages that arrived together, and send their answers, as far as they are ready, in one write.
        Return the rest of the messages if the peer is too slow to read the answers."""
        connection, self._is_receiving = self.connection, self._try_send is not None
        try:
            for number, message in enumerate(messages):
                if connection.is_behind:
                    return messages[number:]
                connection.receive(message)
        finally:
            self._is_receiving = False
            self._write_at_once()
        return ()

    async def write(self) -> None:
        """Send messages whenever any are waiting. Raises BrokenResourceError when the peer has disconnected."""
        while await self._ready.wait():
            self._ready.clear()
            # Messages that `_write_at_once` has fetched but the transport did not accept are sent first.
            while unsent := self._unsent or self.connection.outgoing():
                self._unsent = unsent
                await self._transport.send(unsent)
                self._unsent = []

    def _write_at_once(self) -> None:
        """Send waiting messages without a turn of the event loop, if the transport supports that."""
        while self._try_send is not None and not self._unsent and (outgoing := self.connection.outgoing()):
            if not self._try_send(outgoing):
                self._unsent = outgoing
                self._ready.set()


class Answers:
    """The client's answers to the questions of one connection, stored until they are read."""

    __slots__ = ("_arrived", "_by_id", "is_finished")

    def __init__(self) -> None:
        self._by_id: dict[RequestId, Response | Failure | None] | None = None  # few connections ever ask
        self._arrived: Signal | None = None
        self.is_finished = False
        """True if the client will no longer answer."""

    def expect(self, ids: Iterable[int]) -> None:
        """Store the answers to the requests `ids`, which were sent to the peer, from now on, in any order, until
        `forget`."""
        self._by_id = {**(self._by_id or {}), **dict.fromkeys(ids)}

    def forget(self, ids: Collection[int]) -> None:
        """Stop storing the answers to `ids`."""
        self._by_id = {id_: answer for id_, answer in (self._by_id or {}).items() if id_ not in ids} or None

    def settle(self, id: RequestId, answer: Response | Failure) -> None:
        """Store the answer if it is expected."""
        if self._by_id is not None and id in self._by_id:
            self._by_id[id] = answer
            self._wake()

    def finish(self) -> None:
        """Record that the client will no longer answer."""
        self.is_finished = True
        self._wake()

    async def wait(self, id: int) -> Response | Failure:
        """Wait for the answer to the request `id`, which was sent to the peer and is expected."""
        while (answer := (self._by_id or {})[id]) is None:
            if self.is_finished:
                return _NO_ANSWER
            self._arrived = self._arrived or Signal()
            await self._arrived.wait()
        return answer

    def _wake(self) -> None:
        if self._arrived is not None:
            self._arrived.wake()


class Connection:
    """One peer of a run, created by `Run.connect`. It ends with `close`. Never raises for an error of the peer."""

    __slots__ = (
        "_batch_bytes",
        "_bus",
        "_changes",
        "_closing",
        "_due",
        "_loop",
        "_observer",
        "_progress",
        "_result_bytes",
        "_sending_bytes",
        "_sending_results",
        "answers",
        "budget",
        "calls",
        "client",
        "queue",
        "running",
        "sending",
        "session",
        "streams",
        "watchers",
    )

    def __init__(
        self, calls: "Calls", changes: "Changes", session: ServerSession, due: Callable[[], None], client: str
    ) -> None:
        self.calls = calls
        """The calls of the connection's run."""
        self.client = client
        """A name for the client: an address and a principal; empty if there is only one client."""
        self.session = session
        self._due = due
        self._loop = asyncio.get_running_loop()
        self.running = self.streams = self.sending = 0
        """The numbers of running calls, of open listen streams, and of messages being sent."""
        self._sending_bytes = self._result_bytes = self._sending_results = self._batch_bytes = 0
        """The bytes of the notifications being sent, and of the counted results that wait, that are being sent, and
        that wait for the rest of their batches."""
        self.queue: deque[Call] | None = None
        """The calls that wait for a place; None until the first such call."""
        self.budget: CallLimits | None = None
        """The limits of each call, set by the first call."""
        self.answers = Answers()
        self._bus = changes
        self._changes: dict[Change, None] | None = None
        self._progress: Signal | None = None
        self._closing: Signal | None = None
        self.watchers: tuple[Watcher, ...] = ()
        """The receivers of the connection's events. Replace the tuple to change them."""
        self._observer = calls.hooks.make_observer()
        changes.join(self)

    # For the driver

    def receive(self, message: Message) -> None:
        """Receive a message, and begin the call that it requests."""
        if self._observer is not None:
            self._observer.on_received(message)
        for number, event in enumerate(self.session.receive(message)):
            if isinstance(event, Call):
                # A thousand answers at once, to the calls of a batch, would block the event loop.
                self.calls.begin(self, event, at_once=number < _MAX_ANSWERED_AT_ONCE)
            elif isinstance(event, Cancelled):
                self.calls.cancel(event.call)
            elif isinstance(event, Opened):
                for greet in self.calls.hooks.greeters:
                    greet(self)
            elif isinstance(event, RootsChanged | UnknownNotification):
                self._notify_watchers(event)
            else:
                self.answers.settle(event.id, event.answer)
        if self.session.waiting:
            self._due()

    def outgoing(self) -> list[Outgoing]:
        """Return the messages that wait for the peer. They are considered being sent until the next call of this
        method."""
        if self.calls.hooks.before_sending is not None:
            self.calls.hooks.before_sending()
        # If too many messages are waiting, the peer must catch up before it is notified of changes.
        if self._changes and len(self.session.waiting) < self.calls.limits.waiting_messages:
            # Changes are fetched late, so that ten changes to a list while the peer was slow are reported as one.
            changes, self._changes = self._changes, None
            for change in changes:
                self.session.deliver(change)
        self._sending_bytes = self.session.waiting_bytes
        if self._result_bytes or self._sending_results:
            self.calls.release_memory(self.client, self._sending_results)
            self._sending_results, self._result_bytes = self._result_bytes, 0
        if self._batch_bytes and self._batch_bytes > self.session.batch_bytes:
            self.calls.release_memory(self.client, self._batch_bytes - self.session.batch_bytes)
            self._batch_bytes = self.session.batch_bytes
        outgoing = self.session.outgoing()
        self.sending = len(outgoing)
        if self._progress is not None:
            self._progress.wake()
        if self._observer is not None:
            self._observer.on_sent(outgoing)
        return outgoing

    def _notify_watchers(self, event: RootsChanged | UnknownNotification) -> None:
        for watcher in tuple(self.watchers):
            if isinstance(event, UnknownNotification):
                watcher.on_client_notification(event)
            else:
                watcher.on_roots_changed()

    @property
    def is_behind(self) -> bool:
        """True if the peer is too slow to read the messages that wait for it."""
        session = self.session
        if not (session.waiting or self.sending):  # most peers read faster than they are served
            return False
        limits = self.calls.limits
        return (
            len(session.waiting) + self.sending > limits.waiting_messages
            or session.waiting_bytes + self._sending_bytes > limits.waiting_bytes
            or self._result_bytes + self._sending_results > limits.result_bytes
        )

    @property
    def is_gone(self) -> bool:
        """True if the peer has disconnected."""
        return self._due is _do_nothing

    @property
    def is_busy(self) -> bool:
        """True if calls are in progress, or the peer has subscriptions."""
        return bool(self.running or self.streams or self.session.subscriptions.subscribed)

    async def wait_writable(self) -> None:
        """Wait until the peer has read enough of its waiting messages."""
        while self.is_behind:
            await self.wait_for_progress()

    def finish(self, *, still_answers: bool = False) -> None:
        """Record that the peer sends nothing more here: its listen streams end, and open questions stay unanswered,
        unless the peer `still_answers` elsewhere."""
        if not still_answers:
            self.answers.finish()
        if self._closing is not None:
            self._closing.wake()

    async def drain(self, *, still_answers: bool = False) -> None:
        """Call `finish`, and wait until the calls in progress have ended and all messages were sent, within
        limits."""
        self.finish(still_answers=still_answers)
        with anyio.move_on_after(self.calls.limits.drain_seconds):
            await self.calls.drain(self)
            while self.session.waiting or self._changes or self.sending:
                await self.wait_for_progress()

    def begin_close(self) -> bool:
        """Cancel the calls in progress. Return True if there were none, in which case `close` need not wait."""
        if self.calls.hooks.before_sending is not None:  # nothing will be sent anymore
            self.calls.hooks.before_sending()
        watchers, self.watchers = self.watchers, ()
        for watcher in watchers:
            watcher.on_close()
        self._bus.leave(self)
        self._due, self.queue = _do_nothing, None
        for call in self.session.abandon():
            self.calls.cancel(call)
        if counted := self._result_bytes + self._sending_results + self._batch_bytes:
            self.calls.release_memory(self.client, counted)
            self._result_bytes = self._sending_results = self._batch_bytes = 0
        return not self.is_busy

    async def close(self) -> None:
        """Call `begin_close`, wait for the end of the calls in progress, and end the subscriptions; shielded from
        cancellation."""
        if not self.begin_close():
            with CancelScope(shield=True):
                await self.calls.drain(self)
            await self._bus.unsubscribe(self.session.subscriptions.subscribed.values(), self.client)

    # For calls, their handlers and the change bus

    def count_result(self, call: Call, outcome: Outcome) -> Outcome:
        """Count a result that waits behind other messages, or for the rest of its batch. Return the result, or an
        error if the waiting results take too much memory."""
        size = weigh_result(outcome) if isinstance(outcome, dict) else 0
        if size < _MIN_COUNTED_BYTES:
            return outcome
        if not self.calls.reserve_memory(self.client, size):
            return InternalError("the call was made, but too many results are waiting for you: read those first")
        if self.session.is_in_batch(call):
            self._batch_bytes += size
        else:
            self._result_bytes += size
        return outcome

    def on_change(self, change: Change) -> None:
        """Queue `change`, unless the same change already waits. If many changes are waiting, changes of parts are
        reported as a change to the whole resource."""
        if self._changes is None:
            self._changes = {}
            self._loop.call_soon(self._due)
        if change.part is not None and len(self._changes) >= MANY_CHANGES:
            # The number of subscriptions is bounded, but not that of their parts, so the whole resource is reported.
            change = replace(change, part=None)
        self._changes[change] = None

    def announce(self, message: LogMessage) -> None:
        """Send a log message that belongs to no call, unless too many messages already wait for the peer."""
        if not self.is_behind:
            self.session.announce(message)
            self._loop.call_soon(self._due)

    def send_soon(self) -> None:
        """Send waiting messages soon, without waiting."""
        self._due()

    async def flush(self) -> None:
        """Send waiting messages; wait while the peer is too slow to read them."""
        self._due()
        if self.is_behind:
            await self.wait_writable()

    async def ask_standalone(self, question: Question) -> Response | Failure:
        """Return the peer's answer to a question that belongs to no call. Raises the same errors as
        `ServerSession.ask_standalone`."""
        id_ = self.session.ask_standalone(question)
        self.answers.expect([id_])
        try:
            await self.flush()
            return await self.answers.wait(id_)
        finally:
            self.answers.forget([id_])
            self.session.withdraw(id_)
            self._due()

    async def wait_for_closing(self) -> None:
        """Wait until the server ends the listen streams."""
        while not self.answers.is_finished:
            self._closing = self._closing or Signal()
            await self._closing.wait()

    def free_place(self, call: Call) -> None:
        """Give the place of `call`, which is over or detached, to the next waiting call."""
        if call.method.is_stream:
            self.streams -= 1
        else:
            self.running -= 1
            calls = self.calls
            quota, limit = calls.hooks.quota, calls.limits.concurrent_calls
            if quota is not None:
                quota.end(self.client)
            while self.queue and not calls.is_closing and self.running < limit:
                calls.begin(self, self.queue.popleft())
        self._due()
        if self._progress is not None:
            self._progress.wake()

    async def wait_for_progress(self) -> None:
        """Wait until a call has ended, or something was sent."""
        self._progress = self._progress or Signal()  # few tasks ever wait
        await self._progress.wait()


def _do_nothing() -> None:
    """Do nothing: this replaces `due` after the peer has disconnected."""
