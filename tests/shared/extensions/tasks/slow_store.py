"""A slow store of tasks: each operation waits before and after its effect."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio

from shared.contracts import TaskLimits, TaskRecord
from shared.stores.memory_tasks import MemoryTasks


class SlowTasks:
    """A `TaskStore`. Operations in `fails` raise OSError. An operation in `holds` sets `reached`, then waits for its
    event. `created` lists the tasks of all `create` calls."""

    def __init__(self, limits: TaskLimits) -> None:
        self.inner = MemoryTasks(limits)
        self.fails: set[str] = set()
        self.holds: dict[str, anyio.Event] = {}
        self.reached = anyio.Event()
        self.created: list[TaskRecord] = []

    async def _pass(self, name: str) -> None:
        if name in self.fails:
            raise OSError("the store is away")
        await anyio.lowlevel.checkpoint()
        if name in self.holds:
            self.reached.set()
            await self.holds[name].wait()

    async def _do(self, name: str, *arguments: Any) -> Any:
        await self._pass(name)
        try:
            return await getattr(self.inner, name)(*arguments)
        finally:
            await self._pass(f"after {name}")

    async def create(self, task: TaskRecord) -> bool:
        self.created.append(task)
        made: bool = await self._do("create", task)
        return made

    async def get(self, id: str) -> TaskRecord | None:
        found: TaskRecord | None = await self._do("get", id)
        return found

    async def replace(self, before: TaskRecord, after: TaskRecord) -> bool:
        done: bool = await self._do("replace", before, after)
        return done

    async def forget(self, id: str) -> None:
        await self._do("forget", id)

    async def list_by_owner(self, principal: str) -> Sequence[TaskRecord]:
        found: Sequence[TaskRecord] = await self._do("listed", principal)
        return found

    def listen(self, id: str, wake: Callable[[], None]) -> Callable[[], None]:
        return self.inner.listen(id, wake)
