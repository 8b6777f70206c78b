"""Serves one peer: what it sends becomes calls under way, what is due to it waits until it is fetched.

    messages ──▶ take ──▶ session.receive ──▶ a task for a Call, a scope cancelled for Cancelled, an answer kept
    handlers ──▶ session.respond ──▶ `due` is called ──▶ outgoing ──▶ the transport

Whoever has a peer drives its connection: `serve` does it for a stream of messages, an HTTP session and a single HTTP
request do it themselves. While nothing happens it is an object and no task. Calls are its tasks, and end with it.
Only a peer that does not take its answers makes `serve` wait before it reads on: cancellations always get through.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio.lowlevel
from anyio import CancelScope, create_task_group

from ..errors import CallTimeout, InputRequired, InternalError, McpError
from ..kit.signal import Signal
from ..protocol.session.events import Call, Cancelled, Change, Outgoing
from ..protocol.wire.jsonrpc import Failure, Message, RequestId, Response
from ..transport import Transport
from .answers import Answers
from .app import Server
from .context import Context
from .handlers import HANDLERS
from .tracebacks import release

__all__ = ["Connection", "serve"]


async def serve(app: Server[Any], transport: Transport, *, principal: str | None = None) -> None:
    """Serves one peer on a stream of messages until that ends; then what is under way is finished, or cancelled if
    the peer is gone. The server must be running (`app.running()`). Never raises for what the peer does."""
    ready, writing = asyncio.Event(), CancelScope()
    connection = Connection(app, principal, ready.set)

    async def write() -> None:
        # The scope is inside the task: a task that ends by being cancelled leaves its frames, and all they hold, to
        # the garbage collector.
        with writing, suppress(anyio.BrokenResourceError):
            while await ready.wait():
                ready.clear()
                while outgoing := connection.outgoing():
                    await transport.send(outgoing)
        tasks.cancel_scope.cancel()

    try:
        async with create_task_group() as tasks:
            tasks.start_soon(write)
            if await _read(connection, transport):
                await connection.drain()
            writing.cancel()
    finally:
        await connection.close()


async def _read(connection: "Connection", transport: Transport) -> bool:
    """Takes messages in until the peer ends its stream, which is True, or is gone."""
    try:
        while True:
            for message in await transport.receive():
                connection.take(message)
            if connection.is_behind:
                await connection.room()
    except anyio.EndOfStream:
        return True
    except anyio.BrokenResourceError:
        return False


class Connection:
    """One peer being served, by a server that is running. It ends by `close`. Never raises for what the peer does."""

    def __init__(self, app: Server[Any], principal: str | None, due: Callable[[], None], client: str = "") -> None:
        """`due` is called whenever something waits for the peer; it may be called in vain. `client` names who shares
        the server with others; "" is alone."""
        self.client = client
        self.session = app.session(principal)
        self._app = app
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._scopes: dict[RequestId, CancelScope] = {}
        self._running = self._listening = self._sending = 0
        self._queue: deque[tuple[Call, CancelScope]] | None = None
        self.answers = Answers()
        self._changes: dict[Change, None] = {}
        self._moved: Signal | None = None
        self._finishing = False
        self._closing: Signal | None = None
        self._observer = app.observer()
        app.changes.join(self)

    # What the driver does

    def take(self, message: Message) -> None:
        """Takes a message in, and begins what it asks for."""
        if self._observer is not None:
            self._observer.received(message)
        for event in self.session.receive(message):
            if isinstance(event, Call):
                self._begin(event)
            elif isinstance(event, Cancelled):
                self._cancel(event.id)
            else:
                self.answers.settle(event.id, event.answer)
        if self.session.waiting:
            self._due()

    def outgoing(self) -> list[Outgoing]:
        """What waits for the peer. It counts as on its way until this is called again."""
        # Where too much waits already, the peer must catch up before it is told of changes.
        if self._changes and len(self.session.waiting) < self._app.limits.waiting_messages:
            changes, self._changes = self._changes, {}
            for change in changes:
                self.session.deliver(change)
        outgoing = self.session.outgoing()
        self._sending = len(outgoing)
        if self._moved is not None:
            self._moved.wake()
        if self._observer is not None:
            self._observer.sent(outgoing)
        return outgoing

    @property
    def is_behind(self) -> bool:
        """Whether the peer is too slow to take what waits for it."""
        return len(self.session.waiting) + self._sending > self._app.limits.waiting_messages

    async def room(self) -> None:
        """Waits until the peer has taken enough of what waits for it."""
        while self.is_behind:
            await self._move()

    def finish(self) -> None:
        """The peer sends no more: its listen streams are ended, and what it was asked it will not answer."""
        self._finishing = True
        self.answers.finish()
        if self._closing is not None:
            self._closing.wake()

    async def drain(self) -> None:
        """Finishes, and waits for calls under way and for what is due to leave, within limits."""
        self.finish()
        with anyio.move_on_after(self._app.limits.drain_seconds):
            while self._scopes or self.session.waiting or self._changes or self._sending:
                await self._move()

    def leave(self) -> bool:
        """Cancels what is under way; whether nothing was, so that there is nothing for `close` to wait for."""
        self._app.changes.leave(self)
        self._due = lambda: None
        scopes, self._scopes, self._queue = self._scopes, {}, None
        for scope in scopes.values():
            scope.cancel()
        return not self._tasks and not self.session.subscriptions.subscribed

    async def close(self) -> None:
        """Leaves, waits for the end of what is under way, and gives up the subscriptions; shielded."""
        if not self.leave():
            with CancelScope(shield=True):
                while self._tasks:
                    await self._move()
            await self._app.changes.release(self.session.subscriptions.subscribed.values(), self.client)

    def rest(self) -> None:
        """Nothing comes for a while: tables that are empty give up their room, a fifth of what an idle session is."""
        self._tasks = self._tasks or {}
        self._scopes = self._scopes or {}
        self.session.rest()

    # What handlers and the change bus do

    def changed(self, change: Change) -> None:
        """Takes note of `change`; a change that waits to be told already is told once."""
        if not self._changes:
            self._loop.call_soon(self._due)
        self._changes[change] = None

    async def flush(self) -> None:
        """Lets waiting messages leave; waits while the peer is too slow to take them."""
        self._due()
        if self.is_behind:
            await self.room()

    async def closing(self) -> None:
        """Waits until the server ends the listen streams."""
        while not self._finishing:
            self._closing = self._closing or Signal()
            await self._closing.wait()

    async def answer_to(self, about: RequestId, id: int) -> Response | Failure:
        """Waits for the client's answer to our request `id`, which the call `about` made. The user's time is not the
        call's: its clock stands meanwhile."""
        with self._app.deadlines.paused(self._scopes.get(about)):
            return await self.answers.wait(id)

    # Calls

    def _begin(self, call: Call) -> None:
        limits, is_stream = self._app.limits, call.method.name == "subscriptions/listen"
        if is_stream and self._listening >= limits.streams:
            self.session.fail(call.id, InternalError(f"{limits.streams} streams are open, the most there may be"))
            return
        if len(self._queue or ()) >= limits.waiting_calls and not is_stream:
            self.session.fail(call.id, InternalError("too many calls are waiting; send fewer at once"))
            return
        scope = self._scopes[call.id] = CancelScope()
        # Plain tasks: one in a task group costs four times as much.
        if is_stream:
            self._listening += 1
            self._tasks[self._loop.create_task(self._stream(call, scope))] = None
        elif self._running < limits.concurrent_calls:
            self._running += 1
            self._tasks[self._loop.create_task(self._call(call, scope))] = None
        else:
            self._queue = self._queue or deque()
            self._queue.append((call, scope))

    def _cancel(self, id: RequestId) -> None:
        scope = self._scopes.pop(id, None)
        if scope is not None:
            scope.cancel()

    async def _call(self, call: Call, scope: CancelScope) -> None:
        deadlines = self._app.deadlines
        try:
            with scope:
                if scope.cancel_called or self.is_behind:
                    await anyio.lowlevel.checkpoint_if_cancelled()
                    await self.room()
                deadlines[scope] = self._loop.time() + self._app.budget.seconds
                if deadlines.timer is None:
                    deadlines.arm()
                await self._answer(call, scope)
        finally:
            deadlines.pop(scope, None)
            if self._queue:
                self._tasks[self._loop.create_task(self._call(*self._queue.popleft()))] = None
            else:
                self._running -= 1
            self._over(call, scope)

    async def _stream(self, call: Call, scope: CancelScope) -> None:
        try:
            with scope:
                await self._answer(call, scope)
        finally:
            self._listening -= 1
            self._over(call, scope)

    async def _answer(self, call: Call, scope: CancelScope) -> None:
        """Runs the handler. This is the one place where exceptions become answers."""
        app = self._app
        handler = app.handlers.get(call.method.name) or HANDLERS[call.method.name]
        turns = app.turns, app.brief_turns
        context = Context(call.id, call.peer, self, app.state, app.budget, app.changes, *turns)
        outcome: dict[str, Any] | McpError | InputRequired
        try:
            outcome = await handler(app, context, call.params)
        except asyncio.CancelledError:
            # For a call that the peer cancelled this says nothing; it is the answer when time was up.
            self._tell(call, scope, CallTimeout(app.budget.seconds))
            raise
        except (Exception, InputRequired, BaseExceptionGroup) as error:
            outcome = app.translate(error)
            release(error)
        self._tell(call, scope, outcome)

    def _tell(self, call: Call, scope: CancelScope, outcome: dict[str, Any] | McpError | InputRequired) -> None:
        """Ends a call, unless the peer has cancelled it: then its id may be another call's by now."""
        if self._scopes.get(call.id) is not scope:
            return
        if isinstance(outcome, dict):
            self.session.respond(call.id, outcome)
        elif isinstance(outcome, InputRequired):
            self.session.require_input(call.id, outcome)
        else:
            self.session.fail(call.id, outcome)

    def _over(self, call: Call, scope: CancelScope) -> None:
        if self._scopes.get(call.id) is scope:
            del self._scopes[call.id]
        task = asyncio.current_task()
        if task is not None:
            self._tasks.pop(task, None)
        self._due()
        if self._moved is not None:
            self._moved.wake()

    async def _move(self) -> None:
        """Waits until a call has ended, or something was sent."""
        self._moved = self._moved or Signal()  # few ever wait
        await self._moved.wait()
