"""The work in flight of a running server: each call is one task, which starts here and nowhere else.

    begin ──▶ (waits for a place of its link) ──▶ a task: scope, deadline, handler ──▶ outlet.finish ──▶ the next one

A call belongs to the link that it came on: its limits count it, and when the peer is gone it is cancelled. Detached,
it belongs to nobody but the server, and what comes of it goes elsewhere. Whoever ends a call has the call itself in
hand, since its id may be another one's by then.
"""

import asyncio
import math
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from anyio import CancelScope

from ...concurrency import ExpiryQueue, Signal
from ...errors import CallTimeout, InputRequired, InternalError, LimitExceeded, McpError
from ...protocol.session.events import Call, Outcome
from ...protocol.session.server import ServerSession
from ...protocol.wire.weight import weigh_value
from ...tracing.trace_context import TRACEPARENT, follow
from .hooks import Hooks
from .limits import CallLimits, Limits
from .portions import Portions
from .thread_limiter import Turns

_LIGHT = 16_384
"""Bytes of a call that are not accounted for while it runs: how many run is bounded."""
_CALL_BYTES = 1_024
"""What a call takes besides its arguments."""


class Outlet(Protocol):
    """Where it is told what comes of a call: its session, or what it was detached for."""

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Takes what came of `call`; of a call that was cancelled nothing comes. Never waits or raises."""


class Link(Protocol):
    """What calls come on: a `Connection`, which knows its calls and so is not named here."""

    session: ServerSession
    client: str
    running: int
    streams: int
    queue: deque[Call] | None

    @property
    def is_behind(self) -> bool:
        """Whether the peer is too slow to take what waits for it."""

    async def room(self) -> None:
        """Waits until the peer has taken enough of it."""

    async def move(self) -> None:
        """Waits until a call has ended, or something was sent."""

    def ended(self, call: Call) -> None:
        """Gives the place of `call` to the next that waits for one."""


class Work(Protocol):
    """The work on a call: who answers it, in a context of its own. Both stand above calls, and are not named here."""

    @property
    def tools_at_once(self) -> Collection[str]:
        """The names of the tools that may have their value at once."""

    @property
    def answer_at_once(self) -> Callable[[Any, Call], dict[str, Any] | None]:
        """Answers the call of a tool, on its link; None where it takes `answer`. Raises like a handler."""

    def answer(self, link: Any, call: Call) -> Awaitable[Any]:
        """Answers `call`. Raises what the handler raises."""

    def translate(self, error: BaseException) -> McpError | InputRequired:
        """What the client is told of `error`. Raises what no handler may raise."""


@dataclass(slots=True)
class _Pause:
    """The clock of a call stands still."""

    waiting: int = 0
    """How many answers of the user's are waited for."""
    left: dict[CancelScope, float] = field(default_factory=dict)
    """The seconds that each limit of the call has left."""


