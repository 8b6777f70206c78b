"""What is common to all ways over a bridge: a request without what concerns one connection only, the identity of who
makes it, and results and errors as the other era has them."""

import logging
from dataclasses import replace
from typing import Any

from shared.client.errors import Unreached
from shared.client.options import ClientOptions
from shared.client.relay import Caller, Relay
from shared.errors import (
    McpError,
    MissingCapability,
    PeerError,
    ResourceNotFound,
    RpcError,
)
from shared.protocol.identity import Peer
from shared.protocol.session.client import ClientIdentity
from shared.protocol.session.client_events import InputWanted
from shared.protocol.types.base import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO
from shared.protocol.types.tasks import TASKS
from shared.server.dispatch.context import Context
from shared.tracing.trace_context import TRACEPARENT, TRACESTATE, current

from .base import reason_of

GONE = "the call this request went on with is gone; start over without requestState"
"""What a round is told that comes too late, or to a server that is another one by now."""
_log = logging.getLogger("shared.gateway.bridge.forwarding")

_OURS = frozenset({PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken"})
_OF_TRACES = frozenset({TRACEPARENT, TRACESTATE})
_OF_A_ROUND = ("inputResponses", "requestState", "task")
"""What a request brings for one round; and `task`, of which it depends on the server whether it is asked for."""
_NAMES = ("name", "uri", "cursor")
_NO_RESOURCE, _INVALID_PARAMS = -32002, -32602
_NOT_DECLARED, _INVALID_REQUEST = -32021, -32600


# To the server


def params_of(context: Context[Any], params: Any) -> dict[str, Any]:
    """The params to send: those that the client has sent, without what it says of its own connection and round, and
    with the name, URI and cursor of `params`, a model, which may have been changed on the way here."""
    raw, dropped = context.call.raw, _OF_A_ROUND if context.call.method.multi_round else ()
    sent = {key: value for key, value in raw.items() if key not in dropped and key != "_meta"}
    # What is current names the trace of the client as well, and where it is known to us how far we are in it.
    dropped_meta = _OURS if current.get() is None else _OURS | _OF_TRACES
    meta = {key: value for key, value in raw.get("_meta", {}).items() if key not in dropped_meta}
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
    fitted = {name: value for name, value in peer.capabilities.items() if name not in ("tasks", "extensions")}
    if fitted.get("elicitation") == {}:
        fitted["elicitation"] = {"form": {}}
    extensions = peer.capabilities.get("extensions")
    if isinstance(extensions, dict) and (others := {key: extensions[key] for key in extensions if key != TASKS}):
        fitted["extensions"] = others
    return ClientIdentity(info, fitted, peer.log_level)


def caller_of(context: Context[Any], relay: Relay, *, tasks: bool = False) -> Caller:
    """On whose behalf the call of `context` is made. With `tasks` the server may make tasks of its calls, whether the
    client has any or not: the bridge follows them."""
    identity = identity_of(context.peer)
    if tasks:
        identity = replace(identity, extensions={TASKS: {}})
    return Caller(relay, context.call.token is not None, identity)


# To the client


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
    _log.warning("a call to the server %s failed: %s", name, reason_of(error))
    if isinstance(error, Unreached):
        return RpcError(f"the server {name} could not be reached; it did not get the request")
    return RpcError(f"the server {name} was lost while it answered; whether it did what was asked is not known")


def unopened_error(name: str, error: Exception | None) -> RpcError:
    """What the client is told where no session could be opened, because of `error`, or of no answer in time."""
    reason = "it did not answer in time" if error is None else reason_of(error)
    return RpcError(f"the server {name} is not available: {reason}")
