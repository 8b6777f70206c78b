"""Calls in progress in a running server: each call is one task, which starts only here.

begin ──▶ (waits for a place of its link) ──▶ a task: scope, deadline, handler ──▶ outlet.finish ──▶ the next one

A call belongs to the link on which it arrived: it counts towards the limits of the link, and is cancelled when the
peer disconnects. A detached call belongs to the server only, and its result is sent elsewhere. Code that ends a call
holds the call itself, since its id may have been reused by then.
"""

import asyncio
import math
import traceback
from collections import deque
from collections.abc import Awaitable, Collection, Container, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from anyio import CancelScope

from ...concurrency import ExpiryQueue, Signal
from ...errors import CallTimeout, InputRequired, InternalError, LimitExceeded, McpError, UnknownName
from ...protocol.session.events import Call, Outcome
from ...protocol.session.server import ServerSession
from ...protocol.wire.weight import HEAVY_BYTES, weigh_value
from .hooks import Hooks
from .limits import CallLimits, Limits
from .portions import Portions
from .room import Room
from .turns import Turns

_TOOL = "tools/call"
_MAX_LIGHT_BYTES = 16_384
"""Calls of at most this many bytes are not accounted for while they run, because their number is bounded."""
_CALL_BYTES = 1_024
"""Bytes that a call takes in addition to its arguments."""

_STOPS = (KeyboardInterrupt, GeneratorExit)
"""The exceptions that stop the program. All others are answered: `sys.exit()` in a tool must not end the server."""


