"""`CallRelay`: the server's notifications and requests during one call of a client."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio

from shared.client.calls.requests import read_progress
from shared.client.tasks.following import TaskState
from shared.errors import InvalidParams, MethodNotFound, MissingCapability, PeerError, RpcError
from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.questions import read_question
from shared.protocol.wire.jsonrpc import Failure, Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context

from ..repairs import repair_log
from ..tasks import TASK_NOTIFICATIONS, drop_related_task, drop_task

_SESSION_NOTIFICATIONS = frozenset(
    {
        *(f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")),
        *("notifications/resources/updated", "notifications/elicitation/complete"),
    }
)
"""Notifications that belong to no call: a server with sessions may send them on the stream of any call."""


class CallRelay:
    """Forwards the server's notifications and requests during one call to the client that made it."""

    def __init__(self, context: Context[Any], session_messages: Callable[[Notified | Gap], None]) -> None:
        """`session_messages` is called with messages that arrive on the stream of the call, but belong to no call."""
        self.context = context
        self._session_messages = session_messages
        self._scopes: set[anyio.CancelScope] = set()

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the client's answer. A request that arrived on the stream of the call is cancelled when the call
        ends. Raises RpcError if the client refuses or can't be asked, or if its call has ended."""
        with anyio.CancelScope() as scope:
            if request.stream is not None:
                self._scopes.add(scope)
            try:
                return await _answer_with(drop_task(request), partial(self.context.forward_questions, carried=None))
            finally:
                self._scopes.discard(scope)
        raise RpcError("the call that this question belongs to has ended")

    async def on_became_task(self) -> None:
        """Called when the server has turned the call into a task. Turns the client's call into a task of the bridge,
        if the client supports tasks."""
        if self.context.call.task is not None:
            await self.context.call.task.detach()

    def on_status(self, task: TaskState) -> None:
        """Copy the status message of the server's task to the bridge's task."""
        if task.message is not None and self.context.call.task is not None:
            self.context.call.task.set_message(task.message)

    @property
    def is_detached(self) -> bool:
        """True if the client's call has become a task of the bridge."""
        task = self.context.call.task
        return task is not None and task.is_detached

    def on_server_message(self, message: Notified | Gap) -> None:
        """Forward a notification about the call to the client: its progress, log messages of the level that the
        client wants, and any other. A client that reads too slowly misses them."""
        if isinstance(message, Gap) or message.method in _SESSION_NOTIFICATIONS:
            self._session_messages(message)
            return
        params = drop_related_task(message.params)
        if self.is_detached:
            task = self.context.call.task
            if (
                message.method == "notifications/progress"
                and task is not None
                and (progress := read_progress(params))
            ):
                task.note(*progress)
            return
        if self.context.call.is_over or self.context.link.is_behind or message.method.startswith(TASK_NOTIFICATIONS):
            return
        match message.method:
            case "notifications/progress":
                if (progress := read_progress(params)) is not None:
                    self.context.link.session.progress(self.context.call, *progress, params.get("_meta"))
            case "notifications/message":
                level: Any = params.get("level")
                if level in LOG_LEVELS and self.context.wants_log(level):
                    self.context.link.session.notify(self.context.call, "notifications/message", repair_log(params))
            case _:
                self.context.link.session.notify(self.context.call, message.method, params)
        self.context.link.send_soon()

    def close(self) -> None:
        """Cancel the requests to the client when the call is over."""
        for scope in tuple(self._scopes):
            scope.cancel()


def newest_if_one_client(calls: Sequence[CallRelay]) -> CallRelay | None:
    """Return the most recent of `calls` if all came over one connection, so that any message of the server may be
    sent over it; else None."""
    return calls[-1] if len({relay.context.link for relay in calls}) == 1 else None


async def ask_standalone(link: Connection, request: ServerRequest) -> dict[str, Any]:
    """Send the client of `link` a request from the server that belongs to no call, and return the client's answer.
    Raises RpcError like `CallRelay.answer`."""

    async def send(requests: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            answer = await link.ask_standalone(read_question(*request))
            if isinstance(answer, Failure):
                raise PeerError(answer.message, code=answer.code, data=answer.data)
            answers[key] = answer.result
        return answers

    return await _answer_with(drop_task(request), send)


async def _answer_with(
    request: ServerRequest, send: Callable[[dict[str, tuple[str, dict[str, Any]]]], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = (await send({"question": (request.method, request.params)}))["question"]
        return answer
    except MissingCapability as error:
        raise MethodNotFound(f"the client did not declare support for this: {request.method}") from error
    except (AttributeError, KeyError, TypeError, ValueError):
        # A third-party server may send a request of any form; a malformed one must not end the session.
        raise InvalidParams(f"the params of {request.method} are invalid") from None
