"""What is common to all ways over a bridge: a request without what concerns one connection only, the identity of who
makes it, what the server says about it, and results and errors as the other era has them."""

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from ...client.errors import Unreached
from ...client.options import ClientOptions
from ...client.relay import Caller, Relay
from ...errors import (
    InvalidParams,
    McpError,
    MethodNotFound,
    MissingCapability,
    PeerError,
    ResourceNotFound,
    RpcError,
)
from ...protocol.identity import LOG_LEVELS, Peer
from ...protocol.session.client import ClientIdentity
from ...protocol.session.client_events import Asked, InputWanted, Notified
from ...protocol.session.questions import question_of
from ...protocol.types.base import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO
from ...protocol.wire.jsonrpc import Failure, Gap
from ...server.connection import Connection
from ...server.context import Context
from .base import reason_of

__all__ = [
    "GONE",
    "CallRelay",
    "as_newest",
    "ask_apart",
    "caller_of",
    "error_for",
    "identity_of",
    "lost_error",
    "newest_of_one",
    "params_of",
    "report",
    "settled",
    "tell_log",
    "unopened_error",
]

GONE = "the call this request went on with is gone; start over without requestState"
"""What a round is told that comes too late, or to a server that is another one by now."""
_log = logging.getLogger(__name__)

_OURS = frozenset({PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken"})
_OF_A_ROUND = ("inputResponses", "requestState", "task")
"""What a request brings for one round; and `task`, which asks for what a bridge does not declare and is ignored then
(2025-11-25, Tasks, Capability Negotiation)."""
_NAMES = ("name", "uri", "cursor")
_NO_RESOURCE, _INVALID_PARAMS = -32002, -32602
_NOT_DECLARED, _INVALID_REQUEST = -32021, -32600
_TASKS = "io.modelcontextprotocol/tasks"
_APART = frozenset(
    {
        *(f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")),
        *("notifications/resources/updated", "notifications/elicitation/complete"),
    }
)
"""What belongs to no call, on whatever stream it comes: servers of the handshake era choose any."""


# To the server


def params_of(context: Context[Any], params: Any) -> dict[str, Any]:
    """The params to send: those that the client has sent, without what it says of its own connection and round, and
    with the name, URI and cursor of `params`, a model, which may have been changed on the way here."""
    raw, dropped = context.call.raw, _OF_A_ROUND if context.call.method.multi_round else ()
    sent = {key: value for key, value in raw.items() if key not in dropped and key != "_meta"}
    meta = {key: value for key, value in raw.get("_meta", {}).items() if key not in _OURS}
    if meta:
        sent["_meta"] = meta
    for key in _NAMES:
        if (value := getattr(params, key, None)) is not None:
            sent[key] = value
    ref = getattr(params, "ref", None)
    if ref is not None:
        sent["ref"] = {**sent["ref"], **ref.to_wire()}
    return sent


def identity_of(peer: Peer | None) -> ClientIdentity:
    """Who `peer` is, in words that servers of both eras understand."""
    if peer is None:
        return ClientOptions().identity()
    info = ClientOptions().identity().info if peer.info is None else peer.info
    return ClientIdentity(info, _fitted(peer.capabilities), peer.log_level)


def caller_of(context: Context[Any], relay: Relay) -> Caller:
    """On whose behalf the call of `context` is made."""
    return Caller(relay, context.call.token is not None, identity_of(context.peer))


def _fitted(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What a client declares, as far as a bridge passes it on. An empty `elicitation` means forms."""
    fitted = {name: value for name, value in capabilities.items() if name not in ("tasks", "extensions")}
    if fitted.get("elicitation") == {}:
        fitted["elicitation"] = {"form": {}}
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict) and (others := {key: extensions[key] for key in extensions if key != _TASKS}):
        fitted["extensions"] = others
    return fitted


# To the client


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
                return await _asked(asked, partial(self.context.pass_on, carried=None))
            finally:
                self._scopes.discard(scope)
        raise RpcError("the call that this question belongs to is over")

    def heard(self, notice: Notified | Gap) -> None:
        """Tells the client what concerns its call: progress, and what is logged where it wants that level. A client
        that is too slow to take it is spared it."""
        if isinstance(notice, Gap) or notice.method in _APART:
            self._apart(notice)
            return
        if self.context.call.is_over or self.context.link.is_behind:
            return
        match notice.method:
            case "notifications/progress":
                report(self.context, notice.params)
            case "notifications/message":
                tell_log(self.context, notice.params)
            case _:
                self.context.link.session.notify(self.context.call, notice.method, notice.params)
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

    return await _asked(asked, ask)


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


def report(context: Context[Any], params: Mapping[str, Any]) -> None:
    """Tells the client how far its call is, by the token it gave; what is no progress is dropped."""
    progress, total, message = _number(params.get("progress")), _number(params.get("total")), params.get("message")
    if progress is not None:
        said = message if isinstance(message, str) else None
        context.link.session.progress(context.call, progress, total, said, params.get("_meta"))


def tell_log(context: Context[Any], params: Mapping[str, Any]) -> None:
    """Tells the client what was logged about its call, if it wants that level."""
    level: Any = params.get("level")
    if level in LOG_LEVELS and context.wants_log(level):
        context.link.session.notify(context.call, "notifications/message", dict(params))


def _number(value: object) -> float | None:
    """What can be counted with; JSON has integers which no float holds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > sys.float_info.max:
        return None
    return value


def settled(result: dict[str, Any] | InputWanted) -> dict[str, Any]:
    """The result of a server with sessions. Raises ConnectionError where it asks as only one without them does."""
    if isinstance(result, InputWanted):
        raise ConnectionError("a server with sessions answered like one without")
    return result


def as_newest(result: dict[str, Any]) -> dict[str, Any]:
    """A result of the server's as our own handlers give theirs: what one era alone says around it is left out."""
    meta = result.get("_meta")
    if "resultType" not in result and not (isinstance(meta, dict) and SERVER_INFO in meta):
        return result
    if isinstance(meta, dict):
        meta = {key: value for key, value in meta.items() if key != SERVER_INFO}
    kept = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
    return {**kept, "_meta": meta} if meta else kept


def error_for(context: Context[Any], error: PeerError, name: str, *, stateless: bool) -> McpError:
    """What the client is told where the server, which is called `name` and is `stateless` or not, answers with
    `error`. An HTTP status becomes words."""
    if error.code > 0:
        return RpcError(f"the server {name} refuses: {reason_of(error)} (HTTP status {error.code})")
    if context.peer.lasts is not stateless:
        return error
    # The eras differ, and with them the codes of what the data say.
    data = error.data if isinstance(error.data, dict) else {}
    uri, required = data.get("uri"), data.get("requiredCapabilities")
    if error.code in (_NO_RESOURCE, _INVALID_PARAMS) and isinstance(uri, str):
        return ResourceNotFound(uri, error.message)
    if error.code == _NO_RESOURCE:
        return ResourceNotFound(str(context.call.raw.get("uri", "")), error.message)
    if error.code in (_NOT_DECLARED, _INVALID_REQUEST) and isinstance(required, dict):
        return MissingCapability(required)
    return error


def lost_error(name: str, error: Exception) -> RpcError:
    """What the client is told where no answer came that can be used. What is known of it goes to the log."""
    _log.warning("a call of the server %s failed: %s", name, reason_of(error))
    if isinstance(error, Unreached):
        return RpcError(f"the server {name} could not be reached; it did not get the request")
    return RpcError(f"the server {name} was lost while it answered; whether it did what was asked is not known")


def unopened_error(name: str, error: Exception | None) -> RpcError:
    """What the client is told where no session could be opened, because of `error`, or of no answer in time."""
    reason = "it did not answer in time" if error is None else reason_of(error)
    return RpcError(f"the server {name} is not available: {reason}")
