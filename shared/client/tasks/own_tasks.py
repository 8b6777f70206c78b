"""Input requests (elicitation and sampling) that a server of 2025-11-25 asks the client to run as tasks, with
`params.task`. The server receives the id of the task at once, and fetches the answer with `tasks/result` (2025-11-25,
Utilities, Tasks).

The tasks are in memory, and end with the client. Their number and time are limited, and their ids can't be guessed.
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
"""The maximum number of tasks. The oldest finished task is dropped for a new one."""
MAX_RETENTION_SECONDS = 3_600.0
"""The longest time in seconds for which a task and its answer are retained; the server may request less."""
POLL_MS = 500
"""Milliseconds that the server is asked to wait between status requests."""
_TASK_METHODS = frozenset({"elicitation/create", "sampling/createMessage"})
"""The methods that may be run as tasks; `ClientOptions.identity` declares them."""
_LIMIT_ERROR_CODE = -31_000
"""The error code for too many tasks. The specification leaves this code to implementations."""

Read = TypeVar("Read", TaskParams, TaskRequest)


class _ClientSideTask:
    """One input request that runs as a task, and its outcome. `work` is cancelled when the task is cancelled,
    `retention` when the task is to be forgotten."""

    def __init__(self, retention_seconds: float) -> None:
        self.id = secrets.token_urlsafe(24)
        self.status: TaskStatus = "working"
        self.retention_seconds = retention_seconds
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
            "ttl": int(self.retention_seconds * 1_000),
            "pollInterval": POLL_MS,
        }


class ClientSideTasks:
    """The tasks that a client runs for its server. `get_task_group` returns the task group in which the tasks run,
    and with which they end. `supports_tasks` returns True if the protocol version in use has tasks of this form."""

    def __init__(self, get_task_group: Callable[[], TaskGroup], supports_tasks: Callable[[], bool]) -> None:
        self._get_task_group = get_task_group
        self._supports_tasks = supports_tasks
        self._tasks: dict[str, _ClientSideTask] = {}

    def handlers(self, input_handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Return `input_handlers` with support for tasks where possible, and handlers of requests about tasks."""
        handlers = {
            method: self._with_task_support(handler) if method in _TASK_METHODS else handler
            for method, handler in input_handlers.items()
        }
        if not _TASK_METHODS.isdisjoint(input_handlers):
            task_methods = {"tasks/get": self._get, "tasks/result": self._result, "tasks/cancel": self._cancel}
            handlers |= {method: self._task_handler(method, handler) for method, handler in task_methods.items()}
        return handlers

    def _with_task_support(self, handler: Handler) -> Handler:
        async def handle(params: dict[str, Any]) -> dict[str, Any]:
            if "task" not in params or not self._supports_tasks():
                return await handler(params)
            request = _read(TaskRequest, params["task"])
            if len(self._tasks) >= MAX_TASKS:
                finished_task = next((task for task in self._tasks.values() if task.is_over), None)
                if finished_task is None:
                    raise RpcError("too many tasks are running at once", code=_LIMIT_ERROR_CODE)
                finished_task.retention.cancel()
                del self._tasks[finished_task.id]
            call_params = {name: value for name, value in params.items() if name != "task"}
            task = _ClientSideTask(
                MAX_RETENTION_SECONDS if request.ttl is None else min(request.ttl / 1_000, MAX_RETENTION_SECONDS)
            )
            self._tasks[task.id] = task
            self._get_task_group().start_soon(self._run, task, handler, call_params)
            return {"task": task.fields()}

        return handle

    async def _run(self, task: _ClientSideTask, handler: Handler, params: dict[str, Any]) -> None:
        """Run the handler, and retain the task with its outcome until its time is up."""
        with task.retention, anyio.move_on_after(task.retention_seconds):
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

    def _task_handler(self, method: str, handle: Callable[[_ClientSideTask], Awaitable[dict[str, Any]]]) -> Handler:
        async def handler(params: dict[str, Any]) -> dict[str, Any]:
            if not self._supports_tasks():
                raise MethodNotFound(f"method not found: {method}")
            task = self._tasks.get(_read(TaskParams, params).task_id)
            if task is None:
                raise InvalidParams("there is no such task; it may have expired")
            return await handle(task)

        return handler

    async def _get(self, task: _ClientSideTask) -> dict[str, Any]:
        return task.fields()

    async def _result(self, task: _ClientSideTask) -> dict[str, Any]:
        while not task.is_over:
            await task.changed.wait()
        if isinstance(task.outcome, McpError):
            raise task.outcome
        if task.outcome is None:
            raise InvalidParams("the task was cancelled")
        return {**task.outcome, "_meta": {**task.outcome.get("_meta", {}), RELATED_TASK: {"taskId": task.id}}}

    async def _cancel(self, task: _ClientSideTask) -> dict[str, Any]:
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
