"""The tasks of one running server: those that are stored, those that run here, and notifications when they change.

    a call ──▶ HostedCall.detach ──▶ the store ──▶ its peer is answered ──▶ the call works on ──▶ the store
    requests about a task ──▶ the store ──▶ its listeners: the call, a listen stream, a request that awaits its result

Requests about a task, and its answers, go through only the store. So a request about a task may arrive on any
connection, at any process that shares the store.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, Protocol

from ...auth.policy import grants
from ...concurrency import TaskSet
from ...contracts import TaskRecord, TaskStore
from ...errors import InsufficientScope, InvalidParams, Unavailable
from ...protocol.identity import Peer
from ...protocol.types.tasks import TASKS
from ...protocol.types.tools import TaskSupport
from ...server.dispatch.context import Context
from ...server.run import Run
from ...stores.memory_tasks import MemoryTasks
from .states import is_over

log = logging.getLogger("shared.tasks")

STOPPED = "the server was stopped"
POLL_MS = 500
"""Milliseconds that a client should wait before it polls a task again."""
FINAL_WRITES_SECONDS = 5.0
"""Seconds for the last writes to the store when the server stops."""

ToolTasks = TaskSupport | Literal["handler decides"] | None
"""The task support of a tool. If its handler decides, it calls `CallTask.detach` in time."""
Support = Callable[[Run[Any], Context[Any], str], Awaitable[ToolTasks]]
"""Returns the task support of the tool with that name, for the client of a call."""


def principal_of(peer: Peer) -> str | None:
    """Return the owner of the tasks of `peer`. Without a principal, anyone who knows the id of a task can access
    it."""
    return None if peer.principal is None else peer.principal.key


def format_time(seconds: float) -> str:
    """Return a time since 1970 as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def common_fields(task: TaskRecord) -> dict[str, Any]:
    """Return the fields of a task that both forms of tasks have."""
    message = {} if task.message is None else {"statusMessage": task.message}
    times = {"createdAt": format_time(task.created), "lastUpdatedAt": format_time(task.updated)}
    return {"taskId": task.id, "status": task.status, **message, **times}


def can_access(task: TaskRecord, peer: Peer) -> bool:
    """Return True if the token of `peer`, the owner of the task, allows its call."""
    scopes = None if peer.principal is None else peer.principal.scopes
    return scopes is None or grants(scopes, task.scopes)


def tasks_of(running: Run[Any]) -> "Tasks":
    """Return the tasks of a server that has the extension."""
    tasks: Tasks = running.opened[TASKS]
    return tasks


class AtWork(Protocol):
    """The work on a task in this process: a `HostedCall`, which can't be named here because its module imports this
    one."""

    def give_up(self) -> None:
        """Stop the work on the task, which has ended."""

    async def fail(self, reason: str) -> None:
        """Cancel the call with a reason; a call that has ended keeps its outcome."""


class Tasks:
    """The tasks of one run of a server."""

    def __init__(self, running: Run[Any], store: TaskStore, support: Support | None = None) -> None:
        self.running = running
        self.store = store
        self.support = support
        """Returns the task support of tools; None if the tools of the server declare it."""
        self.limits = running.server.task_limits
        self.background = TaskSet(partial(log_failure, "a task could not be stored"))
        """Tasks that wait for the store, started by code that must not wait."""
        self.at_work: dict[str, AtWork] = {}
        """The unfinished calls of this process that are tasks, by id."""
        self.is_stopping = False

    async def support_of(self, context: Context[Any], name: str) -> ToolTasks:
        """Return the task support of the tool with that name for the call of `context`."""
        if self.support is None:
            return self.running.features.tools.task_support(name)
        return await self.support(self.running, context, name)

    async def find(self, id: str, form: str, peer: Peer) -> TaskRecord:
        """Return the task with that id and form, for `peer`. Raises InvalidParams if the peer owns no such task, and
        InsufficientScope if its token would not allow the call."""
        task = await self.store.get(id)
        # The error is the same in all three cases, so that it does not reveal another principal's task.
        if task is None or task.form != form or task.principal != principal_of(peer):
            raise InvalidParams("there is no such task; it may have expired")
        if not can_access(task, peer):
            raise InsufficientScope(task.scopes)
        return task

    async def change(self, id: str, change: Callable[[TaskRecord, float], TaskRecord]) -> TaskRecord | None:
        """Replace the task by the result of `change`, which is called with the task and the time. Return the new
        task; None if the task no longer exists. Raises OverflowError if its result exceeds the limit."""
        while (before := await self.store.get(id)) is not None:
            # If another request has changed the task since it was read, the new state is read and changed.
            after = change(before, time.time())
            if after is before or await self.store.replace(before, after):
                return after
        return None

    async def follow(self, id: str) -> AsyncGenerator[TaskRecord, None]:
        """Iterate over the states of the task, beginning with the current one, until the task is over or gone.
        Changes in quick succession are combined."""
        changed, seen = asyncio.Event(), -1
        unlisten = self.store.listen(id, changed.set)
        try:
            while True:
                changed.clear()  # before the read, since the task may change while the store reads it
                task = await self.store.get(id)
                if task is None:
                    break
                if task.revision == seen:
                    await changed.wait()
                    continue
                seen = task.revision
                yield task
                if is_over(task):
                    break
        finally:
            unlisten()

    def on_lost(self) -> None:
        """Stop the tasks that run here, which the other replicas have marked as failed because this replica was
        lost."""
        for hosted in tuple(self.at_work.values()):
            hosted.give_up()

    def on_return(self) -> None:
        """Do nothing: this replica has rejoined the other replicas."""

    def on_departure(self) -> None:
        """Do nothing: the listeners to the tasks of a lost replica detect the loss themselves."""

    def stop(self) -> None:
        """Prepare to stop: the tasks that run here fail with a reason, and no call becomes a task."""
        self.is_stopping = True
        for hosted in tuple(self.at_work.values()):
            self.background.start(hosted.fail(STOPPED))

    async def wait_for_writes(self) -> None:
        """Wait until all writes to the store are done, within the time limit when the server stops."""
        await self.background.finish(FINAL_WRITES_SECONDS)


@asynccontextmanager
async def open_tasks(running: Run[Any], *, support: Support | None = None) -> AsyncIterator[Tasks]:
    """Open the tasks of `running`, in the stores that it shares with other replicas, or in its own memory. `support`
    returns the task support of tools, if the tools belong to other servers."""
    replica = running.replication.replica
    memory = MemoryTasks(running.server.task_limits) if replica is None else None
    store = memory if replica is None else replica.tasks(running.server.task_limits)
    assert store is not None
    tasks = Tasks(running, store, support)
    # Tasks stop before the connections close, so that the reason for their end is still sent.
    running.hooks.stoppers.append(tasks.stop)
    if replica is not None:
        replica.watch(tasks)
    try:
        yield tasks
    finally:
        tasks.stop()
        await tasks.wait_for_writes()
        await tasks.background.stop()
        if memory is not None:
            memory.close()


def log_failure(message: str, error: BaseException) -> None:
    """Log a failure. An unavailable store causes a failure for every task, so that failure is logged without a
    traceback."""
    if isinstance(error, Unavailable):
        log.warning("%s: %s", message, error)
    else:
        log.error("%s", message, exc_info=error)
