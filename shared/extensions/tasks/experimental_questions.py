"""What a task of 2025-11-25 asks: it is put to whoever waits for the result of the task, by `tasks/result`, and its
answer goes to the store (2025-11-25, Utilities, Tasks, Input Required Status).

Two who wait are asked both; the first answer counts, and the question is taken back from the other. Who goes away
unanswered leaves the question to the next. A client that runs what it is asked as a task may do so.
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
_AUGMENTED = {
    "elicitation/create": ("tasks", "requests", "elicitation", "create"),
    "sampling/createMessage": ("tasks", "requests", "sampling", "createMessage"),
}
"""What a client may declare that it runs as tasks."""
FAREWELL_SECONDS = 2.0


def related(id: str, meta: Any = None) -> dict[str, Any]:
    """The `_meta` of a message that belongs to the task `id`, with what else is in it."""
    return {**(meta if isinstance(meta, dict) else {}), RELATED_TASK: {"taskId": id}}


class Asking:
    """Puts what a task asks to the client of one `tasks/result`, in `group`, as long as that waits."""

    def __init__(self, tasks: Tasks, context: Context[Any], group: TaskGroup) -> None:
        self._tasks = tasks
        self._context = context
        self._group = group
        self._asked: dict[str, CancelScope] = {}

    def look(self, task: TaskRecord) -> None:
        """The task is so now: what is new of its questions is asked, and what is no longer open is taken back."""
        for key in [key for key in self._asked if key not in task.questions]:
            self._asked.pop(key).cancel()
        for key, request in task.questions.items():
            if key not in self._asked:
                scope = self._asked[key] = CancelScope()
                self._group.start_soon(self._put, task.id, key, request, scope)

    async def _put(self, id: str, key: str, request: Mapping[str, Any], scope: CancelScope) -> None:
        with scope:
            try:
                answer = {"result": await self._answer(id, request["method"], request["params"])}
            except MissingCapability:
                return  # another client of the owner may have it
            except PeerError as error:
                if self._context.link.answers.is_finished:
                    return  # nobody has answered: the client is gone
                data = {} if error.data is None else {"data": error.data}
                answer = {"error": {"code": error.code, "message": error.message, **data}}
            except RpcError:
                return  # the call is over
            await self._tasks.change(id, lambda task, now: states.answered(task, {key: answer}, now))

    async def _answer(self, id: str, method: str, params: Mapping[str, Any]) -> Any:
        meta = related(id, params.get("_meta"))
        peer, path = self._context.peer, _AUGMENTED.get(method)
        runs_as_task = peer.may_request_tasks and path is not None and peer.can(*path)
        as_task: dict[str, Any] = {"task": {}} if runs_as_task else {}
        answer = await self._request(method, {**params, **as_task, "_meta": meta})
        theirs = answer.get("task") if as_task and isinstance(answer, dict) else None
        if not isinstance(theirs, dict):
            return answer
        its_id, result = {"taskId": theirs.get("taskId")}, None
        try:
            result = await self._request("tasks/result", its_id)
        finally:
            if result is None:  # it is not wanted any more
                with CancelScope(shield=True), move_on_after(FAREWELL_SECONDS), suppress(RpcError):
                    await self._request("tasks/cancel", its_id)
        return result

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        return (await self._context.pass_on({_KEY: (method, params)}, None))[_KEY]
