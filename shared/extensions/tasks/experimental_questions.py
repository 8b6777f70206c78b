"""The questions of a task in version 2025-11-25, which are requests for input such as elicitation. They are sent to
the clients that wait for the result of the task with `tasks/result`, and the answers are written to the store
(2025-11-25, Utilities, Tasks, Input Required Status).

If two clients wait, both receive a question. The first answer is used, and the question to the other client is
withdrawn. If a client leaves without an answer, the question is sent to the next client that waits. A client may
itself answer with a task, whose result is then the answer.
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
"""The client capabilities to answer a request with a task, by its method."""
CANCEL_SECONDS = 2.0
"""Time limit for the cancellation of a client's task, in seconds."""


def related_meta(id: str, meta: Any = None) -> dict[str, Any]:
    """Return `meta` with the key that says that a message belongs to the task `id`."""
    return {**(meta if isinstance(meta, dict) else {}), RELATED_TASK: {"taskId": id}}


class QuestionSender:
    """Sends the questions of a task to the client of one request `tasks/result`, with tasks in `group`."""

    def __init__(self, tasks: Tasks, context: Context[Any], group: TaskGroup) -> None:
        self._tasks = tasks
        self._context = context
        self._group = group
        self._scopes: dict[str, CancelScope] = {}

    def update(self, task: TaskRecord) -> None:
        """Send the new questions of the task, and withdraw those that no longer wait for an answer."""
        for key in [key for key in self._scopes if key not in task.questions]:
            self._scopes.pop(key).cancel()
        for key, request in task.questions.items():
            if key not in self._scopes:
                scope = self._scopes[key] = CancelScope()
                self._group.start_soon(self._ask, task.id, key, request, scope)

    async def _ask(self, id: str, key: str, request: Mapping[str, Any], scope: CancelScope) -> None:
        with scope:
            try:
                answer = {"result": await self._get_answer(id, request["method"], request["params"])}
            except MissingCapability:
                return  # another client of the same owner may have the capability
            except PeerError as error:
                if self._context.link.answers.is_finished:
                    return  # the client has left
                data = {} if error.data is None else {"data": error.data}
                answer = {"error": {"code": error.code, "message": error.message, **data}}
            except RpcError:
                return  # the request `tasks/result` is over
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
            if result is None:  # this was cancelled, so the client's task is no longer needed
                with CancelScope(shield=True), move_on_after(CANCEL_SECONDS), suppress(RpcError):
                    await self._request("tasks/cancel", task_params)
        return result

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        return (await self._context.forward_questions({_KEY: (method, params)}, None))[_KEY]
