"""The tasks of one run of a server: the store, and the calls of tasks in this process.

    a call ──▶ HostedCall.detach ──▶ the store ──▶ the request is answered ──▶ the call continues ──▶ the store
    requests for a task ──▶ the store ──▶ its listeners: the call, `subscriptions/listen`, `tasks/result`

The call that runs as a task, and the requests about the task, communicate only through the store. So such a request
may arrive on any connection, in any process that shares the store.
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
"""The number of milliseconds that a client should wait between two requests for the state of a task."""
FINAL_WRITES_SECONDS = 5.0
"""Time limit for the last writes to the store when the server stops, in seconds."""

ToolTasks = TaskSupport | Literal["handler decides"] | None
"""The task support of a tool. With "handler decides", the handler calls `CallTask.detach` if the call should become a
task."""
Support = Callable[[Run[Any], Context[Any], str], Awaitable[ToolTasks]]
"""A function that returns the task support of the tool with that name, for the client of a call."""


def principal_of(peer: Peer) -> str | None:
    """Return the owner of the tasks of `peer`. None without a principal: anyone who knows the id of such a task can
    access it."""
    return None if peer.principal is None else peer.principal.key


def format_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, as ISO 8601 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def common_fields(task: TaskRecord) -> dict[str, Any]:
    """Return the fields of a task that both forms of tasks have."""
    message = {} if task.message is None else {"statusMessage": task.message}
    times = {"createdAt": format_time(task.created), "lastUpdatedAt": format_time(task.updated)}
    return {"taskId": task.id, "status": task.status, **message, **times}


def can_access(task: TaskRecord, peer: Peer) -> bool:
    """Return True if the token of `peer`, the owner of the task, has the scopes that its call needed."""
    scopes = None if peer.principal is None else peer.principal.scopes
    return scopes is None or grants(scopes, task.scopes)


def tasks_of(run: Run[Any]) -> "Tasks":
    """Return the tasks of a run, which has the extension."""
    tasks: Tasks = run.opened[TASKS]
    return tasks


class LocalTask(Protocol):
    """A task whose call runs in this process: a `HostedCall`, whose module imports this one."""

    def give_up(self) -> None:
        """Stop working on the task, which has ended."""

    async def fail(self, reason: str) -> None:
        """End the task as failed, with a reason, and cancel its call. Does nothing if the call has ended."""


class Tasks:
    """The tasks of one run of a server."""

    def __init__(self, run: Run[Any], store: TaskStore, support: Support | None = None) -> None:
        self._run = run
        self.store = store
        self.support = support
        """Returns the task support of tools of other servers; None if the server's own tools declare it."""
        self.limits = run.server.task_limits
        self.background = TaskSet(partial(log_failure, "a task could not be stored"))
        """The asyncio tasks that write to the store for code that must not wait."""
        self.local_tasks: dict[str, LocalTask] = {}
        """The tasks whose calls run in this process, by id."""
        self.is_stopping = False

    async def support_of(self, context: Context[Any], name: str) -> ToolTasks:
        """Return the task support of the tool with that name for the call of `context`."""
        if self.support is None:
            return self._run.features.tools.task_support(name)
        return await self.support(self._run, context, name)

    async def find(self, id: str, form: str, peer: Peer) -> TaskRecord:
        """Return the task with that id and form for `peer`. Raises InvalidParams if the peer owns no such task, and
        InsufficientScope if its token lacks the scopes that the call needed."""
        task = await self.store.get(id)
        # One error for all three cases, so that it does not reveal that another principal has a task.
        if task is None or task.form != form or task.principal != principal_of(peer):
            raise InvalidParams("there is no such task; it may have expired")
        if not can_access(task, peer):
            raise InsufficientScope(task.scopes)
        return task

    async def change(self, id: str, change: Callable[[TaskRecord, float], TaskRecord]) -> TaskRecord | None:
        """Replace the task with the record that `change` returns, which is called with the current record and the
        time. Return the new record; None if the task no longer exists. Raises OverflowError if its result exceeds the
        limit."""
        while (before := await self.store.get(id)) is not None:
            # `replace` returns False if another request has changed the task since it was read. Then this is
            # repeated.
            after = change(before, time.time())
            if after is before or await self.store.replace(before, after):
                return after
        return None

    async def follow(self, id: str) -> AsyncGenerator[TaskRecord, None]:
        """Yield the states of the task, beginning with the current one, until it is over or no longer exists. States
        that are quickly replaced may be skipped."""
        changed, last_revision = asyncio.Event(), -1
        unlisten = self.store.listen(id, changed.set)
        try:
            while True:
                changed.clear()  # before the read, since the task may change while the store reads it
                task = await self.store.get(id)
                if task is None:
                    break
                if task.revision == last_revision:
                    await changed.wait()
                    continue
                last_revision = task.revision
                yield task
                if is_over(task):
                    break
        finally:
            unlisten()

    def on_lost(self) -> None:
        """Stop the tasks that run here: this replica was lost, so the other replicas have marked them as failed."""
        for hosted in tuple(self.local_tasks.values()):
            hosted.give_up()

    def on_return(self) -> None:
        """Do nothing."""

    def on_departure(self) -> None:
        """Do nothing: those that follow a task of the other replica detect its end themselves."""

    def stop(self) -> None:
        """Prepare to stop: end the tasks that run here as failed, with a reason. No call becomes a task any more."""
        self.is_stopping = True
        for hosted in tuple(self.local_tasks.values()):
            self.background.start(hosted.fail(STOPPED))

    async def wait_for_writes(self) -> None:
        """Wait until all writes to the store are done, for at most `FINAL_WRITES_SECONDS`."""
        await self.background.finish(FINAL_WRITES_SECONDS)


@asynccontextmanager
async def open_tasks(run: Run[Any], *, support: Support | None = None) -> AsyncIterator[Tasks]:
    """Open the tasks of a run, in the store that it shares with other replicas, or else in memory. `support` is as in
    `tasks`."""
    replica = run.replication.replica
    memory = MemoryTasks(run.server.task_limits) if replica is None else None
    store = memory if replica is None else replica.tasks(run.server.task_limits)
    assert store is not None
    tasks = Tasks(run, store, support)
    # Tasks end before connections close, so that clients still receive the reason.
    run.hooks.stoppers.append(tasks.stop)
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
    """Log a failure. If the store can't be reached, every task fails, so this is logged without a traceback."""
    if isinstance(error, Unavailable):
        log.warning("%s: %s", message, error)
    else:
        log.error("%s", message, exc_info=error)
