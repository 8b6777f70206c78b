"""A line of the audit log: a JSON object in ASCII, since some other characters could control a terminal.

The line of a request contains the time, the client, the server, the method and the tool, prompt or resource; the
arguments or their digest; the outcome; and the duration and the sizes. Much of this is the same for many requests, so
the JSON is joined from cached pieces, in a third of the time of encoding a dict.
"""

import asyncio
import json
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ..errors import CallTimeout, InputRequired, RpcError, ToolError
from ..protocol.identity import Peer, Principal
from ..protocol.session.events import Outcome
from ..protocol.shaping import CachedResult
from ..protocol.wire.jsonrpc import Failure, Prepared, json_of
from ..tracing.trace_context import current
from .arrival import arrival
from .trace import Redaction, redact

_MAX_METHOD_LENGTH, _MAX_CLIENT_LENGTH, _MAX_NAME_LENGTH, _MAX_URI_LENGTH = 200, 200, 500, 2_000
"""Maximum numbers of characters of these values that are logged."""
_NOBODY = None, None, None
_Sender = tuple[str | None, str | None, str | None, str | None, str | int | None]
"""The key and name of the principal; the client id of its token; the network address; and the session: a digest of
its id, or its number."""
# `json.dumps` would create an encoder each time, which takes longer than the encoding itself.
_encode = json.JSONEncoder(separators=(",", ":"), default=str, allow_nan=False).encode


def line_of(fields: dict[str, Any]) -> str:
    """Return a line with the time and `fields`, which must not be empty."""
    return f'{{"time":"{_now()}",{_json(fields)[1:]}\n'


def call_line(
    request: str, outcome: Outcome | Failure | BaseException | None, seconds: float, raw: dict[str, Any]
) -> str:
    """Return the line of a request. `request` are its first fields as JSON, `raw` its params, `outcome` its result or
    error (None if it was cancelled), and `seconds` its duration."""
    if isinstance(outcome, Prepared):
        result_bytes = len(outcome.json)
    elif isinstance(outcome, CachedResult):
        result_bytes = outcome.size
    else:
        result_bytes = len(json_of(outcome)) if isinstance(outcome, dict) else 0
    return (
        f'{{"time":"{_now()}",{request},"outcome":{_outcome_json(outcome)},"ms":{seconds * 1_000:.3f},'
        f'"bytes_in":{len(json_of(raw))},"bytes_out":{result_bytes}}}\n'
    )


def request_fields(
    server: str, method: str, raw: dict[str, Any], peer: Peer | None, principal: Principal | None
) -> str:
    """Return the fields, as JSON without braces, for the client, the server, the method, and the tool, prompt or
    resource that the params `raw` name."""
    session = client = None
    if peer is not None:
        session = peer.session
        if peer.info is not None:
            client = str(peer.info.get("name") or "")[:_MAX_CLIENT_LENGTH]
    name, uri = raw.get("name"), raw.get("uri")
    # Truncate the values before the cached function gets them, since the cache keeps its arguments.
    fields: str = _common_fields(
        _sender(principal, session),
        client,
        server,
        method[:_MAX_METHOD_LENGTH],
        name[:_MAX_NAME_LENGTH] if isinstance(name, str) else None,
    )
    if isinstance(uri, str):
        fields += f',"uri":{_json(redact(uri[:_MAX_URI_LENGTH]))}'
    if (span := current.get()) is not None:
        fields += f',"trace":"{span.trace_id}"'
    return fields


def arguments_field(arguments: dict[str, Any]) -> tuple[str, bool]:
    """Return the field for the arguments without their secrets, as JSON, and True if it was too large."""
    hidden = {"taskId", "requestState"} & arguments.keys()
    values = {name: "[redacted]" if name in hidden else value for name, value in arguments.items()}
    redaction = Redaction()
    return f'"arguments":{_json(redaction.redact(values.get("arguments", values)))}', redaction.is_cut


def client_fields(principal: Principal | None) -> dict[str, Any]:
    """Return the fields for the client of the current HTTP request, as far as they are known."""
    fields = _client_fields(_sender(principal, None))
    if (span := current.get()) is not None:
        fields["trace"] = span.trace_id
    return fields


def _sender(principal: Principal | None, session: int | None) -> _Sender:
    http_request = arrival.get()
    key, name, program = _NOBODY if principal is None else (principal.key, principal.name, principal.client)
    if http_request is None:
        return key, name, program, None, session
    return key, name, program, http_request.address, http_request.session or session


@lru_cache(256)  # most requests come from few clients and call few tools
def _common_fields(sender: _Sender, client: str | None, server: str, method: str, name: str | None) -> str:
    fields = _client_fields(sender)
    if client:
        fields["client"] = redact(client)
    fields["server"] = server
    # An unknown method has a name that the client has chosen, so it may contain a secret.
    fields["method"] = redact(method)
    if name is not None:
        fields["prompt" if method.startswith("prompts/") else "tool"] = name
    return _json(fields)[1:-1]


def _client_fields(sender: _Sender) -> dict[str, Any]:
    key, name, program, address, session = sender
    session = f"#{session}" if isinstance(session, int) else session
    values = {"principal": key, "name": name or None, "token_client": program, "address": address, "session": session}
    return {field: value for field, value in values.items() if value is not None}


def _outcome_json(outcome: Outcome | Failure | BaseException | None) -> str:
    """Return the JSON string for the outcome. That of a JSON-RPC error is followed by a member `code`."""
    if isinstance(outcome, dict):
        return '"tool_error"' if outcome.get("isError") else '"ok"'
    match outcome:
        case None | asyncio.CancelledError():
            return '"cancelled"'
        case CallTimeout():
            return '"timeout"'
        case InputRequired():
            return '"input_required"'
        case ToolError():
            return '"tool_error"'
        case RpcError() | Failure():
            return f'{_json(outcome.kind or "error")},"code":{outcome.code}'
        case _:
            return '"error"'


def _now() -> str:
    """Return the current time in ISO 8601, to the millisecond."""
    return _format_time(time.time_ns() // 1_000_000)


@lru_cache(1)
def _format_time(milliseconds: int) -> str:
    return f"{_format_second(milliseconds // 1_000)}.{milliseconds % 1_000:03}Z"


@lru_cache(1)
def _format_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _json(value: Any) -> str:
    try:
        return _encode(value)
    except ValueError:  # a number such as NaN, which JSON does not have, although Python parses it
        value = json.loads(json.dumps(value, default=str), parse_constant=str)
        return json.dumps(value, separators=(",", ":"))
