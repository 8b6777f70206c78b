"""Calls to a stateless server: one connection for all clients, with the identity of the client in each request."""

import secrets
from dataclasses import replace
from typing import Any

from shared.client.tasks.following import InputRequests, TaskChannel, TaskState, follow, read_state
from shared.errors import InvalidParams
from shared.protocol.session.client_events import InputWanted, Notified
from shared.protocol.session.questions import MAX_ROUNDS
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from ..connection import BridgeConnection
from ..forwarding import GONE, caller_of, params_of, require_result
from ..tasks import reject_separate_request, supports_tasks, timeout_for
from .call_relay import CallRelay, newest_if_one_client


class StatelessCalls:
    """Makes the calls of all clients, with or without sessions."""

    def __init__(self, connection: BridgeConnection) -> None:
        self._connection = connection
        self._calls: list[CallRelay] = []
        connection.listen(self._on_server_message)

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result. If the server requests input, a client with a session is asked during the call;
        for a stateless client the round ends with the server's requests.

        Raises PeerError, ConnectionError and TimeoutError like `Client.exchange`, and the errors of
        `Context.forward_questions`, among them InputRequired with the server's requests.
        """
        params, round_ = params_of(context, params), context.call.round
        if isinstance(round_.carried, dict) and "task" in round_.carried:
            return await self._follow(context, round_.carried["task"], None)
        if round_.carried is not None and "state" not in round_.carried:
            raise InvalidParams(GONE)  # the server had sessions during the previous round
        inputs = _inputs(round_.answers, None if round_.carried is None else round_.carried["state"])
        for _ in range(MAX_ROUNDS):
            relay = CallRelay(context, self._connection.on_server_message)
            self._calls.append(relay)
            try:
                caller = caller_of(context, relay, tasks=supports_tasks(self._connection.description, stateless=True))
                result = await self._connection.client.exchange(
                    context.call.method.name, {**params, **inputs}, caller, timeout=None
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
        """Return the result of the server's task `id`. `first` is its state if it has just been created; None if an
        earlier round began it. For a client without tasks and sessions, each request for input ends a round, while
        the task goes on."""
        relay, answers = CallRelay(context, self._connection.on_server_message), context.call.round.answers

        async def send(method: str, params: dict[str, Any]) -> dict[str, Any]:
            caller = replace(caller_of(context, relay, tasks=True), wants_progress=False)
            return require_result(
                await self._connection.client.exchange(method, params, caller, timeout=timeout_for(method))
            )

        async def answer(requests: InputRequests) -> dict[str, dict[str, Any]]:
            return await _ask(context, requests, {"task": id})

        self._calls.append(relay)
        try:
            await relay.on_became_task()
            if first is None and answers:
                await send("tasks/update", {"taskId": id, "inputResponses": answers})
            return await follow(
                id, TaskChannel(send, reject_separate_request, on_task=relay.on_status, answer_inputs=answer), first
            )
        finally:
            self._calls.remove(relay)

    def _on_server_message(self, message: Notified | Gap) -> None:
        # Over stdio, nothing shows to which request a log message belongs.
        if isinstance(message, Notified) and message.method == "notifications/message":
            relay = newest_if_one_client(self._calls)
            if relay is not None:
                relay.on_server_message(message)


def _inputs(answers: dict[str, Any], state: str | None) -> dict[str, Any]:
    """Return the params that a round adds to those of the request: the client's answers, and the server's state."""
    inputs: dict[str, Any] = {"inputResponses": answers} if answers else {}
    return inputs if state is None else {**inputs, "requestState": state}


async def _ask(context: Context[Any], requests: InputRequests, carried: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the client's answers to the server's requests. Those for page visits get an id, which clients with
    sessions need."""
    if context.peer.has_handshake:
        requests = {
            key: (
                method,
                {"elicitationId": secrets.token_urlsafe(16), **params} if params.get("mode") == "url" else params,
            )
            for key, (method, params) in requests.items()
        }
    return await context.forward_questions(dict(requests), carried)
