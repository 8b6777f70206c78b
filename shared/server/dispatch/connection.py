"""The connection to one peer: it turns the peer's messages into calls, and holds messages for the peer until they are
fetched and sent.

    the transport ──▶ receive ──▶ session.receive ──▶ calls.begin, calls.cancel, or an answer is stored
    a call ends ──▶ session.finish ──▶ `on_outgoing` is called ──▶ outgoing ──▶ the transport

A connection is a passive object: its driver passes messages to `receive`, and sends those that `outgoing` returns.
`serve` is the driver for a stream of messages; over HTTP, a session or a single request drives its connection. So an
idle connection needs no task. When it closes, its calls are cancelled.

`serve` reads from the peer even while calls are in progress, so that cancellations are received. It stops reading
only while the peer does not read its answers.
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
"""If this many changes wait for one peer, a change of a part of a resource is reported as one of the resource."""
_MIN_COUNTED_BYTES = 4_096
"""The minimum size in bytes of a result whose memory is counted; smaller ones are limited by the number of waiting
messages."""
_MAX_ANSWERED_AT_ONCE = 25
"""Maximum number of calls of one batch that are answered at once."""
_NO_ANSWER = Failure(None, -32603, "the client ended its stream")
"""The answer to a question that the client will no longer answer."""


class Watcher(Protocol):
    """Receives the events of a connection. Its methods neither wait nor raise."""

    def on_roots_changed(self) -> None:
        """Handle the peer's notification that its roots have changed."""

    def on_client_notification(self, event: UnknownNotification) -> None:
        """Handle a notification from the peer whose method this package does not know."""

    def on_close(self) -> None:
        """Handle the end of the connection."""


class Acceptor(Protocol):
    """Accepts peers: a `Run`, which can't be named here because it imports this module."""

    def connect(self, principal: Principal | None, on_outgoing: Callable[[], None], client: str = "") -> "Connection":
        """Return the connection for a new peer (see `Run.connect`)."""


async def serve(
    running: Acceptor, transport: "Transport", *, principal: Principal | None = None, client: str = ""
) -> None:
    """Serve one peer on a stream of messages until the stream ends. If the peer has ended it cleanly, the calls in
    progress are finished; if it has disconnected, they are cancelled. `client` is the name under which the client's
    use is counted. Never raises because of an error of the peer."""
    stream = _Stream(transport)
    connection = stream.connection = running.connect(principal, stream.on_outgoing, client)
    # The method of an `ImmediateReceiver`.
    receive_by = getattr(transport, "receive_by", None)
    if receive_by is not None:
        receive_by(stream.receive)
    write_scope = CancelScope()

    async def write() -> None:
        # The scope is cancelled instead of the task, because the frames of a cancelled task, and all objects in them,
        # are freed only by the garbage collector.
        with write_scope, suppress(anyio.BrokenResourceError):
            await stream.write()
        tasks.cancel_scope.cancel()

    try:
        async with create_task_group() as tasks:
            tasks.start_soon(write)
            with suppress(anyio.BrokenResourceError):
                await stream.read()
                # The peer has ended the stream cleanly, and may still read the answers to its requests.
                await connection.drain()
            write_scope.cancel()
    finally:
        await connection.close()


class _Stream:
    """The exchange of messages between a connection and its transport."""

    connection: "Connection"

    def __init__(self, transport: "Transport") -> None:
        self._transport = transport
        # The method of an `ImmediateTransport`.
        self._try_send: Callable[[list[Outgoing]], bool] | None = getattr(transport, "try_send", None)
        self._ready = asyncio.Event()
        self._unsent: list[Outgoing] = []
        """Messages that were fetched from the connection, but could not be sent yet."""
        self._is_receiving = False

    def on_outgoing(self) -> None:
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
        """Handle messages that arrived together, and send those answers that are ready in one write. Return the
        messages that were not handled, because the peer is too slow to read the answers."""
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
            # First come the messages that `_write_at_once` has fetched, and the transport could not send at once.
            while unsent := self._unsent or self.connection.outgoing():
                self._unsent = unsent
                await self._transport.send(unsent)
                self._unsent = []

    def _write_at_once(self) -> None:
        """Send waiting messages in this turn of the event loop, if the transport supports that."""
        while self._try_send is not None and not self._unsent and (outgoing := self.connection.outgoing()):
            if not self._try_send(outgoing):
                self._unsent = outgoing
                self._ready.set()


