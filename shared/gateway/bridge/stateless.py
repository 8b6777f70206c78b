"""A stateless server behind the bridge: one connection for all clients, each of whose requests says who makes it."""

from typing import Any

from ...client.relay import Caller
from ...errors import InvalidParams
from ...protocol.session.client_events import InputWanted
from ...protocol.session.questions import MAX_ROUNDS
from ...server.context import Context
from .base import Base
from .forwarding import CallRelay, identity_of, params_of

__all__ = ["StatelessPlace"]


class StatelessPlace:
    """Makes the requests of all clients, of either era."""

    def __init__(self, base: Base) -> None:
        self._base = base

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """The server's result. What it asks is asked of the client, which ends the call where that is stateless.

        Raises PeerError, ConnectionError and TimeoutError like `Client.exchange`, and what `Context.pass_on` does.
        """
        sent, call = params_of(context, params), context.call
        inputs = _brought(context)
        for _ in range(MAX_ROUNDS):
            relay = CallRelay(context)
            caller = Caller(relay, call.token is not None, identity_of(context))
            try:
                result = await self._base.client.exchange(call.method.name, {**sent, **inputs}, caller, timeout=None)
            finally:
                relay.close()
            if not isinstance(result, InputWanted):
                return result
            answers = await context.pass_on(result.requests, {"state": result.state})
            inputs = _inputs(answers, result.state)
        raise InvalidParams(f"this request was not settled in {MAX_ROUNDS} rounds")


def _brought(context: Context[Any]) -> dict[str, Any]:
    """What this round of a stateless client's has for the server: its answers, and the server's own state."""
    round_ = context.call.round
    return _inputs(round_.answers, None if round_.carried is None else round_.carried["state"])


def _inputs(answers: dict[str, Any], state: str | None) -> dict[str, Any]:
    inputs: dict[str, Any] = {"inputResponses": answers} if answers else {}
    return inputs if state is None else {**inputs, "requestState": state}
