"""The headers that the protocol requires in a client's HTTP requests.

A stateless request repeats parts of its body in headers, which `routing_headers.py` checks on the server's side. In
the handshake era, every request after `initialize` has the session id and the version in headers (2025-11-25,
Streamable HTTP).
"""

from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ..session.envelope import claims_envelope
from ..types.base import PROTOCOL_VERSION
from ..types.tools import named_tools
from ..wire.jsonrpc import Failure, Message, Notification, Request, Response
from .header_annotations import find_annotation_error
from .routing_headers import METHOD_HEADER, NAME_HEADER, NAME_PARAMS, Parameter, parameter_headers
from .rules import EVENT_STREAM, JSON, SESSION_ID, VERSION_HEADER, is_session_id

MAX_TOOLS = 5_000
"""Maximum number of tools whose arguments with headers are remembered. Beyond it the oldest are forgotten; a call of
such a tool lists the tools again."""


def encode_value(text: str) -> str:
    """Return `text` as the value of a header. It is encoded as `=?base64?...?=` if a header can't contain it
    unchanged, or if it looks like an encoded value; otherwise it stays unchanged."""
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if text.isascii() and text.isprintable() and text == text.strip() and not looks_encoded:
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode()}?="


class ClientHeaders:
    """The headers of requests to one server. They depend on its earlier answers."""

    def __init__(self, *, has_dialect: bool = False) -> None:
        """With `has_dialect`, the server follows another description of the protocol (`wire/dialects`), and receives
        none of the specification's headers."""
        self._has_dialect = has_dialect
        self.session_id: str | None = None
        self._version: str | None = None
        self._parameters: dict[str, tuple[Parameter, ...]] = {}

    def post_headers(self, message: Request | Notification | Response | Failure) -> dict[str, str]:
        """Return the headers of a POST with `message`."""
        media_types = {"content-type": JSON, "accept": f"{JSON}, {EVENT_STREAM}"}
        if self._has_dialect:
            return media_types
        if isinstance(message, Request) and claims_envelope(message.params):
            return {**media_types, **self._routing_headers(message)}
        return {**media_types, **self.session_headers()}

    def session_headers(self) -> dict[str, str]:
        """Return the headers of every request of the handshake era: the session id and the version, if known."""
        session = {} if self.session_id is None else {SESSION_ID: self.session_id}
        return session if self._version is None else {**session, VERSION_HEADER: self._version}

    def learn(self, request: Request, answer: Message, session_id: str | None) -> None:
        """Store what later headers need from the answer to `request`. `session_id` is the session id in the headers
        of the HTTP response, or None."""
        if not isinstance(answer, Response):
            return
        if request.method == "initialize":
            version = answer.result.get("protocolVersion")
            self._version = version if isinstance(version, str) and is_session_id(version) else None
            self.session_id = session_id if session_id is not None and is_session_id(session_id) else None
        if request.method != "tools/list":
            return
        for name, tool in named_tools(answer.result):
            if isinstance(schema := tool.get("inputSchema"), dict):
                # Removed first, so that it is added at the end: the tools that were listed last are forgotten last.
                self._parameters.pop(name, None)
                if parameters := tuple(parameter_headers(schema)):
                    self._parameters[name] = parameters
        while len(self._parameters) > MAX_TOOLS:
            del self._parameters[next(iter(self._parameters))]

    def _routing_headers(self, request: Request) -> dict[str, str]:
        headers = {
            VERSION_HEADER: request.params["_meta"][PROTOCOL_VERSION],
            METHOD_HEADER: encode_value(request.method),
        }
        name = request.params.get(NAME_PARAMS.get(request.method, ""))
        if not isinstance(name, str):
            return headers
        headers[NAME_HEADER] = encode_value(name)
        if request.method == "tools/call":
            for parameter in self._parameters.get(name, ()):
                value = parameter.value_in(request.params.get("arguments"))
                if value is not None:
                    headers[parameter.header] = encode_value(_format_value(value))
        return headers


def usable_tools(answer: Response) -> tuple[Response, list[str]]:
    """Return the answer to `tools/list` without tools that can't be called over HTTP, and a message about each of
    these (2026-07-28, Streamable HTTP, Custom Headers)."""
    tools, messages, usable_entries = answer.result.get("tools"), list[str](), list[Any]()
    for tool in tools if isinstance(tools, list) else ():
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        fault = find_annotation_error(schema) if isinstance(schema, dict) else None
        if fault is None:
            usable_entries.append(tool)
        else:
            messages.append(f"the tool {str(tool.get('name'))[:100]!r} was skipped: {fault[:300]}")
    return (replace(answer, result={**answer.result, "tools": usable_entries}) if messages else answer), messages


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # Python refuses to convert an int of more than 4,300 digits to text, but not a Decimal.
    return str(Decimal(value)) if isinstance(value, int) else str(value)