class Answers:
    """The client's answers to the questions of one connection, which are stored until they are read."""

    __slots__ = ("_arrived", "_by_id", "is_finished")

    def __init__(self) -> None:
        self._by_id: dict[RequestId, Response | Failure | None] | None = None  # few connections have questions
        self._arrived: Signal | None = None
        self.is_finished = False
        """True if the client will no longer answer."""

    def expect(self, ids: Iterable[int]) -> None:
        """Begin to store answers to the requests `ids`, which were sent to the peer, until `forget`."""
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
        """Wait for the answer to the request `id`, for which `expect` was called, and return it."""
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
    """The connection of one peer to a run, created by `Run.connect`, until `close`. Never raises because of an error
    of the peer."""

    __slots__ = (
        "_batch_bytes",
        "_changes",
        "_closing",
        "_loop",
        "_observer",
        "_on_outgoing",
        "_pending_changes",
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
        self, calls: "Calls", changes: "Changes", session: ServerSession, on_outgoing: Callable[[], None], client: str
    ) -> None:
        self.calls = calls
        """The calls of the connection's run."""
        self.client = client
        """The name under which the client's usage is counted, made of its address and principal; empty if there is
        only one client."""
        self.session = session
        self._on_outgoing = on_outgoing
        self._loop = asyncio.get_running_loop()
        self.running = self.streams = self.sending = 0
        """The number of running calls, open streams of `subscriptions/listen`, and messages being sent."""
        self._sending_bytes = self._result_bytes = self._sending_results = self._batch_bytes = 0
        """Sizes in bytes, in this order: of the notifications being sent; of the counted results that wait to be
        sent, that are being sent, and that wait for the rest of their batches."""
        self.queue: deque[Call] | None = None
        """The calls that wait for a slot; None before the first one."""
        self.budget: CallLimits | None = None
        """The limits on each call, set by the first call."""
        self.answers = Answers()
        self._changes = changes
        self._pending_changes: dict[Change, None] | None = None
        self._progress: Signal | None = None
        self._closing: Signal | None = None
        self.watchers: tuple[Watcher, ...] = ()
        """The receivers of the connection's events. To change them, replace the tuple."""
        self._observer = calls.hooks.make_observer()
        changes.join(self)

    # For the driver

    def receive(self, message: Message) -> None:
        """Handle one message from the peer."""
        if self._observer is not None:
            self._observer.on_received(message)
        for number, event in enumerate(self.session.receive(message)):
            if isinstance(event, Call):
                # Answering all calls of a large batch at once would block the event loop.
                self.calls.begin(self, event, at_once=number < _MAX_ANSWERED_AT_ONCE)
            elif isinstance(event, Cancelled):
                self.calls.cancel(event.call)
            elif isinstance(event, Opened):
                for callback in self.calls.hooks.handshake_callbacks:
                    callback(self)
            elif isinstance(event, RootsChanged | UnknownNotification):
                self._notify_watchers(event)
            else:
                self.answers.settle(event.id, event.answer)
        if self.session.waiting:
            self._on_outgoing()

    def outgoing(self) -> list[Outgoing]:
        """Return the messages that wait for the peer. They count as being sent until the next call of this method."""
        if self.calls.hooks.before_sending is not None:
            self.calls.hooks.before_sending()
        # While too many messages are waiting, no notifications of changes are added.
        if self._pending_changes and len(self.session.waiting) < self.calls.limits.waiting_messages:
            # Notifications are made only now, so that ten changes to a list while the peer was slow are reported as
            # one.
            changes, self._pending_changes = self._pending_changes, None
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
        """True if more messages wait for the peer than the limits allow, because it is too slow to read them."""
        session = self.session
        if not (session.waiting or self.sending):  # true for most peers, which read faster than they are served
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
        return self._on_outgoing is _do_nothing

    @property
    def is_busy(self) -> bool:
        """True if calls are in progress, or the peer has subscriptions."""
        return bool(self.running or self.streams or self.session.subscriptions.subscribed)

    async def wait_writable(self) -> None:
        """Wait while `is_behind` is true."""
        while self.is_behind:
            await self.wait_for_progress()

    def finish(self, *, still_answers: bool = False) -> None:
        """Record that the peer sends nothing more on this connection, and end its streams of `subscriptions/listen`.
        Its unanswered questions get no answer, unless it `still_answers` on another connection of its session."""
        if not still_answers:
            self.answers.finish()
        if self._closing is not None:
            self._closing.wake()

    async def drain(self, *, still_answers: bool = False) -> None:
        """Call `finish`, and wait until the calls in progress have ended and all messages were sent, for at most
        `Limits.drain_seconds`."""
        self.finish(still_answers=still_answers)
        with anyio.move_on_after(self.calls.limits.drain_seconds):
            await self.calls.drain(self)
            while self.session.waiting or self._pending_changes or self.sending:
                await self.wait_for_progress()

    def begin_close(self) -> bool:
        """Cancel the calls in progress. Return True if there were none, and no subscriptions, so that nothing needs
        to be awaited."""
        # Called also here, since nothing more will be sent, and the audit log is written before messages are sent.
        if self.calls.hooks.before_sending is not None:
            self.calls.hooks.before_sending()
        watchers, self.watchers = self.watchers, ()
        for watcher in watchers:
            watcher.on_close()
        self._changes.leave(self)
        self._on_outgoing, self.queue = _do_nothing, None
        for call in self.session.abandon():
            self.calls.cancel(call)
        if counted_bytes := self._result_bytes + self._sending_results + self._batch_bytes:
            self.calls.release_memory(self.client, counted_bytes)
            self._result_bytes = self._sending_results = self._batch_bytes = 0
        return not self.is_busy

    async def close(self) -> None:
        """Cancel the calls in progress, wait until they have ended, and end the subscriptions. This is shielded from
        cancellation."""
        if not self.begin_close():
            with CancelScope(shield=True):
                await self.calls.drain(self)
            await self._changes.unsubscribe(self.session.subscriptions.subscribed.values(), self.client)

    # For calls, their handlers and `Changes`

    def count_result(self, call: Call, outcome: Outcome) -> Outcome:
        """Count the memory of a result that has to wait for other messages, or for the rest of its batch. Return the
        result, or an error if waiting results take too much memory."""
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
        """Queue `change`, unless the same change already waits. If many changes wait, one of a part of a resource
        becomes one of the resource."""
        if self._pending_changes is None:
            self._pending_changes = {}
            self._loop.call_soon(self._on_outgoing)
        if change.part is not None and len(self._pending_changes) >= MANY_CHANGES:
            # The number of subscribed resources is limited, but not the number of their parts.
            change = replace(change, part=None)
        self._pending_changes[change] = None

    def announce(self, message: LogMessage) -> None:
        """Send a log message that belongs to no call, unless too many messages already wait for the peer."""
        if not self.is_behind:
            self.session.announce(message)
            self._loop.call_soon(self._on_outgoing)

    def send_soon(self) -> None:
        """Make the driver send waiting messages soon. Does not wait."""
        self._on_outgoing()

    async def flush(self) -> None:
        """Make the driver send waiting messages soon, and wait while the peer is too slow to read them."""
        self._on_outgoing()
        if self.is_behind:
            await self.wait_writable()

    async def ask_standalone(self, question: Question) -> Response | Failure:
        """Ask the peer a question that belongs to no call, and return its answer. Raises the same errors as
        `ServerSession.ask_standalone`."""
        id_ = self.session.ask_standalone(question)
        self.answers.expect([id_])
        try:
            await self.flush()
            return await self.answers.wait(id_)
        finally:
            self.answers.forget([id_])
            self.session.withdraw(id_)
            self._on_outgoing()

    async def wait_for_closing(self) -> None:
        """Wait until the server ends the streams of `subscriptions/listen`."""
        while not self.answers.is_finished:
            self._closing = self._closing or Signal()
            await self._closing.wait()

    def release_slot(self, call: Call) -> None:
        """Give the slot of `call`, which is over or detached, to the next waiting call."""
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
        self._on_outgoing()
        if self._progress is not None:
            self._progress.wake()

    async def wait_for_progress(self) -> None:
        """Wait until a call has ended, or something was sent."""
        self._progress = self._progress or Signal()  # few tasks ever wait
        await self._progress.wait()


def _do_nothing() -> None:
    """Do nothing. This function replaces `on_outgoing` after the peer has disconnected."""