class Calls:
    """The calls of one run. It is for one event loop, and ends by `close`."""

    def __init__(self, limits: Limits, budget: CallLimits, hooks: Hooks, work: Work) -> None:
        self.limits = limits
        """What each link may take."""
        self.budget = budget
        """What each call may cost."""
        self.turns, self.brief_turns = Turns(), Turns()
        """Who works in threads, and who does so for less than a second."""
        self._memory = Portions(limits.call_bytes)
        self.hooks = hooks
        """Who has a say in how many there are, and hears of those that are refused."""
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[Call, asyncio.Task[None]] = {}
        self._deadlines = ExpiryQueue(budget.seconds, _stop)
        self._ended: Signal | None = None
        self._guests: set[CancelScope] = set()
        self._narrowed: dict[Call, tuple[CancelScope, ...]] = {}  # few calls ever are
        self._pauses: dict[Call, _Pause] = {}
        self.is_closing = False
        """Whether what waits for a place never gets one."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Call]:
        """Those under way, in the order in which they began."""
        return iter(self._tasks)

    def begin(self, link: Link, call: Call) -> None:
        """Begins `call`, or lets it wait until its link has a place for it, or refuses it."""
        if call.is_over:  # it was cancelled in the batch that it came in
            return
        limits = self.limits
        # Until it is detached: then it has no link, and somebody else hears how it ends.
        call.link, call.outlet = link, link.session
        if call.weight > _LIGHT and not self._take_memory(link, call):
            return
        if call.method.is_stream:
            # Streams wait for hours by design: they have a limit of their own, and no deadline.
            if link.streams >= limits.streams:
                link.session.finish(call, InternalError(f"{limits.streams} streams are open, the most there may be"))
                return
            link.streams += 1
        elif link.running < limits.concurrent_calls:
            quota = self.hooks.quota
            # Over all connections of one client, of which a link knows its own alone.
            refusal = None if quota is None else quota.begin(link.client)
            if refusal is not None:
                self._refuse(link, call, refusal)
                return
            link.running += 1
        else:
            self._wait(link, call, limits.waiting_calls)
            return
        named = call.method.handler == "tools/call" and call.params.name
        if named in self._work.tools_at_once and self._answer_at_once(link, call):
            return
        call.scope = CancelScope()
        # Plain tasks: one in a task group costs four times as much.
        self._tasks[call] = self._loop.create_task(self._run(call), context=call.came_in)
        call.came_in = None

    def _answer_at_once(self, link: Link, call: Call) -> bool:
        """Answers the call of a tool where that needs no task, which would cost as much as a small answer does.
        Whatever goes wrong is left to the task."""
        said = call.raw.get("_meta") if call.raw else None
        # What has waited for its place is answered in its turn.
        if call.came_in is not None or link.is_behind or (said and TRACEPARENT in said):
            return False
        try:
            result = self._work.answer_at_once(link, call)
        except (Exception, InputRequired, BaseExceptionGroup) as error:
            _release(error)
            return False
        if result is None:
            return False
        link.session.finish(call, result)
        link.ended(call)
        return True

    def cancel(self, call: Call) -> None:
        """Ends `call`, and the work on it if that has begun; nobody is told anything of it any more."""
        if call.link is not None:
            call.link.session.cancel(call)
        call.outlet = None
        if call.scope is not None:
            call.scope.cancel()

    def detach(self, call: Call, outlet: Outlet) -> None:
        """From now on `call`, which is answered already, outlives its request and its connection: it takes no place
        there, and none of its limits of time goes on. What comes of it is told to `outlet`. It ends by itself, by
        `cancel`, or with the server."""
        link, call.link, call.outlet = call.link, None, outlet
        self._deadlines.stop(call)
        for scope in (call.scope, *self._narrowed.get(call, ())):
            scope.deadline = math.inf
        if (pause := self._pauses.get(call)) is not None:
            pause.left.clear()
        if call.release is not None:  # the work on it has its arguments until it ends
            self._tasks[call].add_done_callback(lambda _: call.end())
        if link is not None:
            link.ended(call)

    @contextmanager
    def paused(self, call: Call) -> Iterator[None]:
        """Stops the clock of one call while it waits for the user, be it for several answers at once. It goes on by a
        timer of its own: it is not the last to end any more."""
        pause, now = self._pauses.setdefault(call, _Pause()), self._loop.time()
        pause.waiting += 1
        clocks = [(call.scope, self._deadlines.pop(call, call.scope.deadline))]
        clocks += [(scope, scope.deadline) for scope in self._narrowed.get(call, ())]
        for scope, deadline in clocks:
            if deadline < math.inf:
                # A person may think for an hour; that is no work of the tool.
                pause.left[scope], scope.deadline = deadline - now, math.inf
        try:
            yield
        finally:
            pause.waiting -= 1
            if not pause.waiting:
                del self._pauses[call]
                for scope, left in pause.left.items():
                    scope.deadline = self._loop.time() + left

    @contextmanager
    def within(self, call: Call, seconds: float) -> Iterator[None]:
        """As long as the block, `call` has `seconds` of wall time at most, besides the limit that it has anyway; they
        stand still while its clock does. Raises CallTimeout, which names them, when they are over."""
        outer = self._narrowed.get(call, ())
        with CancelScope(deadline=self._loop.time() + seconds) as scope:
            self._narrowed[call] = (*outer, scope)
            try:
                yield
            finally:
                self._narrowed[call] = outer
                if not outer:
                    del self._narrowed[call]
        if scope.cancelled_caught:
            raise CallTimeout(seconds)

    @contextmanager
    def guest(self) -> Iterator[CancelScope]:
        """As long as the block, a call of another server works with what this one has: it is cancelled and waited for
        when this one closes."""
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
        """Waits for the end of all calls, or of those of one link."""
        if link is None:
            while self._tasks or self._guests:
                self._ended = self._ended or Signal()  # few ever wait
                await self._ended.wait()
        else:
            while link.running or link.streams:
                await link.move()

    async def close(self) -> None:
        """Cancels what is still in flight, and waits for its end; shielded. What waits for a place never begins."""
        self.is_closing = True
        for call in tuple(self._tasks):
            self.cancel(call)
        for scope in tuple(self._guests):
            scope.cancel()
        # Whoever closes is cancelled itself, most likely; the lifespan may not end before the last call that uses
        # it.
        with CancelScope(shield=True):
            await self.drain()
        self._deadlines.close()

    async def _run(self, call: Call) -> None:
        """The work on one call. This is the one place where exceptions become answers."""
        link, deadlines, is_stream = call.link, self._deadlines, call.method.is_stream
        outcome: Any = None  # an author's handler may return anything
        try:
            with call.scope:
                if call.is_over:
                    return
                said = call.raw.get("_meta") if call.raw else None
                if said and TRACEPARENT in said:
                    follow(said)
                if not is_stream and link.is_behind:
                    await link.room()
                call.began = self._loop.time()
                if not is_stream:
                    # From the first step on and not from the request: what waited for its place has done nothing
                    # yet.
                    deadlines[call] = call.began + deadlines.seconds
                # One timer for all calls: their limits are equal, so they end in the order in which they began.
                if deadlines.timer is None:
                    deadlines.arm()
                outcome = await self._work.answer(link, call)
                if outcome is None:
                    # None would be taken for a call whose time was up.
                    raise TypeError(f"what handles {call.method.name} returned None")
            if call.outlet is not None:
                # Where nothing came of a call that nobody has cancelled, its time was up.
                call.outlet.finish(call, CallTimeout(deadlines.seconds) if outcome is None else outcome)
        except (Exception, InputRequired, BaseExceptionGroup) as error:
            told = self._work.translate(error)
            _release(error)
            if call.outlet is not None:
                call.outlet.finish(call, told)
        finally:
            deadlines.pop(call, None)
            del self._tasks[call]
            call.task = None
            if call.link is not None:
                call.link.ended(call)
            if self._ended is not None:
                self._ended.wake()

    def _wait(self, link: Link, call: Call, most: int) -> None:
        if len(link.queue or ()) >= most:
            link.session.finish(call, InternalError("too many calls are waiting; send fewer at once"))
            return
        if not self._take_memory(link, call):
            return
        if link.queue is None:
            link.queue = deque()
        call.came_in = copy_context()  # it begins in the task of another call, which has its own
        link.queue.append(call)

    def _take_memory(self, link: Link, call: Call) -> bool:
        """Accounts for the memory of `call` until it is over; False where there is too little, and it is refused."""
        if call.release is not None:  # it has waited for its place
            return True
        size = (call.weight or weigh_value(call.raw)) + _CALL_BYTES
        if not self._memory.take(link.client, size):
            self._refuse(link, call, LimitExceeded("your calls take too much memory", "memory", 1))
            return False
        call.release = partial(self._memory.give, link.client, size)
        return True

    def _refuse(self, link: Link, call: Call, refusal: LimitExceeded) -> None:
        link.session.finish(call, refusal)
        if self.hooks.on_refused is not None:
            self.hooks.on_refused(refusal)


def _stop(call: Call) -> None:
    """The time of `call` is up: it is cancelled, and answered so."""
    call.scope.cancel()


def _release(error: BaseException) -> None:
    """Has `error`, and what led to it, hold nothing of the call that is over.

    A traceback holds the frames that the exception left, and these hold the arguments of the call. Where a frame
    holds the exception as well, by a name or by the future that it came from, only the garbage collector would ever
    free them: it counts objects, and a call of a few objects may have megabytes of arguments.
    """
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop()
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
        waiting += filter(None, (one.__cause__, one.__context__))
        one.__cause__ = one.__context__ = None
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
