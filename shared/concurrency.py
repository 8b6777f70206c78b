"""Helpers for asyncio: tasks that end with a block, errors of task groups, long work in steps, signals to wait for,
and keys that expire."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice, takewhile
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio import lowlevel
from anyio.abc import TaskGroup

from .steps import Steps

T = TypeVar("T")

_TURNS_BETWEEN = 3
"""The number of turns of the event loop that are left to other work after each step."""
_step_lock: lowlevel.RunVar[anyio.Lock] = lowlevel.RunVar("stepping")
"""Held while one of several long works runs a step, so that they alternate, and a small request waits for one."""


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Yield a task group whose tasks are cancelled at the end of the block.

    A single error is raised unchanged: the user of a client expects a `PeerError`, not a group that contains it.
    """
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        # A traceback would also show the group as the context of the error; `from` hides it.
        only = group.exceptions[0]
        raise only from only.__cause__


async def wait_for_first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Call all `waits` at the same time, and cancel the others as soon as one has returned."""

    async def wait_for(wait: Callable[[], Awaitable[object]]) -> None:
        await wait()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for wait in waits:
            tasks.start_soon(wait_for, wait)


def first_error(error: BaseException) -> BaseException:
    """Return the first error in an exception group, which may be nested; any other error is returned unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def run_in_turns(steps: Steps[T]) -> T:
    """Run the `steps`, and return their result. Only one caller at a time runs a step, and leaves a few turns of the
    event loop to other work after it. A small request needs about as many turns, so it waits for one step at most."""
    lock = _step_lock.get(None)
    if lock is None:
        _step_lock.set(lock := anyio.Lock(fast_acquire=True))
    result: T
    is_over = False
    while not is_over:
        async with lock:
            try:
                next(steps)
            except StopIteration as stop:
                is_over, result = True, stop.value
            for _ in range(_TURNS_BETWEEN):
                await lowlevel.checkpoint()
    return result


class AsyncContext:
    """A base class that makes a class usable with `async with`. The block runs within the context manager that the
    class returns from `_lifespan`."""

    _block: AbstractAsyncContextManager[None] | None = None

    def _lifespan(self) -> AbstractAsyncContextManager[None]:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._block = self._lifespan()
        await self._block.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, error, traceback) if self._block is not None else None


class TaskSet:
    """The tasks of one owner, which has to stop them. It is meant for many small tasks: a task group would cost more
    time than the work of such a task. `on_failure` is called with each exception that a task raises."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Schedule `work` as a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def finish(self, timeout: float) -> None:  # noqa: ASYNC109 - the tasks continue
        """Wait until the tasks have ended, for at most `timeout` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    async def stop(self) -> None:
        """Cancel the tasks, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class Signal:
    """Wakes all tasks that are waiting for it. Each of them then checks whether the change concerns it.

    Thousands of sessions have a few signals each, and each message wakes some. Unlike `asyncio.Event`, a signal takes
    no memory for waiters while nobody waits, and can be used again without being replaced. All its users must run in
    one event loop.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    async def wait(self) -> None:
        """Wait for the next `wake`."""
        future = asyncio.get_running_loop().create_future()
        # A tuple, since the empty tuple takes no memory, and rarely does more than one task wait.
        self._waiting = (*self._waiting, future)
        try:
            await future
        finally:
            if self._waiting:
                self._waiting = tuple(waiter for waiter in self._waiting if waiter is not future)

    def wake(self) -> None:
        """Wake all waiting tasks."""
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)


MAX_EXPIRED_AT_ONCE = 100
"""Maximum number of keys that expire in one turn of the event loop. All keys of a burst expire together, and would
block the loop."""


class ExpiryQueue(dict[Any, float]):
    """Keys that expire unless they are stopped before, such as calls, idle sessions, and streams without a reader.

    All keys of a queue have the same time limit, so the first key that was started expires first, and one timer is
    enough for all keys. A timer for each would take a tenth of a small call's time. The dict maps each key to the
    time of its expiry on the event loop's clock, in the order of expiry.

    A caller for which `start` and `stop` are too slow may set and delete entries of the dict itself: the time must be
    later than all others in it, and the timer must be armed if it is None.
    """

    def __init__(self, seconds: float, action: Callable[[Any], object]) -> None:
        """Call `action` with each key that was started `seconds` ago and not stopped."""
        super().__init__()
        self.seconds = seconds
        self.timer: asyncio.TimerHandle | None = None
        self._action = action

    def start(self, key: object) -> None:
        """Start the time limit of `key`, or start it again from the beginning."""
        self.pop(key, None)
        self[key] = asyncio.get_running_loop().time() + self.seconds
        if self.timer is None:
            self.arm()

    def stop(self, key: object) -> None:
        """Remove `key`, so that it does not expire."""
        self.pop(key, None)

    def elapsed(self, key: object) -> float:
        """Return the number of seconds since `key` was started; 0 if it was not."""
        expiry = self.get(key)
        return 0.0 if expiry is None else asyncio.get_running_loop().time() - expiry + self.seconds

    def arm(self) -> None:
        """Set the timer for the key that expires first."""
        loop = asyncio.get_running_loop()
        expiry = next(iter(self.values()), None)
        self.timer = None if expiry is None else loop.call_at(expiry, self._expire, loop)

    def close(self) -> None:
        """Cancel the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        # The first key that has not expired ends the loop, since all keys after it expire later.
        expired = takewhile(lambda item: item[1] <= now, self.items())
        for key, _ in list(islice(expired, MAX_EXPIRED_AT_ONCE)):
            if self.pop(key, None) is not None:  # the action for another key may have removed it
                self._action(key)
        self.arm()
