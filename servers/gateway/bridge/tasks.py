"""Calls that the server behind a bridge runs as tasks: followed to their ends, for clients of any version.

    tools/call ──▶ the server makes a task of it ──▶ the client is given one of ours, where it has tasks
                                                 ──▶ the task is followed; its result is that of the call

A stateless server decides by itself. One with sessions is asked for a task, where the client has asked for one or the
tool has to run as one.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import anyio

from shared.client.client import Client
from shared.client.tasks.following import TaskState, Way, follow, read_state
from shared.client.tasks.tool_task import TaskSupport
from shared.errors import McpError, MethodNotFound
from shared.protocol.identity import declared
from shared.protocol.session.client import ServerDescription
from shared.protocol.session.client_events import Asked, Notified
from shared.protocol.types.tasks import RELATED_TASK, TASKS
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

OF_TASKS = "notifications/tasks"
"""What the notifications about tasks of the server begin with: of these tasks its clients know nothing."""
ASK_SECONDS = 60.0
"""How long a server may take to say how a task is."""

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""The server's result of a request, by method and params."""


class Told(Protocol):
    """Whoever stands for the client of a call."""

    async def became_task(self) -> None:
        """The server has made a task of the call."""

    def said(self, task: TaskState) -> None:
        """The task is so. Never waits or raises."""


def has_tasks(server: ServerDescription | None, *, stateless: bool) -> bool:
    """Whether calls may become tasks of a server that describes itself so."""
    if server is None:
        return False
    return server.can("extensions", TASKS) if stateless else server.runs_tools_as_tasks


def with_tasks(listed: dict[str, Any]) -> dict[str, Any]:
    """A page of the tools of a stateless server as clients of 2025-11-25 are to see it, which ask for tasks of those
    alone of which they are told that: here of any."""
    tools, optional = listed.get("tools"), {"execution": {"taskSupport": "optional"}}
    if not isinstance(tools, list):
        return listed
    return {**listed, "tools": [{**optional, **tool} if isinstance(tool, dict) else tool for tool in tools]}


def seconds_for(method: str) -> float | None:
    """How long the answer to a request may take; None where the call itself has a limit."""
    return ASK_SECONDS if method in ("tasks/get", "tasks/update", "tasks/cancel") else None


def related_task(params: dict[str, Any]) -> str | None:
    """The task of the server's that a message says it belongs to."""
    id_ = declared(params, ("_meta", RELATED_TASK, "taskId"))
    return id_ if isinstance(id_, str) else None


def unrelated(params: dict[str, Any]) -> dict[str, Any]:
    """`params`, or a result, without the task of the server's that they are related to, of which no client knows."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or RELATED_TASK not in meta:
        return params
    kept = {key: value for key, value in meta.items() if key != RELATED_TASK}
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


def without_task(asked: Asked) -> Asked:
    """A question of the server's that concerns no task: a bridge does not declare that its clients run any, so that
    one which is asked for is ignored (2025-11-25, Tasks, Capability Negotiation)."""
    return replace(asked, params={key: value for key, value in unrelated(asked.params).items() if key != "task"})


class UpstreamTasks:
    """Which tools of a server with sessions are to be asked for tasks."""

    def __init__(self) -> None:
        self._support = TaskSupport()
        self._is_listed = False
        self._listing = anyio.Lock()

    def learn(self, listed: dict[str, Any]) -> None:
        """Takes a page of its tools."""
        self._support.learn(listed)

    def heard(self, notice: Notified | Gap) -> None:
        """Takes what it tells: its tools may be others now."""
        if isinstance(notice, Gap) or notice.method == "notifications/tools/list_changed":
            self._support, self._is_listed = TaskSupport(), False

    async def wanted(self, client: Client, context: Context[Any], name: object) -> dict[str, Any] | None:
        """The `task` that the call of `context` is made with in the session of `client`, for the tool which the
        server knows by that name; None for none."""
        call = context.call
        if call.method.name != "tools/call" or not client.server.runs_tools_as_tasks:
            return None
        asked = (call.raw or {}).get("task") if context.peer.may_request_tasks else None
        if isinstance(asked, dict):
            return asked
        named = {"name": name}
        if self._support.of(named) is None and not self._is_listed:
            await self._list(client)
        support = self._support.of(named)
        return {} if support == "required" or (support == "optional" and call.task is not None) else None

    async def _list(self, client: Client) -> None:
        """Lists the tools, once for all who want to know. A server that does not list them is called all the same."""
        async with self._listing:
            if self._is_listed:
                return
            support = self._support
            with suppress(McpError, OSError):
                tools = await client.plain.list_tools()
                if self._support is support:  # and they have not changed meanwhile
                    support.learn({"tools": tools})
                    self._is_listed = True


async def through_task(
    ask: Ask, method: str, params: dict[str, Any], wanted: dict[str, Any] | None, told: Told
) -> dict[str, Any]:
    """The result of a request to a server with sessions, which is `wanted` as a task or not. Raises what `ask` and
    `follow` do."""
    if wanted is None:
        return await ask(method, params)
    result = await ask(method, {**params, "task": wanted})
    if not isinstance(result.get("task"), dict):
        return result  # it has run, as if it had not been asked for a task
    task = read_state(method, result["task"])
    await told.became_task()
    return unrelated(await follow(task.id, Way(ask, nobody, is_experimental=True, on_task=told.said), task))


async def nobody(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answers no question that comes one by one."""
    raise MethodNotFound(f"the server asks otherwise: {method}")
