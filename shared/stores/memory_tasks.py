"""Tasks in the memory of one process."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from ..contracts import TaskLimits, TaskRecord
from ..protocol.wire.jsonrpc import json_of

Wake = Callable[[], None]

SMALL_BYTES = 1_024
"""Maximum size of an error that is stored even if the results take all the memory that they may."""


class MemoryTasks:
    """A `TaskStore` for one event loop. End it with `close`. No method ever suspends."""

    def __init__(self, limits: TaskLimits) -> None:
        self._limits = limits
        self._tasks: dict[str, TaskRecord] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._counts_by_client: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._bytes_by_client: Counter[str] = Counter()
        self._listeners: dict[str, tuple[Wake, ...]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def create(self, task: TaskRecord) -> bool:
        """Store a new task; return False if there are too many."""
        limits = self._limits
        if len(self._tasks) >= limits.total or self._counts_by_client[task.client] >= limits.of_one_client:
            return False
        self._tasks[task.id] = task
        self._counts_by_client[task.client] += 1
        self._timers[task.id] = asyncio.get_running_loop().call_later(task.seconds, self._drop, task.id)
        return True

    async def get(self, id: str) -> TaskRecord | None:
        """Return the task with the id `id`; None if there is none."""
        return self._tasks.get(id)

    async def replace(self, before: TaskRecord, after: TaskRecord) -> bool:
        """Replace `before` by `after`; return False if `before` is not the stored record. Raises OverflowError if
        the results of all tasks would exceed the limit."""
        if self._tasks.get(before.id) is not before:
            return False
        if after.outcome is not before.outcome:
            size, client = 0 if after.outcome is None else len(json_of(after.outcome)), self._tasks[after.id].client
            added_bytes = size - self._sizes.get(after.id, 0)
            remaining, client_bytes = (
                self._limits.result_bytes - self._bytes - added_bytes,
                self._bytes_by_client[client] + added_bytes,
            )
            is_small = after.outcome is None or ("error" in after.outcome and size <= SMALL_BYTES)
            # A client may use at most as much as it leaves for others, which is half. An anonymous client, the only
            # one over stdio, may use everything.
            if not is_small and (remaining < 0 or (client and client_bytes > remaining)):
                raise OverflowError(
                    f"storing this result would exceed the limit of {self._limits.result_bytes:,} bytes for task "
                    "results"
                )
            self._bytes, self._bytes_by_client[client], self._sizes[after.id] = (
                self._bytes + added_bytes,
                client_bytes,
                size,
            )
        self._tasks[after.id] = after
        self._wake(after.id)
        return True

    async def forget(self, id: str) -> None:
        """Delete a task."""
        self._drop(id)

    async def list_by_owner(self, principal: str) -> Sequence[TaskRecord]:
        """Return the tasks of the principal with the key `principal`, oldest first."""
        return [task for task in self._tasks.values() if task.principal == principal]

    def listen(self, id: str, wake: Wake) -> Callable[[], None]:
        """Call `wake` whenever the task `id` is replaced, expires or is deleted, until the returned function is
        called."""
        self._listeners[id] = (*self._listeners.get(id, ()), wake)

        def unlisten() -> None:
            remaining = tuple(callback for callback in self._listeners.get(id, ()) if callback is not wake)
            if remaining:
                self._listeners[id] = remaining
            else:
                self._listeners.pop(id, None)

        return unlisten

    def close(self) -> None:
        """Cancel the timers that delete tasks."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _drop(self, id: str) -> None:
        task = self._tasks.pop(id, None)
        if task is None:
            return
        if (timer := self._timers.pop(id, None)) is not None:
            timer.cancel()
        size = self._sizes.pop(id, 0)
        self._bytes -= size
        self._bytes_by_client[task.client] -= size
        self._counts_by_client[task.client] -= 1
        if not self._counts_by_client[task.client]:
            del self._counts_by_client[task.client], self._bytes_by_client[task.client]
        self._wake(id)

    def _wake(self, id: str) -> None:
        for wake in self._listeners.get(id, ()):
            wake()
