"""`tasks`: the extension that turns calls into tasks. This module contains the handlers of the form that 2026-07-28
uses, io.modelcontextprotocol/tasks (SEP-2663). Those of version 2025-11-25 are in `experimental.py`. Tasks of both
forms are in the same store."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import CancelScope, create_task_group

from ...contracts import TaskRecord
from ...errors import InternalError, InvalidParams, MissingCapability
from ...protocol.identity import Audience, Peer
from ...protocol.methods import Method
from ...protocol.types.base import SUBSCRIPTION_ID
from ...protocol.types.resources import SubscriptionFilter
from ...protocol.types.tasks import TASKS, TaskParams, TaskStatus, UpdateTaskParams
from ...protocol.types.tools import CallToolParams
from ...protocol.versions import V2026_07_28
from ...server.dispatch.context import Context
from ...server.extension import Capability, Extension, Follow
from ...server.features import Handler
from ...server.handlers.dispatch import refuse_tasks, route_tasks
from ...server.run import Run
from . import experimental, states
from .hosted import Form, HostedCall, Report
from .runner import POLL_MS, STOPPED, Support, Tasks, common_fields, open_tasks, tasks_of

SYNCHRONOUS_SECONDS = 0.5
"""The number of seconds after which a call becomes a task, unless its tool always runs as a task."""

_NAME = "extension"
_PATH = ("extensions", TASKS)
_REQUIRED_CAPABILITIES: dict[str, Any] = {"extensions": {TASKS: {}}}
TASK_AUDIENCES: Mapping[tuple[str, ...], Audience] = {_PATH: Audience(V2026_07_28), **experimental.AUDIENCES}
"""The peers to which the capabilities of both forms are declared."""


class _Form:
    """The messages for tasks in SEP-2663: a `Form`."""

    name = _NAME

    def create_result(self, task: TaskRecord) -> dict[str, Any]:
        """Return a `CreateTaskResult` of SEP-2663."""
        return {"resultType": "task", **_fields(task)}

    def status_of(self, result: Mapping[str, Any]) -> TaskStatus:
        """Return "completed", even if `result` is the failure of a tool: only a JSON-RPC error makes a task fail."""
        return "completed"

    def send_progress(self, context: Context[Any], id: str, report: Report) -> None:
        """Do nothing: here a task has no progress notifications, only a status message."""

    def send_status(self, context: Context[Any], task: TaskRecord) -> None:
        """Do nothing: here clients follow a task with `subscriptions/listen`."""


FORM = _Form()


def _fields(task: TaskRecord) -> dict[str, Any]:
    return {**common_fields(task), "ttlMs": max(int(task.seconds * 1_000), 1), "pollIntervalMs": POLL_MS}


def detailed_task(task: TaskRecord) -> dict[str, Any]:
    """Return a `DetailedTask`: the status of the task, with its requests for input or its outcome."""
    fields = _fields(task)
    outcome = task.outcome or {}
    if task.status == "input_required":
        fields["inputRequests"] = dict(task.questions)
    if "result" in outcome:  # the result of the call, in the form of its answer
        return {**fields, "result": {"resultType": "complete", **outcome["result"]}}
    return {**fields, **outcome}


# Creating tasks


def tasks(*, after_seconds: float = SYNCHRONOUS_SECONDS, support: Support | None = None) -> Extension[Any]:
    """Return the extension. A call that takes longer than `after_seconds` becomes a task. `support` is given if the
    tools belong to other servers, and returns their task support."""

    def around(method: Method, handler: Handler) -> Handler:
        if method.name != "tools/call":
            return handler
        host = partial(_host_call, handler=handler, after_seconds=after_seconds)
        return host if support is not None else route_tasks(host, handler)

    extension = Extension[Any](
        TASKS,
        methods=[
            Method("tasks/get", TaskParams, first=V2026_07_28, capability=_PATH),
            Method("tasks/update", UpdateTaskParams, first=V2026_07_28, capability=_PATH),
            Method("tasks/cancel", TaskParams, first=V2026_07_28, capability=_PATH),
            *experimental.METHODS,
        ],
        handlers={"tasks/get": _get, "tasks/update": _update, "tasks/cancel": _cancel, **experimental.HANDLERS},
        around=around,
        declares=[
            Capability(_PATH, _capability, Audience(V2026_07_28)),
            *experimental.list_capabilities(lambda run: _capability(run) is not None),
        ],
    )
    extension.lifespan, extension.listen = partial(open_tasks, support=support), _listen
    if support is None:
        extension.around_at_once = lambda _method, handler: refuse_tasks(handler)
    return extension


def task_capabilities() -> dict[str, Any]:
    """Return the capabilities of both forms, for a server that forwards calls to other servers. They have to be
    declared with `TASK_AUDIENCES`."""
    capability: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    return {"tasks": capability, "extensions": {TASKS: {}}}


def _capability(run: Run[Any]) -> dict[str, Any] | None:
    listed = run.features.tools.find_offered(run.settings)
    return {} if any(tool.options.task in ("optional", "required") for tool in listed) else None


async def _host_call(
    run: Run[Any], context: Context[Any], params: CallToolParams, *, handler: Handler, after_seconds: float
) -> dict[str, Any]:
    """Handle a call that may become a task. Raises MissingCapability if it must become one, and the client does not
    support tasks."""
    # If another server in this process has forwarded the call to this one, only that server may make it a task.
    if context.call.task is not None or context.link.calls is not run.calls:
        return await handler(run, context, params)
    task_support = await tasks_of(run).support_of(context, params.name)
    request = experimental.request_of(context, params.name, task_support)
    form: Form | None = FORM if _has_extension(context.peer) else None
    if request is not None:
        form = experimental.FORM
    if form is None or task_support in (None, "forbidden"):
        if task_support == "required":
            raise MissingCapability(_REQUIRED_CAPABILITIES)
        return await handler(run, context, params)
    seconds = tasks_of(run).limits.seconds
    lifetime = seconds if request is None or request.ttl is None else min(max(request.ttl / 1_000, 1.0), seconds)
    hosted = HostedCall(tasks_of(run), context, form, lifetime)
    context.call.task = hosted
    if request is None and task_support == "optional":
        hosted.detach_after(after_seconds)
    elif task_support != "handler decides":
        await _detach(hosted, tasks_of(run))
    try:
        budget = context.budget.with_seconds(lifetime)
        result: dict[str, Any] = await handler(run, replace(context, budget=budget), params)
        if request is not None:  # the client expects a task, even if the call has already ended
            await _detach(hosted, tasks_of(run))
        return result
    finally:
        hosted.cancel_detach()


async def _detach(hosted: HostedCall, tasks: Tasks) -> None:
    if await hosted.detach():
        return
    if tasks.is_stopping:
        raise InternalError(STOPPED)
    limits = tasks.limits
    raise InternalError(
        f"there are too many tasks: the limit is {limits.of_one_client:,} for one client and {limits.total:,} for "
        "all; wait for some to expire"
    )


def _has_extension(peer: Peer) -> bool:
    return not peer.has_handshake and peer.can(*_PATH)


# Requests for tasks


async def _get(run: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/get`."""
    return detailed_task(await _find(run, context, params.task_id))


