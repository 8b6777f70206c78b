"""Translates requests, results and errors between the eras, for all kinds of calls over a bridge: requests without
the data of one connection, the identity of the caller, and results and errors in the form of the other era."""

import logging
from dataclasses import replace
from typing import Any

from shared.client.errors import InvalidAnswer, Unreached
from shared.client.options import ClientOptions
from shared.client.relay import Caller, Relay
from shared.errors import McpError, MissingCapability, PeerError, ResourceNotFound, RpcError
from shared.protocol.identity import Peer
from shared.protocol.session.client_events import InputWanted
from shared.protocol.session.descriptions import ClientIdentity
from shared.protocol.types.base import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO
from shared.protocol.types.tasks import TASKS
from shared.server.dispatch.context import Context
from shared.tracing.trace_context import TRACEPARENT, TRACESTATE, current

from .base import reason_of

GONE = "the call that this request continues is gone; start over without requestState"
"""The error for a round that comes too late, or after the server has been replaced by another."""
_log = logging.getLogger("shared.gateway.bridge.forwarding")

_CONNECTION_META = frozenset({PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken"})
_TRACE_META = frozenset({TRACEPARENT, TRACESTATE})
_ROUND_PARAMS = ("inputResponses", "requestState", "task")
"""The params that apply to one round; also `task`, since the server determines whether a task is requested."""
_NAMES = ("name", "uri", "cursor")
_NO_RESOURCE, _INVALID_PARAMS = -32002, -32602
_NOT_DECLARED, _INVALID_REQUEST = -32021, -32600


# To the server


def params_of(context: Context[Any], params: Any) -> dict[str, Any]:
    """Return the params to send: the client's params without data of its own connection and round, and with the name,
    URI and cursor from `params`, a model, which may have been changed on the way here."""
    raw, dropped = context.call.raw, _ROUND_PARAMS if context.call.method.multi_round else ()
    sent = {key: value for key, value in raw.items() if key not in dropped and key != "_meta"}
    # The current trace context continues the client's, if tracing is on here.
    dropped_meta = _CONNECTION_META if current.get() is None else _CONNECTION_META | _TRACE_META
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
    """Return the identity of `peer` in a form that servers of both eras understand."""
    if peer is None:
        return ClientOptions().identity()
    info = ClientOptions().identity().info if peer.info is None else peer.info
    capabilities = {name: value for name, value in peer.capabilities.items() if name not in ("tasks", "extensions")}
    if capabilities.get("elicitation") == {}:
        capabilities["elicitation"] = {"form": {}}
    extensions = peer.capabilities.get("extensions")
    if isinstance(extensions, dict) and (others := {key: extensions[key] for key in extensions if key != TASKS}):
        capabilities["extensions"] = others
    return ClientIdentity(info, capabilities, peer.log_level)


def caller_of(context: Context[Any], relay: Relay, *, tasks: bool = False) -> Caller:
    """Return the caller for the call of `context`. With `tasks` the server may turn its calls into tasks, whether the
    client supports tasks or not: the bridge follows them."""
    identity = identity_of(context.peer)
    if tasks:
        identity = replace(identity, extensions={TASKS: {}})
    return Caller(relay, context.call.token is not None, identity)


# To the client


def require_result(result: dict[str, Any] | InputWanted) -> dict[str, Any]:
    """Return the result of a server with sessions. Raises ConnectionError if it requests input as only stateless
    servers do."""
    if isinstance(result, InputWanted):
        raise ConnectionError("a server with sessions answered like a stateless server")
    return result


def drop_era_fields(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result from the server in the form that the bundle's handlers return, without fields that only one era
    has."""
    meta = result.get("_meta")
    if "resultType" not in result and not (isinstance(meta, dict) and SERVER_INFO in meta):
        return result
    if isinstance(meta, dict):
        meta = {key: value for key, value in meta.items() if key != SERVER_INFO}
    fields = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
    return {**fields, "_meta": meta} if meta else fields


def error_for(context: Context[Any], error: PeerError, name: str, *, stateless: bool) -> McpError:
    """Return the client's error for `error` of the server called `name`, which is `stateless` or not. An HTTP status
    is described in text."""
    if error.code > 0:
        return RpcError(f"the server {name} refused the request: {reason_of(error)} (HTTP status {error.code})")
    if context.peer.has_handshake is not stateless:
        return error
    # The eras use different codes for the same data.
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
    """Return the client's error for a call without a usable answer. The details are logged."""
    _log.warning("a call to the server %s failed: %s", name, reason_of(error))
    if isinstance(error, Unreached):
        return RpcError(f"the server {name} could not be reached; it did not receive the request")
    what = (
        f"sent an invalid answer ({reason_of(error)})"
        if isinstance(error, InvalidAnswer)
        else "was lost while it answered"
    )
    return RpcError(f"the server {name} {what}; it is unknown whether it carried out the request")


def unopened_error(name: str, error: Exception | None) -> RpcError:
    """Return the client's error for a session that could not be opened, because of `error` or a timeout."""
    reason = "it did not answer in time" if error is None else reason_of(error)
    return RpcError(f"the server {name} is not available: {reason}")