class Outlet(Protocol):
    """The receiver of the outcome of a call: its session, or the task for which it was detached."""

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Receive the outcome of `call`; a cancelled call has none. Never waits or raises."""


class Link(Protocol):
    """The source of calls: a `Connection`, which imports this module and so is not named here."""

    session: ServerSession
    client: str
    running: int
    streams: int
    sending: int
    queue: deque[Call] | None

    @property
    def is_behind(self) -> bool:
        """True if the peer is too slow to read the messages that wait for it."""

    async def wait_writable(self) -> None:
        """Wait until the peer has read enough of the waiting messages."""

    def count_result(self, call: Call, outcome: Outcome) -> Outcome:
        """Count a result that must wait, and return the result, or an error if there is no room."""

    async def wait_for_progress(self) -> None:
        """Wait until a call has ended, or something was sent."""

    def free_place(self, call: Call) -> None:
        """Give the place of `call`, which has ended, to the next waiting call."""


class Work(Protocol):
    """Answers calls, each in its own context. Its implementation imports this module."""

    @property
    def tools_at_once(self) -> Collection[str]:
        """The names of the tools that may answer at once."""

    @property
    def at_once(self) -> Container[str]:
        """The methods that may be answered at once."""

    def answer_at_once(self, link: Any, call: Call) -> dict[str, Any] | None:
        """Answer a call of one of these methods on its link; return None if the call needs `answer`. Raises the same
        errors as a handler."""

    def answer(self, link: Any, call: Call) -> Awaitable[Any]:
        """Answer `call`. Raises the exceptions of the handler."""

    async def add_nearest_name(self, link: Any, call: Call, error: UnknownName) -> UnknownName:
        """Return the error of `call`, with the nearest name that its client may see."""

    def translate(self, error: BaseException) -> McpError | InputRequired:
        """Return the error for the client. Raises exceptions that no handler may raise."""


@dataclass(slots=True, eq=False, repr=False)
class _Pause:
    """The state of a call whose clock is stopped."""

    pending: int = 0
    """The number of answers from the user for which it waits."""
    remaining: dict[CancelScope, float] = field(default_factory=dict)
    """The remaining seconds of each limit of the call."""


class Calls:
    """The calls of one run, for one event loop. It ends with `close`."""

    def __init__(self, limits: Limits, budget: CallLimits, hooks: Hooks, work: Work) -> None:
        self.limits = limits
        """The limits of each link."""
        self.budget = budget
        """The limits of each call."""
        self.turns, self.brief_turns = Turns(), Turns()
        """The turns for work in threads, and for such work that takes less than a second."""
        self._memory = Portions(limits.call_bytes)
        self.room = Room(limits.call_bytes // 2)
        """The room for large results on the way to clients."""
        self.hooks = hooks
        """Callbacks that limit the number of calls, and are notified of refused ones."""
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[Call, asyncio.Task[None]] = {}
        # A call whose scope is cancelled at its deadline is answered with a timeout error.
        self._deadlines = ExpiryQueue(budget.seconds, lambda call: call.scope.cancel())
        self._ended: Signal | None = None
        self._guests: set[CancelScope] = set()
        self._narrow_scopes: dict[Call, tuple[CancelScope, ...]] = {}  # few calls ever have narrowed limits
        self._pauses: dict[Call, _Pause] = {}
        self.is_closing = False
        """True if waiting calls will never get a place."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Call]:
        """Iterate over the calls in progress, in the order in which they began."""
        return iter(self._tasks)

    def begin(self, link: Link, call: Call, *, at_once: bool = True) -> None:
        """Begin `call`, queue it until its link has a place for it, or refuse it. It may be answered `at_once`."""
        if call.is_over:  # it was cancelled in its own batch, or while it waited
            return
        limits = self.limits
        # A call that is detached later has no link, and another outlet.
        call.link, call.outlet = link, link.session
        if call.weight > _MAX_LIGHT_BYTES:
            # The task of a heavy call validates its arguments in turns of their own.
            at_once = at_once and call.weight < HEAVY_BYTES
            if not self._reserve_for_call(link, call):
                return
        if call.method.is_stream:
            # Streams stay open for hours by design, so they have a separate limit and no deadline.
            if link.streams >= limits.streams:
                link.session.finish(call, InternalError(f"{limits.streams} streams are open, which is the limit"))
                return
            link.streams += 1
        elif link.running < limits.concurrent_calls:
            quota = self.hooks.quota
            # The quota counts the calls on all connections of a client; `link.running` those on one connection.
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
        call.scope = CancelScope()
        # A task in a task group costs four times as much.
        self._tasks[call] = self._loop.create_task(self._run(call), context=call.origin_context)
        call.origin_context = None

    def _answer_at_once(self, link: Link, call: Call) -> bool:
        """Answer a call if no task is needed, which would cost as much as a small answer. After any error, a task
        answers instead."""
        # A call that has waited for its place is answered in turn.
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
        call.began = 0.0  # its clock is never read, but without a time it would be reported as unhandled
        link.session.finish(call, link.count_result(call, result) if link.session.waiting else result)
        link.free_place(call)
        return True

    def cancel(self, call: Call) -> None:
        """Cancel `call`, and any work on it that has begun; nothing more is sent about the call."""
        if call.link is not None:
            call.link.session.cancel(call)
        call.outlet = None
        if call.scope is not None:
            call.scope.cancel()

    def detach(self, call: Call, outlet: Outlet) -> None:
        """Detach `call`, which is already answered, from its request and its connection: it releases its place there,
        and its time limits stop. `outlet` receives the outcome. The call ends on its own, by `cancel`, or with the
        server."""
        link, call.link, call.outlet = call.link, None, outlet
        self._deadlines.stop(call)
        for scope in (call.scope, *self._narrow_scopes.get(call, ())):
            scope.deadline = math.inf
        if (pause := self._pauses.get(call)) is not None:
            pause.remaining.clear()
        if call.release is not None:  # the work on the call holds its arguments until the work ends
            self._tasks[call].add_done_callback(lambda _: call.end())
        if link is not None:
            link.free_place(call)

    @contextmanager
    def pause_clock(self, call: Call) -> Iterator[None]:
        """Stop the clock of a call while it waits for the user, even for several answers at once. Afterwards the call
        has its own timer, because it is no longer the last to end."""
        pause, now = self._pauses.setdefault(call, _Pause()), self._loop.time()
        pause.pending += 1
        clocks = [(call.scope, self._deadlines.pop(call, call.scope.deadline))]
        clocks += [(scope, scope.deadline) for scope in self._narrow_scopes.get(call, ())]
        for scope, deadline in clocks:
            if deadline < math.inf:
                # A person may think for an hour; the tool does no work during that time.
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
        """Limit `call` to `seconds` of wall time during the block, in addition to its other limit; both stop with its
        clock. Raises CallTimeout with that number when they have passed."""
        outer = self._narrow_scopes.get(call, ())
        with CancelScope(deadline=self._loop.time() + seconds) as scope:
            self._narrow_scopes[call] = (*outer, scope)
            try:
                yield
            finally:
                self._narrow_scopes[call] = outer
                if not outer:
                    del self._narrow_scopes[call]
        if scope.cancelled_caught:
            raise CallTimeout(seconds)

    @contextmanager
    def admit_guest(self) -> Iterator[CancelScope]:
        """Yield a scope in which a call of another server uses the resources of this server. When this server closes,
        the scope is cancelled and awaited."""
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
        """Wait for the end of all calls, or of the calls of one link."""
        if link is None:
            while self._tasks or self._guests:
                self._ended = self._ended or Signal()  # few tasks ever wait
                await self._ended.wait()
        else:
            while link.running or link.streams:
                await link.wait_for_progress()

    async def close(self) -> None:
        """Cancel the calls in progress, and wait for their end, shielded. Waiting calls never begin."""
        self.is_closing = True
        for call in tuple(self._tasks):
            self.cancel(call)
        for scope in tuple(self._guests):
            scope.cancel()
        # The wait is shielded because the caller is most likely cancelled, and the lifespan must not end before the
        # last call that uses it.
        with CancelScope(shield=True):
            await self.drain()
        self._deadlines.close()

    async def _run(self, call: Call) -> None:
        """Run one call. This is the only place where exceptions become answers."""
        link, deadlines, is_stream = call.link, self._deadlines, call.method.is_stream
        outcome: Any = None  # an author's handler may return anything
        try:
            with call.scope:
                if not (is_stream or call.is_over) and (link.is_behind or self.room.used):
                    await self._wait_for_peer(link, call)
                if call.is_over:  # it may have been cancelled just when its wait ended
                    return
                call.began = self._loop.time()
                if not is_stream:
                    # The time of a call begins with its first step, since a call that waits for its place does no
                    # work.
                    deadlines[call] = call.began + deadlines.seconds
                # One timer serves all calls, since their limits are equal: the first to begin is the first to end.
                if deadlines.timer is None:
                    deadlines.arm()
                try:
                    outcome = await self._work.answer(link, call)
                except UnknownName as error:
                    raise await self._work.add_nearest_name(link, call, error) from None
                if outcome is None:
                    # None would be treated as a timeout.
                    raise TypeError(f"the handler of {call.method.name} returned None")
            if call.outlet is not None:
                # A call without an outcome that was not cancelled has used up its time.
                _finish(call, CallTimeout(deadlines.seconds) if outcome is None else outcome)
        except BaseException as error:
            # `translate` raises errors that stop the program. The scope of a call catches its own cancellation; any
            # other cancellation comes from a task that the function has awaited.
            answer = self._work.translate(error)
            _drop_references(error)
            if call.outlet is not None:
                call.outlet.finish(call, answer)
        finally:
            deadlines.pop(call, None)
            del self._tasks[call]
            call.task = None
            if call.link is not None:
                call.link.free_place(call)
            if self._ended is not None:
                self._ended.wake()

    async def _wait_for_peer(self, link: Link, call: Call) -> None:
        """Wait until the peer has read enough of what was sent to it, on all its connections."""
        if link.is_behind:
            await link.wait_writable()
        # The results of a batch are sent together, so its calls must not wait for each other.
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
        call.origin_context = copy_context()  # the call will begin in the task of another call
        link.queue.append(call)

    def reserve_memory(self, client: str, size: int) -> bool:
        """Reserve `size` bytes for `client` until `release_memory`. Return False if too little memory is left."""
        return self._memory.reserve(client, size)

    def release_memory(self, client: str, size: int) -> None:
        """Release `size` bytes of `client`."""
        self._memory.release(client, size)

    def _reserve_for_call(self, link: Link, call: Call) -> bool:
        """Reserve the memory of `call` until it is over. Refuse the call and return False if too little is left."""
        if call.release is not None:  # the memory was reserved before the call waited for its place
            return True
        size = (call.weight or weigh_value(call.raw)) + _CALL_BYTES
        if not self._memory.reserve(link.client, size):
            self._refuse(link, call, LimitExceeded("your calls use too much memory", "memory", 1))
            return False
        call.release = partial(self._memory.release, link.client, size)
        return True

    def _refuse(self, link: Link, call: Call, refusal: LimitExceeded) -> None:
        link.session.finish(call, refusal)
        if self.hooks.on_refused is not None:
            self.hooks.on_refused(refusal)


def _finish(call: Call, outcome: Outcome) -> None:
    """Answer `call`, which has an outlet."""
    link = call.link
    # The answer waits behind other answers, or for the rest of its batch.
    if link is not None and (link.sending or link.session.waiting or link.session.is_in_batch(call)):
        outcome = link.count_result(call, outcome)
    call.outlet.finish(call, outcome)


def _drop_references(error: BaseException) -> None:
    """Remove the references from `error` and its causes to the call that is over."""
    pending: list[BaseException] = [error]
    while pending:
        exception = pending.pop()
        # A traceback holds the frames that the exception left, and these hold the arguments of the call. If a frame
        # holds the exception as well, by a name or by the future that it came from, only the garbage collector would
        # ever free them: it counts objects, and a call of a few objects may have megabytes of arguments.
        traceback.clear_frames(exception.__traceback__)
        exception.__traceback__ = None
        pending += filter(None, (exception.__cause__, exception.__context__))
        exception.__cause__ = exception.__context__ = None
        if isinstance(exception, BaseExceptionGroup):
            pending += exception.exceptions
