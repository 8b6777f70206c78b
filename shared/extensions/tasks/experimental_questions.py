"""The questions of a task of 2025-11-25: they are sent to the clients that wait for the result of the task with
`tasks/result`, and the answers are written to the store (2025-11-25, Utilities, Tasks, Input Required Status).

If two clients wait, both are asked; the first answer is used, and the question to the other client is withdrawn. If a
client leaves without answering, the next client is asked. A client may run the request as its own task.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from anyio import CancelScope, move_on_after
from anyio.abc import TaskGroup

from ...contracts import TaskRecord
from ...errors import MissingCapability, PeerError, RpcError
from ...protocol.types.tasks import RELATED_TASK
from ...server.dispatch.context import Context
from . import states
from .runner import Tasks

_KEY = "question"
_TASK_CAPABILITIES = {
    "elicitation/create": ("tasks", "requests", "elicitation", "create"),
    "sampling/createMessage": ("tasks", "requests", "sampling", "createMessage"),
}
"""Capabilities of a client that runs such requests as tasks."""
CANCEL_SECONDS = 2.0
"""Seconds that the cancellation of a client's task may take."""


def related_meta(id: str, meta: Any = None) -> dict[str, Any]:
    """Return the `_meta` of a message that belongs to the task `id`, including `meta`."""
    return {**(meta if isinstance(meta, dict) else {}), RELATED_TASK: {"taskId": id}}


class QuestionSender:
    """Sends the questions of a task to the client of one `tasks/result` request, in `group`, while it waits."""

    def __init__(self, tasks: Tasks, context: Context[Any], group: TaskGroup) -> None:
        self._tasks = tasks
        self._context = context
        self._group = group
        self._asked: dict[str, CancelScope] = {}

    def update(self, task: TaskRecord) -> None:
        """Ask the task's new questions, and withdraw those that are no longer open."""
        for key in [key for key in self._asked if key not in task.questions]:
            self._asked.pop(key).cancel()
        for key, request in task.questions.items():
            if key not in self._asked:
                scope = self._asked[key] = CancelScope()
                self._group.start_soon(self._ask, task.id, key, request, scope)

    async def _ask(self, id: str, key: str, request: Mapping[str, Any], scope: CancelScope) -> None:
        with scope:
            try:
                answer = {"result": await self._get_answer(id, request["method"], request["params"])}
            except MissingCapability:
                return  # another client of the owner may have it
            except PeerError as error:
                if self._context.link.answers.is_finished:
                    return  # the client is gone
                data = {} if error.data is None else {"data": error.data}
                answer = {"error": {"code": error.code, "message": error.message, **data}}
            except RpcError:
                return  # the call is over
            await self._tasks.change(id, lambda task, now: states.answer(task, {key: answer}, now))

    async def _get_answer(self, id: str, method: str, params: Mapping[str, Any]) -> Any:
        meta = related_meta(id, params.get("_meta"))
        peer, path = self._context.peer, _TASK_CAPABILITIES.get(method)
        runs_as_task = peer.may_request_tasks and path is not None and peer.can(*path)
        as_task: dict[str, Any] = {"task": {}} if runs_as_task else {}
        answer = await self._request(method, {**params, **as_task, "_meta": meta})
        client_task = answer.get("task") if as_task and isinstance(answer, dict) else None
        if not isinstance(client_task, dict):
            return answer
        task_params, result = {"taskId": client_task.get("taskId")}, None
        try:
            result = await self._request("tasks/result", task_params)
        finally:
            if result is None:  # the client's task is no longer needed
                with CancelScope(shield=True), move_on_after(CANCEL_SECONDS), suppress(RpcError):
                    await self._request("tasks/cancel", task_params)
        return result

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        return (await self._context.forward_questions({_KEY: (method, params)}, None))[_KEY]
