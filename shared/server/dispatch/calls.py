"""The calls in progress of a run. Each call is one asyncio task, which is started only here.

    begin ──▶ waits for a slot of its link ──▶ a task with scope, deadline and handler ──▶ outlet.finish ──▶ next call

A call belongs to the link on which it arrived, which is the connection of its peer: it counts towards the limits of
the link, where it takes a slot while it runs, and is cancelled when the peer disconnects. A detached call, which has
become a task of the protocol, belongs to no link, and its outcome goes to that task. Code that ends a call refers to
the `Call` object, not to its id, which a later call may use again.
"""

import asyncio
import math
import traceback
from collections import deque
from collections.abc import Awaitable, Collection, Container, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from anyio import CancelScope

from ...concurrency import ExpiryQueue, Signal
from ...errors import CallTimeout, InputRequired, InternalError, LimitExceeded, McpError, UnknownName
from ...protocol.records import mutable_record
from ...protocol.session.events import Call, Outcome
from ...protocol.session.server import ServerSession
from ...protocol.wire.weight import HEAVY_BYTES, weigh_value
from .hooks import Hooks
from .limits import CallLimits, Limits
from .portions import Memory, Portions
from .room import Room
from .turns import Turns

_TOOL = "tools/call"
_MAX_LIGHT_BYTES = 16_384
"""The memory of calls of at most this many bytes is not counted while they run, because their number is limited."""
_CALL_BYTES = 1_024
"""The memory in bytes that a call takes in addition to its arguments."""

_STOPS = (KeyboardInterrupt, GeneratorExit)
"""The exceptions that end the program. All others are answered with an error: even `sys.exit()` in a tool must not
end the server."""


class Outlet(Protocol):
    """The receiver of the outcome of a call: its session or, if it was detached, its task."""

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Receive the outcome of `call`. Not called for a cancelled call. Neither waits nor raises."""


class Link(Protocol):
    """The connection on which calls arrive: a `Connection`, whose module imports this one."""

    session: ServerSession
    client: str
    """The name under which the client's usage is counted; empty if there is only one client."""
    running: int
    """The number of calls that run."""
    streams: int
    """The number of open streams of `subscriptions/listen`."""
    sending: int
    """The number of messages that are being sent."""
    queue: deque[Call] | None
    """The calls that wait for a slot; None before the first one."""

    @property
    def is_behind(self) -> bool:
        """True if the peer is too slow to read the messages that wait for it."""

    async def wait_writable(self) -> None:
        """Wait until the peer has read enough of the waiting messages."""

    def count_result(self, call: Call, outcome: Outcome) -> Outcome:
        """Count a result that has to wait before it is sent. Return it, or an error if such results take too much
        memory."""

    async def wait_for_progress(self) -> None:
        """Wait until a call has ended, or something was sent."""

    def release_slot(self, call: Call) -> None:
        """Give the slot of `call`, which has ended, to the next waiting call."""


class Work(Protocol):
    """Answers calls: a `Dispatch`, which can't be named here because it imports this module."""

    @property
    def tools_at_once(self) -> Collection[str]:
        """The names of the tools that may answer at once."""

    @property
    def at_once(self) -> Container[str]:
        """The methods whose calls may be answered at once."""

    def answer_at_once(self, link: Any, call: Call) -> dict[str, Any] | None:
        """Return the result of a call of a method in `at_once`; None if the call needs `answer`. Raises the
        exceptions of the handler."""

    def answer(self, link: Any, call: Call) -> Awaitable[Any]:
        """Return an awaitable for the result of `call`. It raises the exceptions of the handler."""

    async def add_nearest_name(self, link: Any, call: Call, error: UnknownName) -> UnknownName:
        """Return `error`, which `call` has raised, with the most similar name that the client may see."""

    def translate(self, error: BaseException) -> McpError | InputRequired:
        """Return the error to send for an exception of a handler. Those that end the program are raised again."""


@mutable_record
class _Pause:
    """A call whose time limits are suspended because it waits for the user."""

    pending: int = 0
    """The number of answers for which it waits."""
    remaining: dict[CancelScope, float] = field(default_factory=dict)
    """The remaining seconds of each time limit."""


