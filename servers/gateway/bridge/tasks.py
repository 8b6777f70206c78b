"""Calls that the server behind a bridge runs as tasks: followed to their end, for clients of any version.

    tools/call ──▶ the server turns it into a task ──▶ the client gets one of ours, if it supports tasks
                                                   ──▶ the task is followed; its result is that of the call

A stateless server decides itself. One with sessions gets a request for a task, if the client requested one or the
tool requires it.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import anyio

from shared.client.client import Client
from shared.client.tasks.following import TaskChannel, TaskState, follow, read_state
from shared.client.tasks.tool_task import TaskSupport
from shared.errors import McpError, MethodNotFound
from shared.protocol.identity import find_capability
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.descriptions import ServerDescription
from shared.protocol.types.tasks import RELATED_TASK, TASKS
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

TASK_NOTIFICATIONS = "notifications/tasks"
"""The prefix of notifications about the server's tasks, which clients don't know."""
ASK_SECONDS = 60.0
"""Seconds that the server has to return the state of a task."""

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Returns the server's result of a request, by method and params."""


class TaskClient(Protocol):
    """The client of a call."""

    async def became_task(self) -> None:
        """Called when the server has turned the call into a task."""

    def on_status(self, task: TaskState) -> None:
        """Receive the state of the task. Never waits or raises."""


def has_tasks(server: ServerDescription | None, *, stateless: bool) -> bool:
    """Return True if calls may become tasks at a server with this description."""
    if server is None:
        return False
    return server.can("extensions", TASKS) if stateless else server.runs_tools_as_tasks


def declare_tasks(listed: dict[str, Any]) -> dict[str, Any]:
    """Return a page of a stateless server's tools for clients of 2025-11-25. They only request tasks of tools that
    declare support, so all tools do."""
    tools, optional = listed.get("tools"), {"execution": {"taskSupport": "optional"}}
    if not isinstance(tools, list):
        return listed
    return {**listed, "tools": [{**optional, **tool} if isinstance(tool, dict) else tool for tool in tools]}


def time_limit_of(method: str) -> float | None:
    """Return the time limit for the answer to a request; None if the call itself has a limit."""
    return ASK_SECONDS if method in ("tasks/get", "tasks/update", "tasks/cancel") else None


def related_task(params: dict[str, Any]) -> str | None:
    """Return the id of the server's task that a message belongs to; None if it belongs to none."""
    id_ = find_capability(params, ("_meta", RELATED_TASK, "taskId"))
    return id_ if isinstance(id_, str) else None


def drop_related_task(params: dict[str, Any]) -> dict[str, Any]:
    """Return `params`, or a result, without the reference to a task at the server, which no client knows."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or RELATED_TASK not in meta:
        return params
    meta_fields = {key: value for key, value in meta.items() if key != RELATED_TASK}
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return {**rest, "_meta": meta_fields} if meta_fields else rest


def drop_task(request: ServerRequest) -> ServerRequest:
    """Return a request from the server without its task: a bridge does not declare that its clients run any, so a
    requested one is ignored (2025-11-25, Tasks, Capability Negotiation)."""
    return replace(
        request, params={key: value for key, value in drop_related_task(request.params).items() if key != "task"}
    )


class UpstreamTasks:
    """Task support for the tools of a server with sessions."""

    def __init__(self) -> None:
        self._support = TaskSupport()
        self._is_listed = False
        self._listing = anyio.Lock()

    def learn(self, listed: dict[str, Any]) -> None:
        """Store the support that a page of its tools declares."""
        self._support.learn(listed)

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Forget the tools when they may have changed."""
        if isinstance(notice, Gap) or notice.method == "notifications/tools/list_changed":
            self._support, self._is_listed = TaskSupport(), False

    async def task_param(self, client: Client, context: Context[Any], name: object) -> dict[str, Any] | None:
        """Return the `task` param for the call of `context` in the session of `client`, of the tool that the server
        knows as `name`; None for no task."""
        call = context.call
        if call.method.name != "tools/call" or not client.server.runs_tools_as_tasks:
            return None
        requested = (call.raw or {}).get("task") if context.peer.may_request_tasks else None
        if isinstance(requested, dict):
            return requested
        named = {"name": name}
        if self._support.find(named) is None and not self._is_listed:
            await self._list(client)
        support = self._support.find(named)
        return {} if support == "required" or (support == "optional" and call.task is not None) else None

    async def _list(self, client: Client) -> None:
        """List the tools, once for all waiting calls."""
        async with self._listing:
            if self._is_listed:
                return
            support = self._support
            # An error of the list does not prevent calls.
            with suppress(McpError, OSError):
                tools = await client.raw.list_tools()
                if self._support is support:  # they have not changed in the meantime
                    support.learn({"tools": tools})
                    self._is_listed = True


async def run_as_task(
    ask: Ask, method: str, params: dict[str, Any], task_params: dict[str, Any] | None, client: TaskClient
) -> dict[str, Any]:
    """Send a request to a server with sessions, as a task if `task_params` are not None, and return its result.
    Raises the same errors as `ask` and `follow`."""
    if task_params is None:
        return await ask(method, params)
    result = await ask(method, {**params, "task": task_params})
    if not isinstance(result.get("task"), dict):
        return result  # it has run as a normal call
    task = read_state(method, result["task"])
    await client.became_task()
    return drop_related_task(
        await follow(task.id, TaskChannel(ask, reject_question, is_experimental=True, on_task=client.on_status), task)
    )


async def reject_question(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Reject a question that arrives as a separate request."""
    raise MethodNotFound(f"this client accepts questions only in results, not by {method}")
