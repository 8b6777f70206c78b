"""The tasks of one running server: which are kept, which of them are at work here, and what is heard of each.

    a call ──▶ HostedCall.detach ──▶ the store ──▶ its peer is answered ──▶ the call works on ──▶ the store
    requests about a task ──▶ the store ──▶ whoever hears of it: the call, a listen stream, who waits for its result

What is asked of a task, and what it says, goes through the store alone. So it makes no difference on which
connection, or in which process that shares the store, a request about it comes.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from ...auth.policy import grants
from ...concurrency import Crew
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
"""Milliseconds that whoever asks how a task is should let pass before asking again."""
LAST_WORDS_SECONDS = 5.0
"""Time for what the store is to be told when the server stops."""

ToolTasks = TaskSupport | Literal["handler decides"] | None
"""Whether calls of a tool may run as tasks. Where its handler decides, that one says so in time, by
`CallTask.detach`."""
Support = Callable[[Run[Any], Context[Any], str], Awaitable[ToolTasks]]
"""Tells this of the tool of that name, for the client of a call."""


def principal_of(peer: Peer) -> str | None:
    """To whom a task of `peer` belongs. Without a principal it is who knows its id."""
    return None if peer.principal is None else peer.principal.key


def iso(seconds: float) -> str:
    """A time since 1970 as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def may_see(task: TaskRecord, peer: Peer) -> bool:
    """Whether the token of `peer`, whose task it is, allows the call that it was."""
    scopes = None if peer.principal is None else peer.principal.scopes
    return scopes is None or grants(scopes, task.scopes)


def tasks_of(running: Run[Any]) -> "Tasks":
    """The tasks of a server that has the extension."""
    tasks: Tasks = running.opened[TASKS]
    return tasks


class AtWork(Protocol):
    """What works on a task in this process: a `HostedCall`, which knows `Tasks` and so is not named here."""

    def give_up(self) -> None:
        """Nothing more becomes of the task: what still works on it ends."""

    async def fail(self, reason: str) -> None:
        """Gives the call up, and says why; one that has come to its end keeps that."""


class Tasks:
    """The tasks of one run of a server."""

    def __init__(self, running: Run[Any], store: TaskStore, support: Support | None = None) -> None:
        self.running = running
        self.store = store
        self.support = support
        """Tells which tools may run as tasks; None where these are those of the server that were declared so."""
        self.limits = running.server.task_limits
        self.crew = Crew(_failed)
        """What has to wait for the store, on behalf of what must not wait."""
        self.at_work: dict[str, AtWork] = {}
        """By id the calls of this process that are tasks, and not over."""
        self.is_stopping = False

    async def support_of(self, context: Context[Any], name: str) -> ToolTasks:
        """Whether the tool of that name may run as a task for the call of `context`."""
        if self.support is None:
            return self.running.features.tools.task_support(name)
        return await self.support(self.running, context, name)

    async def find(self, id: str, form: str, peer: Peer) -> TaskRecord:
        """The task of that id and form, for `peer`. Raises InvalidParams where there is none of its own, and
        InsufficientScope where its token would not allow the call."""
        task = await self.store.get(id)
        # One answer for all three: nobody learns that somebody else has such a task.
        if task is None or task.form != form or task.principal != principal_of(peer):
            raise InvalidParams("there is no such task; it may have expired")
        if not may_see(task, peer):
            raise InsufficientScope(task.scopes)
        return task

    async def change(self, id: str, change: Callable[[TaskRecord, float], TaskRecord]) -> TaskRecord | None:
        """Has the task become what `change` makes of it and of the time; what it is then. None where it is gone.
        Raises OverflowError where there is no room for its result."""
        while (before := await self.store.get(id)) is not None:
            # Compare and set: another request may have changed it since it was read; then it is changed anew.
            after = change(before, time.time())
            if after is before or await self.store.replace(before, after):
                return after
        return None

    async def follow(self, id: str) -> AsyncGenerator[TaskRecord, None]:
        """The task as it is, and whenever it has changed, until it is over or gone. Changes that come close together
        are one."""
        moved, seen = asyncio.Event(), -1
        unhear = self.store.hear(id, moved.set)
        try:
            while True:
                moved.clear()  # before the look: a store may take its time, and things change meanwhile
                task = await self.store.get(id)
                if task is None:
                    break
                if task.revision == seen:
                    await moved.wait()
                    continue
                seen = task.revision
                yield task
                if is_over(task):
                    break
        finally:
            unhear()

    def lost(self) -> None:
        """The others have given this replica up, and say of what is at work here that it has failed: it ends."""
        for hosted in tuple(self.at_work.values()):
            hosted.give_up()

    def returned(self) -> None:
        """This replica is one of the others again."""

    def left(self) -> None:
        """Another replica is gone: who hears of its tasks looks by itself."""

    def stop(self) -> None:
        """The server is about to stop: what is at work here fails, and says why, and no call becomes a task."""
        self.is_stopping = True
        for hosted in tuple(self.at_work.values()):
            self.crew.start(hosted.fail(STOPPED))

    async def rest(self) -> None:
        """Waits until the store knows what it was to be told, as long as that may take when the server stops."""
        await self.crew.finish(LAST_WORDS_SECONDS)


@asynccontextmanager
async def living(running: Run[Any], *, support: Support | None = None) -> AsyncIterator[Tasks]:
    """The tasks of `running`, in the stores that it shares with others, or in memory of its own. `support` says which
    tools may run as tasks, where these are not those of the server itself."""
    replica = running.replication.replica
    own = MemoryTasks(running.server.task_limits) if replica is None else None
    store = own if replica is None else replica.tasks(running.server.task_limits)
    assert store is not None
    tasks = Tasks(running, store, support)
    # Before the connections close: why its tasks end is still told.
    running.hooks.stoppers.append(tasks.stop)
    if replica is not None:
        replica.watch(tasks)
    try:
        yield tasks
    finally:
        tasks.stop()
        await tasks.rest()
        await tasks.crew.stop()
        if own is not None:
            own.close()


def log_failure(what: str, error: BaseException) -> None:
    """Says what has failed. Where the store is away, it does so for every task, and where that was tells nobody
    anything."""
    if isinstance(error, Unavailable):
        log.warning("%s: %s", what, error)
    else:
        log.error("%s", what, exc_info=error)


def _failed(error: BaseException) -> None:
    log_failure("a task could not be kept", error)
