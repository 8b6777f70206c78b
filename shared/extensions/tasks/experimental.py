"""Tasks in the form of version 2025-11-25, which calls them experimental (2025-11-25, Utilities, Tasks).

The client requests a task in the params of its call. It reads the result with `tasks/result`. While that waits for
the result, it sends the task's requests for input to the client.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from operator import attrgetter
from typing import Any

from pydantic import ValidationError

from ...concurrency import background
from ...contracts import TaskRecord
from ...errors import InvalidParams, MethodNotFound, RpcError
from ...protocol.identity import Audience
from ...protocol.methods import Method
from ...protocol.pagination import page
from ...protocol.types.base import describe_first_error
from ...protocol.types.tasks import ListTasksParams, TaskParams, TaskRequest, TaskStatus
from ...protocol.versions import V2025_11_25
from ...server.dispatch.context import Context
from ...server.extension import Capability
from ...server.features import Handler
from ...server.run import Run
from . import states
from .experimental_questions import QuestionSender, related_meta
from .hosted import Report
from .runner import POLL_MS, can_access, common_fields, tasks_of

_NAME = "experimental"
AUDIENCES: Mapping[tuple[str, ...], Audience] = {
    ("tasks",): Audience(V2025_11_25, V2025_11_25),
    ("tasks", "list"): Audience(V2025_11_25, V2025_11_25, principals_only=True),
}
"""The peers to which the capabilities are declared. Only principals can list tasks, since unauthenticated clients
can't be distinguished."""
_ROW = partial(Method, first=V2025_11_25, last=V2025_11_25, capability=("tasks",))


class _Form:
    """The messages for tasks in 2025-11-25: a `Form`."""

    name = _NAME

    def create_result(self, task: TaskRecord) -> dict[str, Any]:
        """Return a `CreateTaskResult` of 2025-11-25."""
        return {"task": _fields(task)}

    def status_of(self, result: Mapping[str, Any]) -> TaskStatus:
        """Return "failed" if `result` is the failure of a tool, otherwise "completed"."""
        return "failed" if result.get("isError") else "completed"

    def send_progress(self, context: Context[Any], id: str, report: Report) -> None:
        """Send a progress notification if the client sent a progress token, which stays valid after the answer."""
        call = context.call
        if call.token is None or not call.advance(report.progress):
            return
        fields = {"progress": report.progress, "total": report.total, "message": report.message}
        params = {name: value for name, value in fields.items() if value is not None}
        _notify(context, "notifications/progress", {"progressToken": call.token, **params, "_meta": related_meta(id)})

    def send_status(self, context: Context[Any], task: TaskRecord) -> None:
        """Send `notifications/tasks/status` to the client that began the task."""
        _notify(context, "notifications/tasks/status", _fields(task))


def _notify(context: Context[Any], method: str, params: dict[str, Any]) -> None:
    """Send a notification to the client that began a task, if it is connected and not too slow to read."""
    link = context.link
    if not link.is_gone and not link.is_behind:
        link.session.notify_session(method, params)
        link.send_soon()


FORM = _Form()


def _fields(task: TaskRecord) -> dict[str, Any]:
    return {**common_fields(task), "ttl": int(task.seconds * 1_000), "pollInterval": POLL_MS}


# Creating tasks


def request_of(context: Context[Any], name: str, support: str | None) -> TaskRequest | None:
    """Return the client's request to run its call of the tool `name` as a task; None if it did not request that.
    `support` is the task support of the tool.

    Raises InvalidParams for an invalid request, and MethodNotFound if the tool supports no tasks, or only tasks.
    """
    # The request is ignored if the server does not declare tasks (2025-11-25, Tasks, Capability Negotiation).
    is_requested = context.peer.may_request_tasks and (context.call.raw or {}).get("task") is not None
    if not (is_requested and context.running.identity.has(("tasks", "requests", "tools", "call"))):
        if support == "required" and context.peer.may_request_tasks:
            raise MethodNotFound(f"the tool {name} runs only as a task: request a task with params.task")
        return None
    if support in (None, "forbidden"):
        raise MethodNotFound(f"the tool {name[:100]} does not run as a task: omit params.task")
    request = context.call.raw["task"]
    if not isinstance(request, dict):
        raise InvalidParams("task: it must be an object")
    try:
        return TaskRequest.model_validate(request)
    except ValidationError as error:
        raise InvalidParams(f"task: {describe_first_error(error)}") from None


