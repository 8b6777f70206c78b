"""Serves one peer: what it sends becomes calls under way, what is due to it waits until it is fetched.

    messages ──▶ take ──▶ session.receive ──▶ calls.begin for a Call, calls.cancel for Cancelled, an answer kept
    calls ──▶ session.finish ──▶ `due` is called ──▶ outgoing ──▶ the transport

Whoever has a peer drives its connection: `serve` does it for a stream of messages, an HTTP session and a single HTTP
request do it themselves. While nothing happens it is an object and no task. Its calls end with it.
Only a peer that does not take its answers makes `serve` wait before it reads on: cancellations always get through.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio import CancelScope, create_task_group

from ...concurrency import Signal
from ...protocol.identity import LogMessage, Principal
from ...protocol.session.events import Call, Cancelled, Change, Opened, Outgoing, RootsChanged, Told
from ...protocol.session.questions import Question
from ...protocol.session.server import ServerSession
from ...protocol.wire.jsonrpc import Failure, Message, RequestId, Response

if TYPE_CHECKING:
    from ...contracts import Transport  # a page of types, which nothing needs when it runs
    from .calls import Calls
    from .changes import Changes
    from .limits import CallLimits

MANY_CHANGES = 1_000
"""Changes that wait for one peer, from which on parts of resources are not told apart."""
_NONE = Failure(None, -32603, "the client ended its stream")
"""Stands for the answer of a client that will not answer any more."""


class Watcher(Protocol):
    """Who hears what becomes of a connection. Neither waits nor raises."""

    def roots_changed(self) -> None:
        """The peer has said that its roots are others now."""

    def told(self, event: Told) -> None:
        """The peer has sent a notification that means nothing to this package."""

    def left(self) -> None:
        """The peer is gone."""


class Host(Protocol):
    """What a peer connects to: a `Run`, which knows connections and so is not named here."""

    def connect(self, principal: Principal | None, due: Callable[[], None], client: str = "") -> "Connection":
        """A new connection; `due` is called whenever something waits for the peer."""


async def serve(
    running: Host, transport: "Transport", *, principal: Principal | None = None, client: str = ""
) -> None:
    """Serves one peer on a stream of messages until that ends; then what is under way is finished, or cancelled if
    the peer is gone. `client` names who shares the server with others. Never raises for what the peer does."""
    ready, writing = asyncio.Event(), CancelScope()
    connection = running.connect(principal, ready.set, client)
    # What a `PromptTransport` has.
    try_send: Callable[[list[Outgoing]], bool] | None = getattr(transport, "try_send", None)
    unsent: list[Outgoing] = []  # what was fetched and is yet to leave

    async def write() -> None:
        nonlocal unsent
        # The scope is inside the task: a task that ends by being cancelled leaves its frames, and all they hold, to
        # the garbage collector.
        with writing, suppress(anyio.BrokenResourceError):
            while await ready.wait():
                ready.clear()
                # `write_at_once` may have fetched what the transport did not take: that goes first.
                while unsent := unsent or connection.outgoing():
                    await transport.send(unsent)
                    unsent = []
        tasks.cancel_scope.cancel()

    def write_at_once() -> None:
        """Has what is due leave without a turn of the event loop, where the transport can do so now."""
        nonlocal unsent
        while try_send is not None and not unsent and (outgoing := connection.outgoing()):
            if not try_send(outgoing):
                unsent = outgoing
                ready.set()

    try:
        async with create_task_group() as tasks:
            tasks.start_soon(write)
            with suppress(anyio.BrokenResourceError):
                await _read(connection, transport, write_at_once)
                # The peer has ended its side in order and may still read: what it asked is answered.
                await connection.drain()
            writing.cancel()
    finally:
        await connection.close()


async def _read(connection: "Connection", transport: "Transport", write_at_once: Callable[[], None]) -> None:
    """Takes messages in until the peer ends its stream. Raises BrokenResourceError when it is gone."""
    while True:
        try:
            messages = await transport.receive()
        except anyio.EndOfStream:
            return
        for message in messages:
            if connection.is_behind:
                await connection.room()
            connection.take(message)
        # Once for all that came in one piece: their answers leave in one write.
        write_at_once()
        if connection.is_behind:
            await connection.room()


class Answers:
    """What the client answers to the questions of one connection, kept until somebody asks for it."""

    __slots__ = ("_by_id", "_come", "is_finished")

    def __init__(self) -> None:
        self._by_id: dict[RequestId, Response | Failure | None] | None = None  # few connections are ever asked
        self._come: Signal | None = None
        self.is_finished = False
        """Whether the client will answer nothing more."""

    def expect(self, ids: Iterable[int]) -> None:
        """Keeps the answers to our requests `ids` from now on, in whatever order they come, until `forget`."""
        self._by_id = {**(self._by_id or {}), **dict.fromkeys(ids)}

    def forget(self, ids: Collection[int]) -> None:
        """No longer."""
        self._by_id = {id_: answer for id_, answer in (self._by_id or {}).items() if id_ not in ids} or None

    def settle(self, id: RequestId, answer: Response | Failure) -> None:
        """Takes an answer in, if it is expected."""
        if self._by_id is not None and id in self._by_id:
            self._by_id[id] = answer
            self._wake()

    def finish(self) -> None:
        """The client will answer nothing more."""
        self.is_finished = True
        self._wake()

    async def wait(self, id: int) -> Response | Failure:
        """Waits for the answer to our request `id`, which is expected."""
        while (answer := (self._by_id or {})[id]) is None:
            if self.is_finished:
                return _NONE
            self._come = self._come or Signal()
            await self._come.wait()
        return answer

    def _wake(self) -> None:
        if self._come is not None:
            self._come.wake()


class Connection:
    """One peer of a run, made by `Run.connect`. It ends by `close`, and never raises for what the peer does."""

    __slots__ = (
        "_bus",
        "_changes",
        "_closing",
        "_due",
        "_loop",
        "_moved",
        "_observer",
        "_sending",
        "answers",
        "budget",
        "calls",
        "client",
        "queue",
        "running",
        "session",
        "streams",
        "watchers",
    )

    def __init__(
        self, calls: "Calls", changes: "Changes", session: ServerSession, due: Callable[[], None], client: str
    ) -> None:
        self.calls = calls
        """The calls of the run that it is a connection of."""
        self.client = client
        """A name for whoever is served, an address and a principal; empty where nobody else is."""
        self.session = session
        self._due = due
        self._loop = asyncio.get_running_loop()
        self.running = self.streams = self._sending = 0
        """How many calls run now, how many listen streams are open, and how many messages are on their way."""
        self.queue: deque[Call] | None = None
        """The calls that wait for a place, where any ever did."""
        self.budget: CallLimits | None = None
        """What each of its calls may cost, once the first has come."""
        self.answers = Answers()
        self._bus = changes
        self._changes: dict[Change, None] | None = None
        self._moved: Signal | None = None
        self._closing: Signal | None = None
        self.watchers: tuple[Watcher, ...] = ()
        """Who hears what becomes of it; to be replaced, not changed."""
        self._observer = calls.hooks.observer()
        changes.join(self)

    # What the driver does

    def take(self, message: Message) -> None:
        """Takes a message in, and begins what it asks for."""
        if self._observer is not None:
            self._observer.received(message)
        for event in self.session.receive(message):
            if isinstance(event, Call):
                self.calls.begin(self, event)
            elif isinstance(event, Cancelled):
                self.calls.cancel(event.call)
            elif isinstance(event, Opened):
                for greet in self.calls.hooks.greeters:
                    greet(self)
            elif isinstance(event, RootsChanged | Told):
                self._tell_watchers(event)
            else:
                self.answers.settle(event.id, event.answer)
        if self.session.waiting:
            self._due()

    def outgoing(self) -> list[Outgoing]:
        """What waits for the peer. It counts as on its way until this is called again."""
        # Where too much waits already, the peer must catch up before it is told of changes.
        if self._changes and len(self.session.waiting) < self.calls.limits.waiting_messages:
            # Fetched late: of a list that has changed ten times while the peer was slow it hears once.
            changes, self._changes = self._changes, None
            for change in changes:
                self.session.deliver(change)
        outgoing = self.session.outgoing()
        self._sending = len(outgoing)
        if self._moved is not None:
            self._moved.wake()
        if self._observer is not None:
            self._observer.sent(outgoing)
        return outgoing

    def _tell_watchers(self, event: RootsChanged | Told) -> None:
        for watcher in tuple(self.watchers):
            if isinstance(event, Told):
                watcher.told(event)
            else:
                watcher.roots_changed()

    @property
    def is_behind(self) -> bool:
        """Whether the peer is too slow to take what waits for it."""
        return len(self.session.waiting) + self._sending > self.calls.limits.waiting_messages

    @property
    def is_left(self) -> bool:
        """Whether the peer is gone."""
        return self._due is _nothing

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way, or the peer has subscriptions."""
        return bool(self.running or self.streams or self.session.subscriptions.subscribed)

    async def room(self) -> None:
        """Waits until the peer has taken enough of what waits for it."""
        while self.is_behind:
            await self.move()

    def finish(self, *, is_heard: bool = False) -> None:
        """The peer sends no more: its listen streams are ended, and what it was asked it will not answer, unless it
        still `is_heard` elsewhere."""
        if not is_heard:
            self.answers.finish()
        if self._closing is not None:
            self._closing.wake()

    async def drain(self, *, is_heard: bool = False) -> None:
        """Finishes, and waits for calls under way and for what is due to leave, within limits."""
        self.finish(is_heard=is_heard)
        with anyio.move_on_after(self.calls.limits.drain_seconds):
            await self.calls.drain(self)
            while self.session.waiting or self._changes or self._sending:
                await self.move()

    def leave(self) -> bool:
        """Cancels what is under way; whether nothing was, so that there is nothing for `close` to wait for."""
        watchers, self.watchers = self.watchers, ()
        for watcher in watchers:
            watcher.left()
        self._bus.leave(self)
        self._due, self.queue = _nothing, None
        for call in self.session.abandon():
            self.calls.cancel(call)
        return not self.is_busy

    async def close(self) -> None:
        """Leaves, waits for the end of what is under way, and gives up the subscriptions; shielded."""
        if not self.leave():
            with CancelScope(shield=True):
                await self.calls.drain(self)
            await self._bus.release(self.session.subscriptions.subscribed.values(), self.client)

    # What calls, their handlers and the change bus do

    def changed(self, change: Change) -> None:
        """Takes note of `change`; a change that waits to be told already is told once. Where many wait, parts of a
        resource are told as the whole."""
        if self._changes is None:
            self._changes = {}
            self._loop.call_soon(self._due)
        if change.part is not None and len(self._changes) >= MANY_CHANGES:
            # What is subscribed to is bounded, its parts are not: so the whole is told of.
            change = replace(change, part=None)
        self._changes[change] = None

    def announce(self, message: LogMessage) -> None:
        """Sends a log message that belongs to no call, unless too much waits for the peer already."""
        if not self.is_behind:
            self.session.announce(message)
            self._loop.call_soon(self._due)

    def soon(self) -> None:
        """Lets waiting messages leave, without waiting for it."""
        self._due()

    async def flush(self) -> None:
        """Lets waiting messages leave; waits while the peer is too slow to take them."""
        self._due()
        if self.is_behind:
            await self.room()

    async def ask_apart(self, question: Question) -> Response | Failure:
        """What the peer answers to a question that belongs to none of its calls. Raises like
        `ServerSession.ask_apart`."""
        id_ = self.session.ask_apart(question)
        self.answers.expect([id_])
        try:
            await self.flush()
            return await self.answers.wait(id_)
        finally:
            self.answers.forget([id_])
            self.session.withdraw(id_, "no longer needed")
            self._due()

    async def closing(self) -> None:
        """Waits until the server ends the listen streams."""
        while not self.answers.is_finished:
            self._closing = self._closing or Signal()
            await self._closing.wait()

    def ended(self, call: Call) -> None:
        """`call` is over, or detached: its place goes to the next that waits for one."""
        if call.method.is_stream:
            self.streams -= 1
        else:
            self.running -= 1
            calls = self.calls
            quota, most = calls.hooks.quota, calls.limits.concurrent_calls
            if quota is not None:
                quota.end(self.client)
            while self.queue and not calls.is_closing and self.running < most:
                following = self.queue.popleft()
                if not following.is_over:
                    calls.begin(self, following)
        self._due()
        if self._moved is not None:
            self._moved.wake()

    async def move(self) -> None:
        """Waits until a call has ended, or something was sent."""
        self._moved = self._moved or Signal()  # few ever wait
        await self._moved.wait()


def _nothing() -> None:
    """Nobody fetches any more what is due."""
