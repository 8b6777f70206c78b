"""The headers with which a stateless HTTP request repeats parts of its body, so that a proxy can route it without
reading the body.

`MCP-Protocol-Version` repeats the version in `_meta`, `Mcp-Method` the method, `Mcp-Name` the name or URI in the
request, and `Mcp-Param-*` the arguments that a tool's schema annotates with `x-mcp-header`. A difference is refused
with -32020, since a proxy may have decided by the header (2026-07-28, Streamable HTTP, Request Headers).

The order of the checks decides which fault is reported first: repeated headers, the envelope, the version header, the
method, the name, whether the version is served, the parameters. The session checks the rest: unknown methods and bad
params.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...errors import InvalidRequest, RpcError
from ..session.envelope import check_envelope, stateless_version
from ..types.base import PROTOCOL_VERSION
from ..wire.jsonrpc import Batch, Failure, Malformed, Message, Request, Response, failure
from .rules import REPEATED, VERSION_HEADER, Headers, Refusal, stateless_status

ParametersOf = Callable[[str], Iterable["Parameter"]]
"""Returns the arguments of the tool with that name that headers repeat; empty for an unknown tool."""

METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
PARAM_PREFIX = "mcp-param-"

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""The param that `Mcp-Name` repeats. Other methods have none, and a stray header is ignored."""

OPTIONAL_NAMES = ("tasks/get", "tasks/update", "tasks/cancel")
"""Methods of an extension whose specification requires clients to send `Mcp-Name`, although the core does not mention
them. Some clients omit it. Since a missing header can't mislead a proxy, only a difference is refused."""

ANNOTATION = "x-mcp-header"
"""The schema keyword with the name of the header that repeats an argument."""
ANNOTATED_TYPES = ("string", "integer", "boolean")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BASE64 = "=?base64?"
_SENTINEL = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


class HeaderMismatch(RpcError):
    """Raised if a header differs from the body (2026-07-28, -32020)."""

    code = -32020


def check_stateless_body(message: Message) -> Refusal | None:
    """Return a 400 for a body that is not one request or one notification."""
    match message:
        case Malformed(answer):
            return Refusal(400, answer)
        case Batch() | Response() | Failure():
            return Refusal(400, failure(None, InvalidRequest("the body must be one request or one notification")))
    return None


def check_stateless(headers: Headers, request: Request, parameters_of: ParametersOf) -> Refusal | None:
    """Return the first error in a stateless request, in the order above, with its HTTP status."""
    try:
        if headers.repeated:
            raise HeaderMismatch(REPEATED)
        # The envelope is checked first, since the headers are compared with it.
        meta = check_envelope(request.params)
        # A proxy has routed by the header, so a difference is reported before an unknown version.
        if headers.get(VERSION_HEADER) != meta[PROTOCOL_VERSION]:
            raise HeaderMismatch("the MCP-Protocol-Version header must equal the version in params._meta")
        if _decode_header(headers, METHOD_HEADER) != request.method:
            raise HeaderMismatch("the Mcp-Method header must equal the method")
        named_by = NAMED_BY.get(request.method)
        name = request.params.get(named_by) if named_by is not None else None
        # A name that is not a string can't be repeated; the params' own check refuses it.
        may_omit = request.method in OPTIONAL_NAMES and headers.get(NAME_HEADER) is None
        if isinstance(name, str) and not may_omit and _decode_header(headers, NAME_HEADER) != name:
            raise HeaderMismatch(f"the Mcp-Name header must equal params.{named_by}")
        # If header and body agree on an unknown version, the request is valid, and the answer is -32022.
        stateless_version(request.params["_meta"][PROTOCOL_VERSION])
        if request.method == "tools/call":
            _check_parameters(headers, request.params, parameters_of)
    except RpcError as error:
        return Refusal(stateless_status(error), failure(request.id, error))
    return None


def _decode_header(headers: Headers, name: str) -> str | None:
    value = headers.get(name)
    return None if value is None else decode_value(value)


def decode_value(value: str) -> str | None:
    """Return the text of a header value. `=?base64?…?=` contains UTF-8 in base64, for text that a header can't carry;
    anything else is the text itself. None if the part between the markers is not canonical base64 of UTF-8."""
    # Nearly all values are plain text, which `startswith` detects faster than a regular expression.
    match = _SENTINEL.fullmatch(value) if value.startswith(_BASE64) else None
    if match is None:
        return value
    try:
        encoded = match[1].encode("ascii")
        data = b64decode(encoded, validate=True)
        # Only the canonical form is accepted, since a proxy that compares bytes would let other forms pass.
        return data.decode("utf-8") if b64encode(data) == encoded else None
    except ValueError:
        return None


# Parameters


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument that a header repeats."""

    header: str
    path: tuple[str, ...]

    def value_in(self, arguments: Any) -> Any:
        """Return the argument's value in the `arguments` of a call; None if it is missing."""
        for name in self.path:
            # The values on the path may have any type; the tool reports a wrong type.
            arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
        return arguments


def parameter_headers(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Parameter]:
    """Iterate over the arguments that `schema` annotates with a usable `x-mcp-header`: strings, integers and booleans
    that can be reached through `properties` only. `path` leads to the schema."""
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(field, Mapping):
            continue
        inner_path, annotation = (*path, name), field.get(ANNOTATION)
        if isinstance(annotation, str) and TOKEN.fullmatch(annotation) and field.get("type") in ANNOTATED_TYPES:
            yield Parameter(PARAM_PREFIX + annotation.lower(), inner_path)
        yield from parameter_headers(field, inner_path)


def _check_parameters(headers: Headers, params: Mapping[str, Any], parameters_of: ParametersOf) -> None:
    name, arguments = params.get("name"), params.get("arguments", {})
    for parameter in parameters_of(name) if isinstance(name, str) else ():
        value = parameter.value_in(arguments)
        sent = headers.get(parameter.header)
        if value is None and sent is None:
            continue
        decoded = None if sent is None else decode_value(sent)
        compare = _COMPARE.get(type(value))
        # A value of any other type breaks the tool's schema, which the tool reports.
        is_same = decoded is not None and (compare is None or compare(decoded, value))
        if value is None or not is_same:
            raise HeaderMismatch(f"the header {parameter.header} must equal the argument {'.'.join(parameter.path)}")


def _is_same_number(text: str, value: float) -> bool:
    # 1.0, 1 and 1e0 are the same number in JSON, and clients write it as their language does. Decimals are compared
    # because as doubles 2^53 and 2^53 + 1 would be equal.
    return _NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(value)


_COMPARE: dict[type, Callable[[str, Any], bool]] = {
    str: lambda text, value: text == value,
    bool: lambda text, value: text == ("true" if value else "false"),
    int: _is_same_number,
    float: _is_same_number,
}