async def _update(run: Run[Any], context: Context[Any], params: UpdateTaskParams) -> dict[str, Any]:
    """Handle `tasks/update`, which contains answers to requests for input. Other answers are ignored."""
    await _find(run, context, params.task_id)
    answers = {key: {"result": answer} for key, answer in params.input_responses.items()}
    await tasks_of(run).change(params.task_id, lambda task, now: states.answer(task, answers, now))
    return {}


async def _cancel(run: Run[Any], context: Context[Any], params: TaskParams) -> dict[str, Any]:
    """Handle `tasks/cancel`. Does nothing if the task is over."""
    await _find(run, context, params.task_id)
    await tasks_of(run).change(params.task_id, states.cancel)
    return {}


async def _find(run: Run[Any], context: Context[Any], id: str) -> TaskRecord:
    _require_extension(context.peer)
    return await tasks_of(run).find(id, _NAME, context.peer)


def _require_extension(peer: Peer) -> None:
    if not _has_extension(peer):
        raise MissingCapability(_REQUIRED_CAPABILITIES)


async def _listen(
    run: Run[Any], context: Context[Any], requested: SubscriptionFilter
) -> tuple[Mapping[str, object], Follow] | None:
    """Handle the task ids in the filter of a stream of `subscriptions/listen`: it receives the states of these tasks,
    beginning with the current one."""
    if not requested.task_ids or not run.identity.has(_PATH):
        return None
    _require_extension(context.peer)
    if len(requested.task_ids) > run.calls.limits.subscriptions:
        raise InvalidParams(f"a stream may follow at most {run.calls.limits.subscriptions} tasks")
    ids: list[str] = []
    for id_ in dict.fromkeys(requested.task_ids):
        with suppress(InvalidParams):
            ids.append((await _find(run, context, id_)).id)

    return {"taskIds": ids}, _TaskNotifications(tasks_of(run), context, ids).follow


class _TaskNotifications:
    """Sends the states of tasks to one stream of `subscriptions/listen`."""

    def __init__(self, tasks: Tasks, context: Context[Any], ids: Sequence[str]) -> None:
        self._tasks = tasks
        self._context = context
        self._sent = dict.fromkeys(ids, -1)
        """The last revision that was sent of each task, by id."""

    async def follow(self) -> None:
        """Send the states until cancelled. When the server stops, the final states contain the reason."""
        try:
            async with create_task_group() as task_group:
                for id_ in self._sent:
                    task_group.start_soon(self._follow, id_)
        finally:
            if self._tasks.is_stopping:
                with CancelScope(shield=True):
                    await self._send_last()

    async def _follow(self, id: str) -> None:
        async with aclosing(self._tasks.follow(id)) as changes:
            async for task in changes:
                self._send(task)
                await self._context.link.flush()

    async def _send_last(self) -> None:
        await self._tasks.wait_for_writes()
        for id_ in self._sent:
            task = await self._tasks.store.get(id_)
            if task is not None and task.revision > self._sent[id_]:
                self._send(task)

    def _send(self, task: TaskRecord) -> None:
        context, self._sent[task.id] = self._context, task.revision
        params = {"_meta": {SUBSCRIPTION_ID: context.call.id}, **detailed_task(task)}
        context.link.session.notify(context.call, "notifications/tasks", params)
