"""Questions that run as tasks because a server of 2025-11-25 requests a task with `params.task`: it receives the
task's id at once, and fetches the answer with `tasks/result` (2025-11-25, Utilities, Tasks).

The tasks are in memory while the client lives, limited in number and time; their ids can't be guessed.
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
from ...protocol.types.base import describe_first_error
from ...protocol.types.tasks import RELATED_TASK, TaskParams, TaskRequest, TaskStatus
from ..options import Handler

MAX_TASKS = 100
"""The maximum number of tasks; the oldest finished task makes room for a new one."""
MAX_SECONDS = 3_600.0
"""The longest retention of a task and its answer, in seconds; the server may request less."""
POLL_MS = 500
"""Milliseconds that the server is asked to wait between status requests."""
_AUGMENTED = frozenset({"elicitation/create", "sampling/createMessage"})
"""The methods that may be run as tasks; `ClientOptions.identity` declares them."""
_TOO_MANY = -31_000
"""The error code for a limit, which the specification leaves to implementations."""

Read = TypeVar("Read", TaskParams, TaskRequest)


class _OwnTask:
    """One question, and its outcome."""

    def __init__(self, seconds: float) -> None:
        self.id = secrets.token_urlsafe(24)
        self.status: TaskStatus = "working"
        self.seconds = seconds
        self.outcome: dict[str, Any] | McpError | None = None
        self.work = anyio.CancelScope()
        self.retention = anyio.CancelScope()
        self.changed = Signal()
        self._created = self._updated = time.time()

    @property
    def is_over(self) -> bool:
        return self.status != "working"

    def end(self, status: TaskStatus, outcome: dict[str, Any] | McpError | None = None) -> None:
        if not self.is_over:
            self.status, self.outcome, self._updated = status, outcome, time.time()
            self.changed.wake()

    def fields(self) -> dict[str, Any]:
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": datetime.fromtimestamp(self._created, UTC).isoformat(),
            "lastUpdatedAt": datetime.fromtimestamp(self._updated, UTC).isoformat(),
            "ttl": int(self.seconds * 1_000),
            "pollInterval": POLL_MS,
        }


class ClientSideTasks:
    """The tasks of one client. `start` returns the task group in which they run, and with which they end. `has_tasks`
    returns True if the protocol version in use has tasks of this form."""

    def __init__(self, start: Callable[[], TaskGroup], has_tasks: Callable[[], bool]) -> None:
        self._start = start
        self._has_tasks = has_tasks
        self._tasks: dict[str, _OwnTask] = {}

    def handlers(self, answers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Return `answers`, with support for tasks where that is possible, and handlers of the requests about
        tasks."""
        handlers = {
            method: self._run_as_task(handler) if method in _AUGMENTED else handler
            for method, handler in answers.items()
        }
        if not _AUGMENTED.isdisjoint(answers):
            about = {"tasks/get": self._get, "tasks/result": self._result, "tasks/cancel": self._cancel}
            handlers |= {method: self._task_handler(method, handler) for method, handler in about.items()}
        return handlers

    def _run_as_task(self, handler: Handler) -> Handler:
        async def host(params: dict[str, Any]) -> dict[str, Any]:
            if "task" not in params or not self._has_tasks():
                return await handler(params)
            request = _read(TaskRequest, params["task"])
            if len(self._tasks) >= MAX_TASKS:
                finished_task = next((task for task in self._tasks.values() if task.is_over), None)
                if finished_task is None:
                    raise RpcError("too many tasks are running at once", code=_TOO_MANY)
                finished_task.retention.cancel()
                del self._tasks[finished_task.id]
            call_params = {name: value for name, value in params.items() if name != "task"}
            task = _OwnTask(MAX_SECONDS if request.ttl is None else min(request.ttl / 1_000, MAX_SECONDS))
            self._tasks[task.id] = task
            self._start().start_soon(self._run, task, handler, call_params)
            return {"task": task.fields()}

        return host

    async def _run(self, task: _OwnTask, handler: Handler, params: dict[str, Any]) -> None:
        """Run the handler, and retain the outcome until its time is up."""
        with task.retention, anyio.move_on_after(task.seconds):
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

    def _task_handler(self, method: str, handle: Callable[[_OwnTask], Awaitable[dict[str, Any]]]) -> Handler:
        async def handler(params: dict[str, Any]) -> dict[str, Any]:
            if not self._has_tasks():
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
            await task.changed.wait()
        if isinstance(task.outcome, McpError):
            raise task.outcome
        if task.outcome is None:
            raise InvalidParams("the task was cancelled")
        return {**task.outcome, "_meta": {**task.outcome.get("_meta", {}), RELATED_TASK: {"taskId": task.id}}}

    async def _cancel(self, task: _OwnTask) -> dict[str, Any]:
        if task.is_over:
            raise InvalidParams(f"the task has already ended: {task.status}")
        task.end("cancelled")
        task.work.cancel()
        return task.fields()


def _read(model: type[Read], value: Any) -> Read:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidParams(f"the params about a task are invalid: {describe_first_error(error)}") from None