def list_capabilities(supports_tasks: Callable[[Run[Any]], bool]) -> Sequence[Capability]:
    """Return the capabilities to declare if `supports_tasks` returns True."""
    capability: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    return (
        Capability(("tasks",), lambda run: capability if supports_tasks(run) else None, AUDIENCES["tasks",]),
        Capability(("tasks", "list"), lambda run: {} if supports_tasks(run) else None, AUDIENCES["tasks", "list"]),
    )


# Requests for tasks


async def _get(run: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/get`."""
    return _fields(await tasks_of(run).find(params.task_id, _NAME, context.peer))


async def _get_result(run: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/result`: send the task's requests for input to the client, and return the outcome at its end."""
    tasks = tasks_of(run)
    task = await tasks.find(params.task_id, _NAME, context.peer)
    async with background() as group, aclosing(tasks.follow(task.id)) as changes:
        group.start_soon(_fail_on_closing, context)
        question_sender = QuestionSender(tasks, context, group)
        async for task in changes:
            question_sender.update(task)
            if states.is_over(task):
                return _outcome_of(task)
    raise InvalidParams("the task has expired")


async def _fail_on_closing(context: Context[Any]) -> None:
    await context.link.wait_for_closing()
    raise RpcError("the connection is about to end; request the result on another one")


def _outcome_of(task: TaskRecord) -> dict[str, Any]:
    if task.outcome is None:
        raise RpcError(f"the task was {task.status}")
    if "error" in task.outcome:
        error = task.outcome["error"]
        raise RpcError(error["message"], code=error["code"], data=error.get("data"))
    result = task.outcome["result"]
    return {**result, "_meta": related_meta(task.id, result.get("_meta"))}


async def _list(run: Run[Any], context: Context[Any], params: ListTasksParams) -> dict[str, Any]:
    """Handle `tasks/list`."""
    principal = context.peer.principal
    if principal is None:
        raise MethodNotFound("method not found: tasks/list")
    tasks = await tasks_of(run).store.list_by_owner(principal.key)
    accessible = [task for task in tasks if task.form == _NAME and can_access(task, context.peer)]
    name = context.peer.name_for_principal("tasks")
    size, signer = run.server.page_size, run.signer
    entries, next_cursor = page(accessible, params.cursor, attrgetter("id"), name=name, size=size, signer=signer)
    cursor_field = {} if next_cursor is None else {"nextCursor": next_cursor}
    return {"tasks": [_fields(task) for task in entries], **cursor_field}


async def _cancel(run: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/cancel`. Raises InvalidParams if the task is over."""

    def cancel(task: TaskRecord, now: float) -> TaskRecord:
        if states.is_over(task):
            raise InvalidParams(f"the task has already ended: {task.status}")
        return states.cancel(task, now)

    tasks = tasks_of(run)
    current = await tasks.find(params.task_id, _NAME, context.peer)
    task = await tasks.change(current.id, cancel)
    return _fields(current if task is None else task)


METHODS = (
    _ROW("tasks/get", TaskParams, handler=f"tasks/get {_NAME}"),
    _ROW("tasks/result", TaskParams, is_stream=True),
    _ROW("tasks/list", ListTasksParams, capability=("tasks", "list")),
    _ROW("tasks/cancel", TaskParams, handler=f"tasks/cancel {_NAME}"),
)
HANDLERS: Mapping[str, Handler] = {
    f"tasks/get {_NAME}": _get,
    "tasks/result": _get_result,
    "tasks/list": _list,
    f"tasks/cancel {_NAME}": _cancel,
}
