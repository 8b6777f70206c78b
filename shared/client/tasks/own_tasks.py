"""Questions of a server of 2025-11-25 that it wants to be run as tasks, by `params.task`: it has the id at once, and
asks for the answer by `tasks/result` (2025-11-25, Utilities, Tasks).

They are kept in memory while the client lives, so many and so long; the ids are of nobody's guessing.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from ...concurrency import Signal
from ...errors import InvalidParams, McpError, MethodNotFound, RpcError
from ...protocol.types.base import first_fault
from ...protocol.types.tasks import RELATED_TASK, TaskParams, TaskRequest, TaskStatus
from ..options import Handler

MAX_TASKS = 100
"""That are kept at once; the oldest of those that are over make room."""
MAX_SECONDS = 3_600.0
"""How long one is kept, work and answer, where the server does not ask for less."""
POLL_MS = 500
_AUGMENTED = frozenset({"elicitation/create", "sampling/createMessage"})
"""What may be run as a task; `ClientOptions.identity` declares it."""
_TOO_MANY = -31_000
"""As for too many questions."""

Read = TypeVar("Read", TaskParams, TaskRequest)


class _OwnTask:
    """One question, and what came of it."""

    def __init__(self, seconds: float) -> None:
        self.id = secrets.token_urlsafe(24)
        self.status: TaskStatus = "working"
        self.seconds = seconds
        self.outcome: dict[str, Any] | McpError | None = None
        self.work = anyio.CancelScope()
        self.keeping = anyio.CancelScope()
        self.moved = Signal()
        self._created = self._updated = time.time()

    @property
    def is_over(self) -> bool:
        return self.status != "working"

    def end(self, status: TaskStatus, outcome: dict[str, Any] | McpError | None = None) -> None:
        if not self.is_over:
            self.status, self.outcome, self._updated = status, outcome, time.time()
            self.moved.wake()

    def fields(self) -> dict[str, Any]:
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": datetime.fromtimestamp(self._created, UTC).isoformat(),
            "lastUpdatedAt": datetime.fromtimestamp(self._updated, UTC).isoformat(),
            "ttl": int(self.seconds * 1_000),
            "pollInterval": POLL_MS,
        }


class OwnTasks:
    """The tasks of one client; `start` gives the group in which they work, and with which they end. `has_form` says
    whether the version that is spoken has them."""

    def __init__(self, start: Callable[[], TaskGroup], has_form: Callable[[], bool]) -> None:
        self._start = start
        self._has_form = has_form
        self._tasks: dict[str, _OwnTask] = {}

    def handlers(self, answers: Mapping[str, Handler]) -> dict[str, Handler]:
        """The `answers`, those that may run as tasks with that, and what answers the requests about tasks."""
        handlers = {method: self._hosting(one) if method in _AUGMENTED else one for method, one in answers.items()}
        if not _AUGMENTED.isdisjoint(answers):
            about = {"tasks/get": self._get, "tasks/result": self._result, "tasks/cancel": self._cancel}
            handlers |= {method: self._where_spoken(method, one) for method, one in about.items()}
        return handlers

    def _hosting(self, handler: Handler) -> Handler:
        async def host(params: dict[str, Any]) -> dict[str, Any]:
            if "task" not in params or not self._has_form():
                return await handler(params)
            wanted = _read(TaskRequest, params["task"])
            if len(self._tasks) >= MAX_TASKS:
                over = next((task for task in self._tasks.values() if task.is_over), None)
                if over is None:
                    raise RpcError("too many tasks at once", code=_TOO_MANY)
                over.keeping.cancel()
                del self._tasks[over.id]
            asked = {name: value for name, value in params.items() if name != "task"}
            task = _OwnTask(MAX_SECONDS if wanted.ttl is None else min(wanted.ttl / 1_000, MAX_SECONDS))
            self._tasks[task.id] = task
            self._start().start_soon(self._keep, task, handler, asked)
            return {"task": task.fields()}

        return host

    async def _keep(self, task: _OwnTask, handler: Handler, params: dict[str, Any]) -> None:
        """Works, and keeps what came of that, until its time is up."""
        with task.keeping, anyio.move_on_after(task.seconds):
            with task.work:
                try:
                    answer = await handler(params)
                    task.end("completed", answer)
                except McpError as error:
                    task.end("failed", error)
            await anyio.sleep_forever()
        task.end("cancelled")
        self._tasks.pop(task.id, None)

    # Requests about tasks

    def _where_spoken(self, method: str, handle: Callable[[_OwnTask], Awaitable[dict[str, Any]]]) -> Handler:
        async def handler(params: dict[str, Any]) -> dict[str, Any]:
            if not self._has_form():
                raise MethodNotFound(f"method not found: {method}")
            task = self._tasks.get(_read(TaskParams, params).task_id)
            if task is None:
                raise InvalidParams("there is no such task; it may have expired")
            return await handle(task)

        return handler

    async def _get(self, task: _OwnTask) -> dict[str, Any]:
        return task.fields()

    async def _result(self, task: _OwnTask) -> dict[str, Any]:
        while not task.is_over:
            await task.moved.wait()
        if isinstance(task.outcome, McpError):
            raise task.outcome
        if task.outcome is None:
            raise InvalidParams("the task was cancelled")
        return {**task.outcome, "_meta": {**task.outcome.get("_meta", {}), RELATED_TASK: {"taskId": task.id}}}

    async def _cancel(self, task: _OwnTask) -> dict[str, Any]:
        if task.is_over:
            raise InvalidParams(f"the task is over already: {task.status}")
        task.end("cancelled")
        task.work.cancel()
        return task.fields()


def _read(model: type[Read], value: Any) -> Read:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidParams(f"what is said of a task is wrong: {first_fault(error)}") from None
