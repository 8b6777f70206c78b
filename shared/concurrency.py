"""Tasks limited to a block, their errors, work in turns, signals to wait for, and keys that expire."""

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
"""The number of turns of the event loop for other work after each step."""
_step_lock: lowlevel.RunVar[anyio.Lock] = lowlevel.RunVar("stepping")
"""Held by the work that runs its step."""


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """A task group whose tasks are cancelled at the end of the block.

    A single error is raised unchanged, because the user of a client expects `PeerError` and not a group that contains
    it.
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
        # Without `from`, the context of the error would be the group, which adds nothing.
        only = group.exceptions[0]
        raise only from only.__cause__


async def wait_for_first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Wait until the first of these has returned."""

    async def wait_for(wait: Callable[[], Awaitable[object]]) -> None:
        await wait()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for wait in waits:
            tasks.start_soon(wait_for, wait)


def first_error(error: BaseException) -> BaseException:
    """Return the first error of a group of tasks; any other error is returned unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def run_in_turns(steps: Steps[T]) -> T:
    """Run each of the `steps` in a turn of the event loop of its own, and return their result. All such work in a
    loop takes turns, with a few turns for other work after each step: a small request takes about as many, and waits
    for one step only."""
    lock = _step_lock.get(None)
    if lock is None:
        _step_lock.set(lock := anyio.Lock(fast_acquire=True))
    result: T
    is_over = False
    while not is_over:
        async with lock:
            try:
                next(steps)
            except StopIteration as end:
                is_over, result = True, end.value
            for _ in range(_TURNS_BETWEEN):
                await lowlevel.checkpoint()
    return result


class Entered:
    """A base class for `async with`: `_living` returns the context manager for the block."""

    _life: AbstractAsyncContextManager[None] | None = None

    def _living(self) -> AbstractAsyncContextManager[None]:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._life = self._living()
        await self._life.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._life.__aexit__(kind, error, traceback) if self._life is not None else None


class TaskSet:
    """Tasks of one owner, which stops them. It is meant for many small tasks: in a task group, each would cost more
    than its work. `on_failure` is called with an exception that leaves one of them."""

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

    async def finish(self, seconds: float) -> None:
        """Wait until the tasks have ended, at most `seconds`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def stop(self) -> None:
        """Cancel the tasks, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class Signal:
    """Wakes all tasks that are currently waiting; each of them checks whether it is affected.

    Thousands of sessions have a few signals each, and each message wakes some. Unlike an event, a signal takes no
    memory while nobody waits, and need not be replaced after use. It is for one event loop, without threads.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    async def wait(self) -> None:
        """Wait for the next `wake`."""
        future = asyncio.get_running_loop().create_future()
        # The waiters are in a tuple, since an empty tuple takes no memory, and several tasks rarely wait.
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
"""Maximum number of keys that expire in one turn of the event loop, since all keys of a burst expire together."""


class ExpiryQueue(dict[Any, float]):
    """Keys that expire unless they are stopped before: calls, idle sessions, streams without a reader.

    All keys of a queue have the same time limit, so the first one started expires first, and one timer is enough for
    all. A timer for each would take a tenth of a small call's time. 10,000 idle sessions are 10,000 entries in a
    dict, in the order in which they expire, each with its time on the event loop's clock.

    If one more function call is too expensive, a caller adds and removes an entry as in any dict, with a time later
    than all other times, and arms the timer if it is not armed.
    """

    def __init__(self, seconds: float, action: Callable[[Any], object]) -> None:
        """Call `action` with each key that expires."""
        super().__init__()
        self.seconds = seconds
        self.timer: asyncio.TimerHandle | None = None
        self._action = action

    def start(self, key: object) -> None:
        """Start `key` with its full time."""
        self.pop(key, None)
        self[key] = asyncio.get_running_loop().time() + self.seconds
        if self.timer is None:
            self.arm()

    def stop(self, key: object) -> None:
        """Stop `key`, if it was started."""
        self.pop(key, None)

    def elapsed(self, key: object) -> float:
        """Return the number of seconds since `key` was started; 0 if it was not."""
        expiry = self.get(key)
        return 0.0 if expiry is None else asyncio.get_running_loop().time() - expiry + self.seconds

    def arm(self) -> None:
        """Set the timer for the first key."""
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
            if self.pop(key, None) is not None:  # another key's action may have removed it
                self._action(key)
        self.arm()
