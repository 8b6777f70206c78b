"""The headers of a client's HTTP requests that the protocol determines.

Stateless requests repeat parts of their body in headers (`routing_headers.py` checks them on the server's side). In
the handshake era every request after `initialize` names the session and the version (2025-11-25, Streamable HTTP).
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
from .routing_headers import METHOD_HEADER, NAME_HEADER, NAMED_BY, Parameter, parameter_headers
from .rules import EVENT_STREAM, JSON, SESSION_ID, VERSION_HEADER, is_session_id

MAX_TOOLS = 5_000
"""Maximum number of tools whose marked arguments are remembered. Beyond it, the oldest are dropped; a call lists them
again."""


def encode_value(text: str) -> str:
    """Return `text` as a header value: unchanged, or marked and in base64 if a header can't carry it unchanged, or if
    it looks like a marked value."""
    looks_marked = text.startswith("=?base64?") and text.endswith("?=")
    if text.isascii() and text.isprintable() and text == text.strip() and not looks_marked:
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode()}?="


class ClientHeaders:
    """The values from one server's answers that later requests must repeat."""

    def __init__(self, *, has_dialect: bool = False) -> None:
        """A server with a dialect receives none of the specification's headers."""
        self._has_dialect = has_dialect
        self.session_id: str | None = None
        self._version: str | None = None
        self._parameters: dict[str, tuple[Parameter, ...]] = {}

    def post_headers(self, message: Request | Notification | Response | Failure) -> dict[str, str]:
        """Return the headers of a POST with `message`."""
        types = {"content-type": JSON, "accept": f"{JSON}, {EVENT_STREAM}"}
        if self._has_dialect:
            return types
        if isinstance(message, Request) and claims_envelope(message.params):
            return {**types, **self._routing_headers(message)}
        return {**types, **self.session_headers()}

    def session_headers(self) -> dict[str, str]:
        """Return the headers of every request of the handshake era."""
        session = {} if self.session_id is None else {SESSION_ID: self.session_id}
        return session if self._version is None else {**session, VERSION_HEADER: self._version}

    def learn(self, request: Request, answer: Message, session_id: str | None) -> None:
        """Store the relevant values in the answer to `request`, and the session id in its HTTP response."""
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
                # The entry moves to the end, so that the most recently listed tools are forgotten last.
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
        name = request.params.get(NAMED_BY.get(request.method, ""))
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
    """Return the answer to `tools/list` without the tools that can't be called over HTTP, and the reason for each of
    them (2026-07-28, Streamable HTTP, Custom Headers)."""
    tools, faults, usable = answer.result.get("tools"), list[str](), list[Any]()
    for tool in tools if isinstance(tools, list) else ():
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        fault = find_annotation_error(schema) if isinstance(schema, dict) else None
        if fault is None:
            usable.append(tool)
        else:
            faults.append(f"the tool {str(tool.get('name'))[:100]!r} was skipped: {fault[:300]}")
    return (replace(answer, result={**answer.result, "tools": usable}) if faults else answer), faults


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # Python does not convert integers of more than 4,300 digits to text, but does so for decimals.
    return str(Decimal(value)) if isinstance(value, int) else str(value)
