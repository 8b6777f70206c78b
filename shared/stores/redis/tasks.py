"""The tasks of all replicas, in Redis: see `scripts/tasks.lua`.

If the replica that runs a task is lost, the task has failed. The next request for the task notices that, and stores
it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...contracts import TaskLimits, TaskRecord
from ...protocol.wire.jsonrpc import json_of
from ..memory_tasks import SMALL_BYTES
from .link import Arguments, Link
from .records import read_task, write_task

Wake = Callable[[], None]

_FINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})
_LOST_MESSAGE = "the replica that ran it is gone; it is unknown whether it finished"
_LOST_OUTCOME = {"error": {"code": -32603, "message": _LOST_MESSAGE, "data": {"mayHaveRun": True}}}


class RedisTasks:
    """A `TaskStore` in Redis. Its methods raise OSError while Redis can't be reached."""

    def __init__(self, link: Link, limits: TaskLimits) -> None:
        self._link = link
        self._limits = limits
        self._listeners: dict[str, tuple[Wake, ...]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def create(self, task: TaskRecord) -> bool:
        """Store a new task; return False if there are too many."""
        limits, milliseconds = self._limits, round(task.seconds * 1000)
        arguments: Arguments = (task.id, write_task(task), task.client, task.principal or "", _now(), milliseconds)
        arguments += (limits.total, limits.of_one_client)
        return bool(await self._link.ask("create_task", *arguments, undo=lambda _: ("forget_task", task.id)))

    async def get(self, id: str) -> TaskRecord | None:
        """Return the task with the id `id`; None if there is none."""
        reply = await self._link.ask("get_task", id, _now(), is_patient=True)
        return None if reply is None else await self._fail_if_lost(*reply)

    async def replace(self, before: TaskRecord, after: TaskRecord) -> bool:
        """Replace `before` by `after`; return False if `before` is not the stored record. Raises OverflowError if
        the results of all tasks would exceed the limit."""
        size = 0 if after.outcome is None else len(json_of(after.outcome))
        is_small = after.outcome is None or ("error" in after.outcome and size <= SMALL_BYTES)
        arguments = (after.id, before.revision, write_task(after), size, int(is_small), self._limits.result_bytes)
        # Wait as long as there is a lease: a short outage of Redis must not lose the result of a long task.
        reply = await self._link.ask("replace_task", *arguments, is_patient=True)
        if reply < 0:
            raise OverflowError(
                f"storing this result would exceed the limit of {self._limits.result_bytes:,} bytes for task results"
            )
        return bool(reply)

    async def forget(self, id: str) -> None:
        """Delete a task."""
        await self._link.ask("forget_task", id)

    async def list_by_owner(self, principal: str) -> Sequence[TaskRecord]:
        """Return the tasks of the principal with the key `principal`, oldest first."""
        return [await self._fail_if_lost(*entry) for entry in await self._link.ask("listed", principal, _now())]

    async def _fail_if_lost(self, data: bytes, is_served: int) -> TaskRecord:
        task = read_task(data)
        if is_served or task.status in _FINAL_STATUSES:
            return task
        failed = replace(
            task,
            status="failed",
            message=_LOST_MESSAGE,
            questions={},
            outcome=_LOST_OUTCOME,
            updated=time.time(),
            revision=task.revision + 1,
        )
        if await self.replace(task, failed):
            return failed
        reply = await self._link.ask("get_task", task.id, _now())
        return failed if reply is None else await self._fail_if_lost(*reply)  # another replica has stored it

    # Listeners

    def listen(self, id: str, wake: Wake) -> Callable[[], None]:
        """Call `wake` whenever the task `id` is replaced, expires or is deleted, until the returned function is
        called."""
        if id not in self._listeners:
            self._subscribe(id)
        self._listeners[id] = (*self._listeners.get(id, ()), wake)

        def unlisten() -> None:
            remaining = tuple(callback for callback in self._listeners.get(id, ()) if callback is not wake)
            if remaining:
                self._listeners[id] = remaining
            elif self._listeners.pop(id, None) is not None:
                self._link.enqueue("unhear_task", id)
                self._stop_timer(id)

        return unlisten

    def on_change(self, id: str) -> None:
        """Wake the listeners of a task that has changed or expired."""
        for wake in self._listeners.get(id, ()):
            wake()

    def wake_all(self) -> None:
        """Wake the listeners of all tasks, any of which may have changed, or may have lost its replica."""
        for id_ in list(self._listeners):
            self.on_change(id_)

    def on_joined(self) -> None:
        """Subscribe to the tasks again, after this replica has joined under a new number."""
        for id_ in self._listeners:
            self._subscribe(id_)
        self.wake_all()

    def close(self) -> None:
        """Cancel the timers that wake listeners when a task expires."""
        for id_ in list(self._timers):
            self._stop_timer(id_)

    def _subscribe(self, id: str) -> None:
        self._link.enqueue("hear_task", id, _now(), on_reply=lambda milliseconds: self._set_timer(id, milliseconds))

    def _set_timer(self, id: str, milliseconds: int) -> None:
        if id in self._listeners:
            self._stop_timer(id)
            self._timers[id] = asyncio.get_running_loop().call_later(milliseconds / 1000 + 0.01, self.on_change, id)

    def _stop_timer(self, id: str) -> None:
        timer = self._timers.pop(id, None)
        if timer is not None:
            timer.cancel()


def _now() -> int:
    return round(time.time() * 1000)
