"""`CallRelay`: what a server says about one call of a client's, and what it asks of that client."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from shared.client.tasks.following import TaskState
from shared.errors import (
    InvalidParams,
    MethodNotFound,
    MissingCapability,
    PeerError,
    RpcError,
)
from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Asked, Notified
from shared.protocol.session.questions import question_of
from shared.protocol.wire.jsonrpc import Failure, Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context

from ..tasks import OF_TASKS, unrelated, without_task

_APART = frozenset(
    {
        *(f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")),
        *("notifications/resources/updated", "notifications/elicitation/complete"),
    }
)
"""What belongs to no call, on whatever stream it comes: servers of the handshake era choose any."""


class CallRelay:
    """Takes what the server says about one call of a client's, and asks that client what the server asks."""

    def __init__(self, context: Context[Any], apart: Callable[[Notified | Gap], None]) -> None:
        """`apart` takes what came on the stream of the call and belongs to none."""
        self.context = context
        self._apart = apart
        self._scopes: set[anyio.CancelScope] = set()

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client answers. A question that came on the stream of the call is taken back when that is over.
        Raises RpcError where the client refuses, can't be asked, or its call is over."""
        with anyio.CancelScope() as scope:
            if asked.stream is not None:
                self._scopes.add(scope)
            try:
                return await _asked(without_task(asked), partial(self.context.pass_on, carried=None))
            finally:
                self._scopes.discard(scope)
        raise RpcError("the call that this question belongs to is over")

    async def became_task(self) -> None:
        """The server has made a task of the call: so do we, where the client has tasks."""
        if self.context.call.task is not None:
            await self.context.call.task.detach()

    def said(self, task: TaskState) -> None:
        """Has our task say how that of the server is."""
        if task.message is not None and self.context.call.task is not None:
            self.context.call.task.say(task.message)

    @property
    def is_detached(self) -> bool:
        """Whether the call is a task of ours."""
        task = self.context.call.task
        return task is not None and task.is_detached

    def heard(self, notice: Notified | Gap) -> None:
        """Tells the client what concerns its call: progress, and what is logged where it wants that level. A client
        that is too slow to take it is spared it."""
        if isinstance(notice, Gap) or notice.method in _APART:
            self._apart(notice)
            return
        params = unrelated(notice.params)
        if self.is_detached:
            task = self.context.call.task
            if notice.method == "notifications/progress" and task is not None and (said := _progress_in(params)):
                task.note(*said)
            return
        if self.context.call.is_over or self.context.link.is_behind or notice.method.startswith(OF_TASKS):
            return
        match notice.method:
            case "notifications/progress":
                if (said := _progress_in(params)) is not None:
                    self.context.link.session.progress(self.context.call, *said, params.get("_meta"))
            case "notifications/message":
                level: Any = params.get("level")
                if level in LOG_LEVELS and self.context.wants_log(level):
                    self.context.link.session.notify(self.context.call, "notifications/message", dict(params))
            case _:
                self.context.link.session.notify(self.context.call, notice.method, params)
        self.context.link.soon()

    def close(self) -> None:
        """The call is over: what the client is asked for it is taken back."""
        for scope in tuple(self._scopes):
            scope.cancel()


def newest_of_one(calls: Sequence[CallRelay]) -> CallRelay | None:
    """The call that began last, where all that are under way came on one connection: what the server says of any of
    them may then be told there."""
    return calls[-1] if len({relay.context.link for relay in calls}) == 1 else None


async def ask_apart(link: Connection, asked: Asked) -> dict[str, Any]:
    """What the client of `link` answers to a question that belongs to none of its calls. Raises RpcError like
    `CallRelay.answer`."""

    async def ask(requests: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            answer = await link.ask_apart(question_of(*request))
            if isinstance(answer, Failure):
                raise PeerError(answer.message, code=answer.code, data=answer.data)
            answers[key] = answer.result
        return answers

    return await _asked(without_task(asked), ask)


async def _asked(
    asked: Asked, ask: Callable[[dict[str, tuple[str, dict[str, Any]]]], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = (await ask({"question": (asked.method, asked.params)}))["question"]
        return answer
    except MissingCapability as error:
        raise MethodNotFound(f"the client did not declare that it can do this: {asked.method}") from error
    except (AttributeError, KeyError, TypeError, ValueError):
        # What is foreign may have any shape, and must not end the session with its server.
        raise InvalidParams(f"{asked.method} is asked in a form that no client can be shown") from None


def _progress_in(params: Mapping[str, Any]) -> tuple[float, float | None, str | None] | None:
    progress, total, message = _number(params.get("progress")), _number(params.get("total")), params.get("message")
    return None if progress is None else (progress, total, message if isinstance(message, str) else None)


def _number(value: object) -> float | None:
    """What can be counted with; JSON has integers which no float holds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > sys.float_info.max:
        return None
    return value
