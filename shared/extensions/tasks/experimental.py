"""Tasks as they are a part of 2025-11-25, and of no other version (2025-11-25, Utilities, Tasks).

The client says with the call that it wants a task, and asks for its result by `tasks/result`, which waits for that
and meanwhile puts to the client what the task asks.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from pydantic import ValidationError

from ...concurrency import background
from ...contracts import TaskRecord
from ...errors import InvalidParams, MethodNotFound, RpcError
from ...protocol.identity import Span
from ...protocol.methods import Method
from ...protocol.pagination import page
from ...protocol.types.base import first_fault
from ...protocol.types.tasks import ListTasksParams, TaskParams, TaskRequest, TaskStatus
from ...protocol.versions import V2025_11_25
from ...server.dispatch.context import Context
from ...server.extension import Capability
from ...server.features import Handler
from ...server.run import Run
from . import states
from .experimental_questions import Asking, related
from .hosted import Report
from .runner import POLL_MS, iso, may_see, tasks_of

_NAME = "experimental"
SPANS: Mapping[tuple[str, ...], Span] = {
    ("tasks",): Span(V2025_11_25, V2025_11_25),
    ("tasks", "list"): Span(V2025_11_25, V2025_11_25, principals_only=True),
}
"""Whom the capabilities are declared to; tasks are listed for those only who can be told from others."""
_ROW = partial(Method, first=V2025_11_25, last=V2025_11_25, capability=("tasks",))


class _Form:
    """How 2025-11-25 tells of a task."""

    name = _NAME

    def created(self, task: TaskRecord) -> dict[str, Any]:
        """A `CreateTaskResult`."""
        return {"task": _fields(task)}

    def status_of(self, result: Mapping[str, Any]) -> TaskStatus:
        """A tool that fails is a task that fails."""
        return "failed" if result.get("isError") else "completed"

    def reported(self, context: Context[Any], id: str, report: Report) -> None:
        """Its progress goes on as long as it does, where the client gave a token."""
        call = context.call
        if call.token is None or not call.advance(report.progress):
            return
        said = {"progress": report.progress, "total": report.total, "message": report.message}
        params = {name: value for name, value in said.items() if value is not None}
        _tell(context, "notifications/progress", {"progressToken": call.token, **params, "_meta": related(id)})

    def moved(self, context: Context[Any], task: TaskRecord) -> None:
        """`notifications/tasks/status`, to the client that has begun it."""
        _tell(context, "notifications/tasks/status", _fields(task))


def _tell(context: Context[Any], method: str, params: dict[str, Any]) -> None:
    """Tells the client that has begun a task, while it is there and takes what it is told."""
    link = context.link
    if not link.is_left and not link.is_behind:
        link.session.tell(method, params)
        link.soon()


FORM = _Form()


def _fields(task: TaskRecord) -> dict[str, Any]:
    said = {} if task.message is None else {"statusMessage": task.message}
    return {
        "taskId": task.id,
        "status": task.status,
        **said,
        "createdAt": iso(task.created),
        "lastUpdatedAt": iso(task.updated),
        "ttl": int(task.seconds * 1_000),
        "pollInterval": POLL_MS,
    }


# Making tasks


def _is_asked_for(context: Context[Any]) -> bool:
    """Whether the call is to be run as a task. Where no tasks are declared that is ignored (2025-11-25, Tasks,
    Capability Negotiation)."""
    asked = context.peer.may_request_tasks and (context.call.raw or {}).get("task") is not None
    return asked and context.running.identity.has(("tasks", "requests", "tools", "call"))


def request_of(context: Context[Any], name: str, support: str | None) -> TaskRequest | None:
    """How the call of the tool `name` is to be run as a task; None where it is not asked for.

    Raises InvalidParams for a request that is none, and MethodNotFound where the tool has no tasks, or nothing else.
    """
    if not _is_asked_for(context):
        if support == "required" and context.peer.may_request_tasks:
            raise MethodNotFound(f"the tool {name} runs as a task only: ask for one by params.task")
        return None
    if support in (None, "forbidden"):
        raise MethodNotFound(f"the tool {name[:100]} does not run as a task: leave params.task out")
    asked = context.call.raw["task"]
    if not isinstance(asked, dict):
        raise InvalidParams("task: it has to be an object")
    try:
        return TaskRequest.model_validate(asked)
    except ValidationError as error:
        raise InvalidParams(f"task: {first_fault(error)}") from None


def declares(has_tasks: Callable[[Run[Any]], bool]) -> Sequence[Capability]:
    """The capabilities; tasks are listed for those only who can be told from others."""
    can: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    return (
        Capability(("tasks",), lambda running: can if has_tasks(running) else None, SPANS["tasks",]),
        Capability(("tasks", "list"), lambda running: {} if has_tasks(running) else None, SPANS["tasks", "list"]),
    )


# Requests about tasks


async def _get(running: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """`tasks/get`."""
    return _fields(await tasks_of(running).find(params.task_id, _NAME, context.peer))


async def _result(running: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """`tasks/result`: waits for the end of the task, and puts its questions to the client."""
    tasks = tasks_of(running)
    task = await tasks.find(params.task_id, _NAME, context.peer)
    async with background() as group, aclosing(tasks.follow(task.id)) as changes:
        group.start_soon(_until_closing, context)
        asking = Asking(tasks, context, group)
        async for task in changes:
            asking.look(task)
            if states.is_over(task):
                return _outcome(task)
    raise InvalidParams("the task has expired")


async def _until_closing(context: Context[Any]) -> None:
    await context.link.closing()
    raise RpcError("the connection is about to end; ask for the result on another one")


def _outcome(task: TaskRecord) -> dict[str, Any]:
    if task.outcome is None:
        raise RpcError(f"the task was {task.status}")
    if "error" in task.outcome:
        error = task.outcome["error"]
        raise RpcError(error["message"], code=error["code"], data=error.get("data"))
    result = task.outcome["result"]
    return {**result, "_meta": related(task.id, result.get("_meta"))}


async def _list(running: Run[Any], context: Context[Any], params: ListTasksParams) -> dict[str, Any]:
    """`tasks/list`."""
    principal = context.peer.principal
    if principal is None:
        raise MethodNotFound("method not found: tasks/list")
    found = await tasks_of(running).store.listed(principal.key)
    listed = [task for task in found if task.form == _NAME and may_see(task, context.peer)]
    name = context.peer.own_list("tasks")
    shown, following = page(listed, params.cursor, name=name, size=running.server.page_size, signer=running.signer)
    more = {} if following is None else {"nextCursor": following}
    return {"tasks": [_fields(task) for task in shown], **more}


async def _cancel(running: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """`tasks/cancel`. Raises InvalidParams where the task is over."""

    def cancelled(task: TaskRecord, now: float) -> TaskRecord:
        if states.is_over(task):
            raise InvalidParams(f"the task is over already: {task.status}")
        return states.cancelled(task, now)

    tasks = tasks_of(running)
    found = await tasks.find(params.task_id, _NAME, context.peer)
    task = await tasks.change(found.id, cancelled)
    return _fields(found if task is None else task)


METHODS = (
    _ROW("tasks/get", TaskParams, handler=f"tasks/get {_NAME}"),
    _ROW("tasks/result", TaskParams, is_stream=True),
    _ROW("tasks/list", ListTasksParams, capability=("tasks", "list")),
    _ROW("tasks/cancel", TaskParams, handler=f"tasks/cancel {_NAME}"),
)
HANDLERS: Mapping[str, Handler] = {
    f"tasks/get {_NAME}": _get,
    "tasks/result": _result,
    "tasks/list": _list,
    f"tasks/cancel {_NAME}": _cancel,
}
