"""Tasks that live no longer than the block they serve, their errors, signals to wait for, and what expires."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice, takewhile
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """A task group whose tasks are cancelled at the end of the block.

    A single error leaves as it is: whoever uses a client expects `PeerError` and not a group that holds one.
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
        # `from` its own cause: to raise it anew would make the group its context, which nobody wants to read.
        only = group.exceptions[0]
        raise only from only.__cause__


async def first_of(*waits: Callable[[], Awaitable[object]]) -> None:
    """Waits until one of these has come."""

    async def wait_for(wait: Callable[[], Awaitable[object]]) -> None:
        await wait()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for wait in waits:
            tasks.start_soon(wait_for, wait)


def first_error(error: BaseException) -> BaseException:
    """What a group of tasks failed of first; any other error is its own."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Entered:
    """A class for `async with`, which says in `_living` what is so as long as the block."""

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


class Crew:
    """Tasks of one owner, who stops them: one for each of many small things, as those of a task group cost more than
    the things do. `failed` is told of an exception that leaves one of them."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begins `work`, soon."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    async def finish(self, seconds: float) -> None:
        """Waits until they have ended, `seconds` at most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def stop(self) -> None:
        """Cancels them, and waits until they have ended."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class Signal:
    """Wakes everybody who waits at that moment; they look for themselves whether it concerns them.

    Thousands of sessions have a few each, and each message wakes some: unlike an event this takes no memory while
    nobody waits, and need not be replaced after use. It is for one event loop, without threads.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    async def wait(self) -> None:
        """Waits for the next `wake`."""
        future = asyncio.get_running_loop().create_future()
        # A tuple: empty it takes no memory of its own, and hardly ever do several wait.
        self._waiting = (*self._waiting, future)
        try:
            await future
        finally:
            if self._waiting:
                self._waiting = tuple(one for one in self._waiting if one is not future)

    def wake(self) -> None:
        """Wakes all who wait."""
        waiting, self._waiting = self._waiting, ()
        for future in waiting:
            if not future.done():
                future.set_result(None)


AT_ONCE = 100
"""How many expire before the event loop turns: all those of a burst expire together."""


class ExpiryQueue(dict[Any, float]):
    """Keys that expire unless they are stopped before: calls, idle sessions, streams that nobody reads.

    All keys of a queue have the same number of seconds, so the first that was started expires first, and one timer
    does for all. A timer for each would take a small call a tenth of its time; 10,000 idle sessions are 10,000
    entries of a dict, in the order in which they expire, each with its time on the clock of the event loop.

    Where a function call more is too dear, an entry is made and taken out as that of any dict; the caller then gives
    it a time that comes last, and arms the timer where there is none.
    """

    def __init__(self, seconds: float, action: Callable[[Any], object]) -> None:
        """`action` is called with each key that expires."""
        super().__init__()
        self.seconds = seconds
        self.timer: asyncio.TimerHandle | None = None
        self._action = action

    def start(self, key: object) -> None:
        """Gives `key` all its seconds, from now on."""
        self.pop(key, None)
        self[key] = asyncio.get_running_loop().time() + self.seconds
        if self.timer is None:
            self.arm()

    def stop(self, key: object) -> None:
        """Stops the clock of `key`, if it has one."""
        self.pop(key, None)

    def waited(self, key: object) -> float:
        """For how many seconds the clock of `key` has been running; 0 where it has none."""
        at = self.get(key)
        return 0.0 if at is None else asyncio.get_running_loop().time() - at + self.seconds

    def arm(self) -> None:
        """Sets the timer for the first of them."""
        loop = asyncio.get_running_loop()
        at = next(iter(self.values()), None)
        self.timer = None if at is None else loop.call_at(at, self._look, loop)

    def close(self) -> None:
        """Takes the timer away."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        # The first that is not over ends it, as all after it come later.
        over = takewhile(lambda item: item[1] <= now, self.items())
        for key, _ in list(islice(over, AT_ONCE)):
            if self.pop(key, None) is not None:  # what expired just now may have stopped others
                self._action(key)
        self.arm()
