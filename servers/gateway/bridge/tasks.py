"""Calls that the server behind a bridge runs as tasks, for clients of any version.

    tools/call ──▶ the server turns it into a task ──▶ if the client supports tasks, its call becomes a task too
                                                   └─▶ the bridge follows the task, whose result answers the call

A stateless server decides itself which calls become tasks. A server with sessions runs a call as a task if the bridge
requests that. The bridge does so if the client requested it, or if the tool requires it.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import anyio

from shared.client.client import Client
from shared.client.relay import Caller
from shared.client.tasks.following import TaskChannel, TaskState, follow, read_state
from shared.client.tasks.tool_task import TaskSupport
from shared.errors import McpError, MethodNotFound
from shared.protocol.identity import find_capability
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.descriptions import ServerDescription
from shared.protocol.types.tasks import RELATED_TASK, TASKS
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from .forwarding import require_result

TASK_NOTIFICATIONS = "notifications/tasks"
"""The prefix of the methods of notifications about the server's tasks, which clients don't know."""
TASK_REQUEST_SECONDS = 60.0
"""Seconds that the server has to answer a request about a task, such as `tasks/get`."""


class TaskClient(Protocol):
    """Receives the events of a call that becomes a task at the server."""

    async def on_became_task(self) -> None:
        """Called when the server has turned the call into a task."""

    def on_status(self, task: TaskState) -> None:
        """Receive the state of the task. Never waits or raises."""


def supports_tasks(server: ServerDescription | None, *, stateless: bool) -> bool:
    """Return True if calls may become tasks at a server with this description."""
    if server is None:
        return False
    return server.can("extensions", TASKS) if stateless else server.runs_tools_as_tasks


def declare_tasks(listed: dict[str, Any]) -> dict[str, Any]:
    """Return a page of a stateless server's list of tools in which every tool declares that it supports tasks. A
    stateless server decides for each call whether it becomes a task, but clients of 2025-11-25 request tasks only
    from tools that declare support."""
    tools, optional = listed.get("tools"), {"execution": {"taskSupport": "optional"}}
    if not isinstance(tools, list):
        return listed
    return {**listed, "tools": [{**optional, **tool} if isinstance(tool, dict) else tool for tool in tools]}


def timeout_for(method: str) -> float | None:
    """Return the timeout in seconds for a request about a task; None for other methods, which the time limit of the
    call bounds."""
    return TASK_REQUEST_SECONDS if method in ("tasks/get", "tasks/update", "tasks/cancel") else None


def related_task(params: dict[str, Any]) -> str | None:
    """Return the id of the server's task to which a message with these params belongs; None if it belongs to none."""
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
    """Return a request from the server without its `task` param. A bridge does not declare that its clients support
    tasks, so the param may be ignored (2025-11-25, Tasks, Capability Negotiation)."""
    return replace(
        request, params={key: value for key, value in drop_related_task(request.params).items() if key != "task"}
    )


class UpstreamTasks:
    """Which tools of a server with sessions support tasks."""

    def __init__(self) -> None:
        self._support = TaskSupport()
        self._is_listed = False
        self._listing_lock = anyio.Lock()

    def learn(self, listed: dict[str, Any]) -> None:
        """Store what the tools on a page of its list declare."""
        self._support.learn(listed)

    def on_server_message(self, message: Notified | Gap) -> None:
        """Forget what the tools declared when they may have changed."""
        if isinstance(message, Gap) or message.method == "notifications/tools/list_changed":
            self._support, self._is_listed = TaskSupport(), False

    async def task_param(self, client: Client, context: Context[Any], name: object) -> dict[str, Any] | None:
        """Return the `task` param for the call of `context`, which is sent over `client`; None to request no task.
        `name` is the server's name of the called tool."""
        call = context.call
        if call.method.name != "tools/call" or not client.server.runs_tools_as_tasks:
            return None
        requested = (call.raw or {}).get("task") if context.peer.may_request_tasks else None
        if isinstance(requested, dict):
            return requested
        tool_params = {"name": name}
        if self._support.find(tool_params) is None and not self._is_listed:
            await self._list_tools(client)
        support = self._support.find(tool_params)
        return {} if support == "required" or (support == "optional" and call.task is not None) else None

    async def _list_tools(self, client: Client) -> None:
        """List the tools and store what they declare, once for all waiting calls."""
        async with self._listing_lock:
            if self._is_listed:
                return
            support = self._support
            # An error of the list does not prevent calls.
            with suppress(McpError, OSError):
                tools = await client.raw.list_tools()
                if self._support is support:  # the tools have not changed while they were listed
                    support.learn({"tools": tools})
                    self._is_listed = True


async def run_as_task(
    client: Client,
    caller: Caller,
    method: str,
    params: dict[str, Any],
    task_params: dict[str, Any] | None,
    relay: TaskClient,
) -> dict[str, Any]:
    """Send a request of `caller` to a server with sessions and return its result; with `task_params`, request a task
    and wait for its result. `relay` is notified if the request becomes a task. Raises the same errors as
    `Client.exchange` and `follow`."""

    async def send(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return require_result(await client.exchange(method, params, caller, timeout=timeout_for(method)))

    if task_params is None:
        return await send(method, params)
    result = await send(method, {**params, "task": task_params})
    if not isinstance(result.get("task"), dict):
        return result  # the server has run it as a normal call
    task = read_state(method, result["task"])
    await relay.on_became_task()
    return drop_related_task(
        await follow(
            task.id, TaskChannel(send, reject_separate_request, is_experimental=True, on_task=relay.on_status), task
        )
    )


async def reject_separate_request(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Reject a request from the server that is not part of a result."""
    raise MethodNotFound(f"this client accepts questions only in results, not by {method}")
