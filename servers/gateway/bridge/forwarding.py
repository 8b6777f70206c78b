"""Translates between clients and servers with sessions and stateless ones. Requests lose the data of the client's
connection, the identity of the client gets a form that all servers understand, and results and errors get the form
that the client expects."""

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

from .connection import reason_of

GONE = "the call that this request continues is gone; start over without requestState"
"""The error for a round whose call has ended, or was made at a server that has been replaced since."""
_log = logging.getLogger("shared.gateway.bridge.forwarding")

_CONNECTION_META = frozenset({PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken"})
_TRACE_META = frozenset({TRACEPARENT, TRACESTATE})
_ROUND_PARAMS = ("inputResponses", "requestState", "task")
"""The params that are not forwarded as they are: those of one round, and `task`, which the bridge adds itself if the
server supports it."""
_IDENTIFYING_PARAMS = ("name", "uri", "cursor")
_NO_RESOURCE, _INVALID_PARAMS = -32002, -32602
_NOT_DECLARED, _INVALID_REQUEST = -32021, -32600


# To the server


def params_of(context: Context[Any], params: Any) -> dict[str, Any]:
    """Return the params to send: the params that the client sent, without the data of its connection and round, and
    with the name, URI and cursor of `params`, and the arguments of a tool. That is the validated model of the same
    params, in which extensions may have changed these."""
    raw, dropped = context.call.raw, _ROUND_PARAMS if context.call.method.multi_round else ()
    new_params = {key: value for key, value in raw.items() if key not in dropped and key != "_meta"}
    # The current trace context continues the client's, if tracing is on here.
    dropped_meta = _CONNECTION_META if current.get() is None else _CONNECTION_META | _TRACE_META
    meta = {key: value for key, value in raw.get("_meta", {}).items() if key not in dropped_meta}
    if meta:
        new_params["_meta"] = meta
    for key in _IDENTIFYING_PARAMS:
        if (value := getattr(params, key, None)) is not None:
            new_params[key] = value
    if context.call.method.name == "tools/call":
        new_params["arguments"] = params.arguments
    ref = getattr(params, "ref", None)
    if ref is not None:
        new_params["ref"] = {**new_params["ref"], **ref.to_wire()}
    return new_params


def identity_of(peer: Peer | None) -> ClientIdentity:
    """Return the identity of `peer` in a form that servers with sessions and stateless servers understand."""
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
    """Return the caller for the call of `context`. With `tasks`, support for tasks is declared to the server even if
    the client has none, because the bridge waits for the result of the task."""
    identity = identity_of(context.peer)
    if tasks:
        identity = replace(identity, extensions={TASKS: {}})
    return Caller(relay, context.call.token is not None, identity)


# To the client


def require_result(result: dict[str, Any] | InputWanted) -> dict[str, Any]:
    """Return `result`, from a server with sessions. Raises ConnectionError if it is a request for input, which only
    stateless servers send as a result."""
    if isinstance(result, InputWanted):
        raise ConnectionError("a server with sessions answered like a stateless server")
    return result


def drop_era_fields(result: dict[str, Any]) -> dict[str, Any]:
    """Return `result` without the fields that only stateless servers send, as handlers return it."""
    meta = result.get("_meta")
    if "resultType" not in result and not (isinstance(meta, dict) and SERVER_INFO in meta):
        return result
    if isinstance(meta, dict):
        meta = {key: value for key, value in meta.items() if key != SERVER_INFO}
    fields = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
    return {**fields, "_meta": meta} if meta else fields


def error_for(context: Context[Any], error: PeerError, name: str, *, stateless: bool) -> McpError:
    """Return the error for the client after the server called `name` has sent `error`. `stateless` is true if that
    server is stateless. A code above 0 is an HTTP status, which becomes part of the message."""
    if error.code > 0:
        return RpcError(f"the server {name} refused the request: {reason_of(error)} (HTTP status {error.code})")
    if context.peer.has_handshake is not stateless:
        return error
    # Stateless servers use other codes than servers with sessions for the same errors; the data shows which error.
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
    """Log `error`, which left a call without a usable answer from the server called `name`; return the error for the
    client."""
    _log.warning("a call to the server %s failed: %s", name, reason_of(error))
    if isinstance(error, Unreached):
        return RpcError(f"the server {name} could not be reached; it did not receive the request")
    failure = (
        f"sent an invalid answer ({reason_of(error)})"
        if isinstance(error, InvalidAnswer)
        else "was lost while it answered"
    )
    return RpcError(f"the server {name} {failure}; it is unknown whether it carried out the request")


def unopened_error(name: str, error: Exception | None) -> RpcError:
    """Return the error for the client if a session could not be opened because of `error`; None means that it was not
    opened in time."""
    reason = "it did not answer in time" if error is None else reason_of(error)
    return RpcError(f"the server {name} is not available: {reason}")