class Calls:
    """The calls of one run, in one event loop, until `close`."""

    def __init__(self, limits: Limits, budget: CallLimits, hooks: Hooks, work: Work) -> None:
        self.limits = limits
        """The limits of each link."""
        self.budget = budget
        """The limits of each call."""
        self.turns, self.brief_turns = Turns(), Turns()
        """The turns of clients for work in threads: in general, and for work that takes less than a second."""
        self.memory: Memory
        """The memory of arguments and results."""
        self._portions: Portions
        self.room: Room
        """The memory of large results that are being sent to clients."""
        self.use_memory(Memory(limits.call_bytes))
        self.hooks = hooks
        """The callbacks of the run, some of which limit the number of calls, or count refused ones."""
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[Call, asyncio.Task[None]] = {}
        # When the time of a call is up, its scope is cancelled, and `_run` answers with CallTimeout.
        self._deadlines = ExpiryQueue(budget.seconds, lambda call: call.cancel_scope.cancel())
        self._ended: Signal | None = None
        self._guests: set[CancelScope] = set()
        self._time_limit_scopes: dict[Call, tuple[CancelScope, ...]] = {}
        """The scopes of `limit_time`, which few calls use."""
        self._pauses: dict[Call, _Pause] = {}
        self.is_closing = False
        """True if calls that wait for a slot will never get one, and guests are refused."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Call]:
        """Yield the calls in progress, in the order in which they began."""
        return iter(self._tasks)

    def begin(self, link: Link, call: Call, *, at_once: bool = True) -> None:
        """Begin `call`, or queue it until its link has a slot for it, or refuse it. With `at_once`, it may be
        answered before this returns."""
        if call.is_over:  # it was cancelled by another message of its batch, or while it waited
            return
        limits = self.limits
        # If the call is detached later, it has no link, and another outlet.
        call.link, call.outlet = link, link.session
        if call.weight > _MAX_LIGHT_BYTES:
            # Validating the arguments of a heavy call takes many turns of the event loop, so it needs a task.
            at_once = at_once and call.weight < HEAVY_BYTES
            if not self._reserve_for_call(link, call):
                return
        if call.method.is_stream:
            # Streams may stay open for hours, so they have a limit of their own, and no deadline.
            if link.streams >= limits.streams:
                link.session.finish(call, InternalError(f"{limits.streams} streams are open, which is the limit"))
                return
            link.streams += 1
        elif link.running < limits.concurrent_calls:
            quota = self.hooks.quota
            # `quota` counts the calls on all connections of the client, `link.running` only those on this one.
            refusal = None if quota is None else quota.begin(link.client)
            if refusal is not None:
                self._refuse(link, call, refusal)
                return
            link.running += 1
        else:
            self._enqueue(link, call, limits.waiting_calls)
            return
        name = call.method.handler
        is_eligible = name in self._work.at_once and (name != _TOOL or call.params.name in self._work.tools_at_once)
        if at_once and is_eligible and self._answer_at_once(link, call):
            return
        call.cancel_scope = CancelScope()
        # Not in a task group, which would cost four times as much.
        self._tasks[call] = self._loop.create_task(self._run(call), context=call.origin_context)
        call.origin_context = None

    def _answer_at_once(self, link: Link, call: Call) -> bool:
        """Answer `call` now if it needs no task, whose creation costs as much as a small answer. Return False if it
        needs one, also after any error."""
        # A call that has waited for its slot began in the context of another call, so it needs a task.
        if call.origin_context is not None or link.is_behind:
            return False
        if self.room.used and not self.room.is_free(link.client):
            return False
        try:
            result = self._work.answer_at_once(link, call)
        except _STOPS:
            raise
        except BaseException as error:
            _drop_references(error)
            return False
        if result is None:
            return False
        call.began = 0.0  # no clock is read here; without a time, `finish` would report the call as unhandled
        link.session.finish(call, link.count_result(call, result) if link.session.waiting else result)
        link.release_slot(call)
        return True

    def cancel(self, call: Call) -> None:
        """Cancel `call`, and its work if that has begun. Nothing more is sent for the call."""
        if call.link is not None:
            call.link.session.cancel(call)
        call.outlet = None
        if call.cancel_scope is not None:
            call.cancel_scope.cancel()

    def detach(self, call: Call, outlet: Outlet) -> None:
        """Detach `call`, whose request was already answered, from its connection: it gives its slot back, and has no
        time limits any more. `outlet` receives the outcome. The call ends by itself, by `cancel`, or with the
        server."""
        link, call.link, call.outlet = call.link, None, outlet
        self._deadlines.stop(call)
        for scope in (call.cancel_scope, *self._time_limit_scopes.get(call, ())):
            scope.deadline = math.inf
        if (pause := self._pauses.get(call)) is not None:
            pause.remaining.clear()
        if call.release is not None:  # the memory of the arguments is counted until the work has ended
            self._tasks[call].add_done_callback(lambda _: call.end())
        if link is not None:
            link.release_slot(call)

    @contextmanager
    def pause_clock(self, call: Call) -> Iterator[None]:
        """Suspend the time limits of a call during the block, in which it waits for the user. Blocks for several
        answers may overlap."""
        # Afterwards the deadline is set in the scope of the call. It can't return to `_deadlines`, which must be in
        # the order of expiry.
        pause, now = self._pauses.setdefault(call, _Pause()), self._loop.time()
        pause.pending += 1
        clocks = [(call.cancel_scope, self._deadlines.pop(call, call.cancel_scope.deadline))]
        clocks += [(scope, scope.deadline) for scope in self._time_limit_scopes.get(call, ())]
        for scope, deadline in clocks:
            if deadline < math.inf:
                # A person may take an hour to answer, and the tool does no work while it waits.
                pause.remaining[scope], scope.deadline = deadline - now, math.inf
        try:
            yield
        finally:
            pause.pending -= 1
            if not pause.pending:
                del self._pauses[call]
                for scope, seconds in pause.remaining.items():
                    scope.deadline = self._loop.time() + seconds

    @contextmanager
    def limit_time(self, call: Call, seconds: float) -> Iterator[None]:
        """Limit the block, which is part of `call`, to `seconds`, in addition to the other time limits of the call.
        `pause_clock` suspends this limit too. Raises CallTimeout when the time is up."""
        outer = self._time_limit_scopes.get(call, ())
        with CancelScope(deadline=self._loop.time() + seconds) as scope:
            self._time_limit_scopes[call] = (*outer, scope)
            try:
                yield
            finally:
                self._time_limit_scopes[call] = outer
                if not outer:
                    del self._time_limit_scopes[call]
        if scope.cancelled_caught:
            raise CallTimeout(seconds)

    @contextmanager
    def admit_guest(self) -> Iterator[CancelScope]:
        """Yield a cancel scope for the block, in which a call of another run uses this run. When this run closes, it
        cancels the scope, and waits for the end of the block."""
        with CancelScope() as scope:
            self._guests.add(scope)
            try:
                if self.is_closing:
                    scope.cancel()
                yield scope
            finally:
                self._guests.discard(scope)
                if self._ended is not None:
                    self._ended.wake()

    async def drain(self, link: Link | None = None) -> None:
        """Wait until all calls have ended, or with `link` only its calls."""
        if link is None:
            while self._tasks or self._guests:
                self._ended = self._ended or Signal()  # few tasks ever wait
                await self._ended.wait()
        else:
            while link.running or link.streams:
                await link.wait_for_progress()

    async def close(self) -> None:
        """Cancel the calls in progress, and wait until they have ended. Calls that wait for a slot never begin."""
        self.is_closing = True
        for call in tuple(self._tasks):
            self.cancel(call)
        for scope in tuple(self._guests):
            scope.cancel()
        # Shielded, because the caller is most likely being cancelled, and the lifespan must not end before the last
        # call that uses it.
        with CancelScope(shield=True):
            await self.drain()
        self._deadlines.close()

    async def _run(self, call: Call) -> None:
        """Run `call` and answer it. Only this method turns exceptions into answers."""
        link, deadlines, is_stream = call.link, self._deadlines, call.method.is_stream
        outcome: Any = None  # a custom handler may return anything
        try:
            with call.cancel_scope:
                if not (is_stream or call.is_over) and (link.is_behind or self.room.used):
                    await self._wait_for_peer(link, call)
                if call.is_over:  # it may have been cancelled when the wait above had just ended
                    return
                call.began = self._loop.time()
                if not is_stream:
                    # The time limit starts only now, since the call did nothing while it waited.
                    deadlines[call] = call.began + deadlines.seconds
                # One timer is enough for all calls, since their time limits are equal.
                if deadlines.timer is None:
                    deadlines.arm()
                try:
                    outcome = await self._work.answer(link, call)
                except UnknownName as error:
                    raise await self._work.add_nearest_name(link, call, error) from None
                if outcome is None:
                    # Below, an outcome of None means that the time was up.
                    raise TypeError(f"the handler of {call.method.name} returned None")
            if call.outlet is not None:
                # The scope was cancelled, but not by `cancel`, which removes the outlet. So the time was up.
                _finish(call, CallTimeout(deadlines.seconds) if outcome is None else outcome)
        except BaseException as error:
            # `translate` raises exceptions that end the program. A cancellation of this call was caught by its scope,
            # so a CancelledError here comes from another task, for which the handler has waited.
            answer = self._work.translate(error)
            _drop_references(error)
            if call.outlet is not None:
                call.outlet.finish(call, answer)
        finally:
            deadlines.pop(call, None)
            del self._tasks[call]
            call.task = None
            if call.link is not None:
                call.link.release_slot(call)
            if self._ended is not None:
                self._ended.wake()

    async def _wait_for_peer(self, link: Link, call: Call) -> None:
        """Wait until the client has read enough of the results that were sent to it, on all its connections."""
        if link.is_behind:
            await link.wait_writable()
        # The results of a batch are sent together, so a call in a batch must not wait until results are read.
        if not (self.room.is_free(link.client) or link.session.is_in_batch(call)):
            await self.room.wait(link.client)

    def _enqueue(self, link: Link, call: Call, maximum: int) -> None:
        if len(link.queue or ()) >= maximum:
            link.session.finish(call, InternalError("too many calls are waiting; send fewer at once"))
            return
        if not self._reserve_for_call(link, call):
            return
        if link.queue is None:
            link.queue = deque()
        call.origin_context = copy_context()  # it will be begun by code that runs in the context of another call
        link.queue.append(call)

    def use_memory(self, memory: Memory) -> None:
        """Use `memory`, which may be the memory of other runs as well. No call may have begun."""
        self.memory, self.room, self._portions = memory, memory.room, memory.portions

    def reserve_memory(self, client: str, size: int) -> bool:
        """Count `size` bytes for `client` until `release_memory`. Return False if the client may not use so much."""
        return self._portions.reserve(client, size)

    def release_memory(self, client: str, size: int) -> None:
        """Stop counting `size` bytes for `client`."""
        self._portions.release(client, size)

    def _reserve_for_call(self, link: Link, call: Call) -> bool:
        """Count the memory of `call` until it is over. If the client may not use so much, refuse the call and return
        False."""
        if call.release is not None:  # counted already, before the call waited for its slot
            return True
        size = (call.weight or weigh_value(call.raw)) + _CALL_BYTES
        if not self._portions.reserve(link.client, size):
            self._refuse(link, call, LimitExceeded("your calls use too much memory", "memory", 1))
            return False
        call.release = partial(self._portions.release, link.client, size)
        return True

    def _refuse(self, link: Link, call: Call, refusal: LimitExceeded) -> None:
        link.session.finish(call, refusal)
        if self.hooks.on_refused is not None:
            self.hooks.on_refused(refusal)


def _finish(call: Call, outcome: Outcome) -> None:
    """Pass the outcome of `call` to its outlet."""
    link = call.link
    # If the answer will have to wait for other messages, or for the rest of its batch, its memory is counted.
    if link is not None and (link.sending or link.session.waiting or link.session.is_in_batch(call)):
        outcome = link.count_result(call, outcome)
    call.outlet.finish(call, outcome)


def _drop_references(error: BaseException) -> None:
    """Remove the references from `error` and its causes to the arguments of the call, which is over."""
    pending: list[BaseException] = [error]
    while pending:
        exception = pending.pop()
        # A traceback refers to the frames that the exception has left, and these refer to the arguments of the call.
        # If a frame also refers to the exception, only the garbage collector could free this cycle. It runs after a
        # number of objects, and a call with few objects may have megabytes of arguments.
        traceback.clear_frames(exception.__traceback__)
        exception.__traceback__ = None
        pending += filter(None, (exception.__cause__, exception.__context__))
        exception.__cause__ = exception.__context__ = None
        if isinstance(exception, BaseExceptionGroup):
            pending += exception.exceptions
