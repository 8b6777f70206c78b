"""Calls to a stateless server: one connection for all clients, with the identity of the client in each request."""

import secrets
from dataclasses import replace
from typing import Any

from shared.client.tasks.following import Questions, TaskChannel, TaskState, follow, read_state
from shared.errors import InvalidParams
from shared.protocol.session.client_events import InputWanted, Notified
from shared.protocol.session.questions import MAX_ROUNDS
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from ..base import Base
from ..forwarding import GONE, caller_of, params_of, require_result
from ..tasks import has_tasks, reject_question, time_limit_of
from .call_relay import CallRelay, newest_of_one_client


class StatelessCalls:
    """Makes the requests of all clients, of either era."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._calls: list[CallRelay] = []
        base.listen(self._on_server_message)

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result. Its questions go to the client, and end the call if that is stateless.

        Raises PeerError, ConnectionError and TimeoutError like `Client.exchange`, and the errors raised by
        `Context.forward_questions`.
        """
        sent, round_ = params_of(context, params), context.call.round
        if isinstance(round_.carried, dict) and "task" in round_.carried:
            return await self._follow(context, round_.carried["task"], None)
        if round_.carried is not None and "state" not in round_.carried:
            raise InvalidParams(GONE)  # the server had sessions during the previous round
        inputs = _inputs(round_.answers, None if round_.carried is None else round_.carried["state"])
        for _ in range(MAX_ROUNDS):
            relay = CallRelay(context, self._base.on_server_message)
            self._calls.append(relay)
            try:
                caller = caller_of(context, relay, tasks=has_tasks(self._base.description, stateless=True))
                result = await self._base.client.exchange(
                    context.call.method.name, {**sent, **inputs}, caller, timeout=None
                )
            finally:
                self._calls.remove(relay)
            if not isinstance(result, InputWanted):
                if result.get("resultType") != "task":
                    return result
                task = read_state("tools/call", result)
                return await self._follow(context, task.id, task)
            inputs = _inputs(await _ask(context, result.requests, {"state": result.state}), result.state)
        raise InvalidParams(f"this request was not completed within {MAX_ROUNDS} rounds")

    async def _follow(self, context: Context[Any], id: str, first: TaskState | None) -> dict[str, Any]:
        """Return the result of a task that runs at the server, known from an earlier round or from `first`. If the
        client has neither tasks nor sessions, each question ends a round, and the task continues."""
        relay, answers = CallRelay(context, self._base.on_server_message), context.call.round.answers

        async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            caller = replace(caller_of(context, relay, tasks=True), wants_progress=False)
            return require_result(
                await self._base.client.exchange(method, params, caller, timeout=time_limit_of(method))
            )

        async def answer(questions: Questions) -> dict[str, dict[str, Any]]:
            return await _ask(context, questions, {"task": id})

        self._calls.append(relay)
        try:
            await relay.became_task()
            if first is None and answers:
                await ask("tasks/update", {"taskId": id, "inputResponses": answers})
            return await follow(
                id, TaskChannel(ask, reject_question, on_task=relay.on_status, answer_all=answer), first
            )
        finally:
            self._calls.remove(relay)

    def _on_server_message(self, notice: Notified | Gap) -> None:
        # On a pipe a log message can't be attributed to a request.
        if isinstance(notice, Notified) and notice.method == "notifications/message":
            relay = newest_of_one_client(self._calls)
            if relay is not None:
                relay.on_server_message(notice)


def _inputs(answers: dict[str, Any], state: str | None) -> dict[str, Any]:
    """Return the fields of a round in addition to its request's params: the client's answers, and the server's own
    state."""
    inputs: dict[str, Any] = {"inputResponses": answers} if answers else {}
    return inputs if state is None else {**inputs, "requestState": state}


async def _ask(context: Context[Any], requests: Questions, carried: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the client's answers to the server's requests. Clients with sessions need an id for each page visit."""
    if context.peer.has_handshake:
        requests = {
            key: (
                method,
                {"elicitationId": secrets.token_urlsafe(16), **params} if params.get("mode") == "url" else params,
            )
            for key, (method, params) in requests.items()
        }
    return await context.forward_questions(dict(requests), carried)
