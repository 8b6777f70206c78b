"""The headers in which a stateless HTTP request repeats parts of its body, so that a proxy can route the request
without reading the body.

`MCP-Protocol-Version` repeats the version in `_meta`, `Mcp-Method` the method, `Mcp-Name` the name or URI in the
params, and `Mcp-Param-*` the arguments that a tool's schema annotates with `x-mcp-header`. A request whose header
differs from its body is refused with -32020, since a proxy may have relied on the header (2026-07-28, Streamable
HTTP, Request Headers).

There is one exception. The connectors of Claude send the version header of an earlier version and no other of these
headers (a reported fault of theirs), so a client of that name may. Earlier versions have no such headers, so a proxy
that reads one of them in the header does not rely on any.

The first error is reported. The checks are made in this order: repeated headers, the envelope, the version header,
the method, the name, whether the version is supported, the arguments. The session then checks the rest, such as
unknown methods and invalid params.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...errors import InvalidRequest, RpcError
from ..session.envelope import check_envelope, stateless_version
from ..types.base import CLIENT_INFO, PROTOCOL_VERSION
from ..versions import HANDSHAKE_VERSIONS
from ..wire.jsonrpc import Batch, Failure, Malformed, Message, Request, Response, failure
from .rules import REPEATED, VERSION_HEADER, Headers, Refusal, stateless_status

ParametersOf = Callable[[str], Iterable["Parameter"]]
"""A function that returns which arguments of the named tool are repeated in headers; empty for an unknown tool."""

METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
PARAM_PREFIX = "mcp-param-"

NAME_PARAMS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""The param that `Mcp-Name` repeats, by method. For other methods the header is ignored."""

OPTIONAL_NAMES = ("tasks/get", "tasks/update", "tasks/cancel")
"""The methods for which `Mcp-Name` may be missing. The tasks extension requires the header, but the specification
does not mention these methods, and some clients omit it. A missing header can't mislead a proxy, so only a different
value is refused."""

_HANDSHAKE_DATES = frozenset(version.date for version in HANDSHAKE_VERSIONS)
_CLAUDE = re.compile("claude|anthropic", re.IGNORECASE)

ANNOTATION = "x-mcp-header"
"""The keyword of an argument's schema that contains the name of its header, without `Mcp-Param-`."""
ANNOTATED_TYPES = ("string", "integer", "boolean")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ENCODED_PREFIX = "=?base64?"
_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


class HeaderMismatch(RpcError):
    """A header differs from the body (2026-07-28)."""

    code = -32020


def check_stateless_body(message: Message) -> Refusal | None:
    """Return a refusal with status 400 for a body that is not one request or one notification."""
    match message:
        case Malformed(answer):
            return Refusal(400, answer)
        case Batch() | Response() | Failure():
            return Refusal(400, failure(None, InvalidRequest("the body must be one request or one notification")))
    return None


def check_stateless(headers: Headers, request: Request, parameters_of: ParametersOf) -> Refusal | None:
    """Return a refusal for the first error in a stateless request, in the order of the module's description; None if
    there is no error."""
    try:
        if headers.repeated:
            raise HeaderMismatch(REPEATED)
        # The envelope is checked first, since the headers are compared with it.
        meta = check_envelope(request.params)
        # Checked before whether the version is supported, since a proxy may have routed by the header.
        version_header = headers.get(VERSION_HEADER)
        may_omit = version_header in _HANDSHAKE_DATES and _is_claude(meta)
        if version_header != meta[PROTOCOL_VERSION] and not may_omit:
            raise HeaderMismatch("the MCP-Protocol-Version header must equal the version in params._meta")
        if not _is_same(headers, METHOD_HEADER, request.method, may_omit=may_omit):
            raise HeaderMismatch("the Mcp-Method header must equal the method")
        name_param = NAME_PARAMS.get(request.method)
        name = request.params.get(name_param) if name_param is not None else None
        may_omit_name = may_omit or request.method in OPTIONAL_NAMES
        # A name that is not a string is refused later, when the params are validated.
        if isinstance(name, str) and not _is_same(headers, NAME_HEADER, name, may_omit=may_omit_name):
            raise HeaderMismatch(f"the Mcp-Name header must equal params.{name_param}")
        # Raises -32022 if the header and the body agree on an unsupported version.
        stateless_version(request.params["_meta"][PROTOCOL_VERSION])
        if request.method == "tools/call":
            _check_parameters(headers, request.params, parameters_of, may_omit=may_omit)
    except RpcError as error:
        return Refusal(stateless_status(error), failure(request.id, error))
    return None


def _is_claude(meta: Mapping[str, Any]) -> bool:
    info = meta.get(CLIENT_INFO)
    name = info.get("name") if isinstance(info, dict) else None
    return isinstance(name, str) and _CLAUDE.search(name) is not None


def _is_same(headers: Headers, name: str, expected: str, *, may_omit: bool) -> bool:
    value = headers.get(name)
    return may_omit if value is None else decode_value(value) == expected


def decode_value(value: str) -> str | None:
    """Return the text of a header value. `=?base64?...?=` contains text that a header can't contain unchanged, as
    UTF-8 in base64; any other value is the text itself. None if the base64 is not canonical, or its bytes are not
    UTF-8."""
    # Nearly all values are plain text, which `startswith` detects faster than a regular expression.
    match = _ENCODED.fullmatch(value) if value.startswith(_ENCODED_PREFIX) else None
    if match is None:
        return value
    try:
        encoded = match[1].encode("ascii")
        data = b64decode(encoded, validate=True)
        # Only the canonical form is accepted: a proxy that blocks a value by comparing bytes would not recognize
        # others.
        return data.decode("utf-8") if b64encode(data) == encoded else None
    except ValueError:
        return None


# Parameters


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a tool that a header repeats. `path` is the names of the properties that lead to it."""

    header: str
    path: tuple[str, ...]

    def value_in(self, arguments: Any) -> Any:
        """Return the value of the argument in the `arguments` of a call; None if it is missing."""
        for name in self.path:
            # A value on the path may have a wrong type, which the tool reports later.
            arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
        return arguments


def parameter_headers(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Parameter]:
    """Yield the arguments that `schema` annotates with a valid `x-mcp-header`: strings, integers and booleans to
    which a path of `properties` leads. `path` is the path to `schema` itself."""
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(field, Mapping):
            continue
        inner_path, annotation = (*path, name), field.get(ANNOTATION)
        if isinstance(annotation, str) and TOKEN.fullmatch(annotation) and field.get("type") in ANNOTATED_TYPES:
            yield Parameter(PARAM_PREFIX + annotation.lower(), inner_path)
        yield from parameter_headers(field, inner_path)


def _check_parameters(
    headers: Headers, params: Mapping[str, Any], parameters_of: ParametersOf, *, may_omit: bool
) -> None:
    name, arguments = params.get("name"), params.get("arguments", {})
    for parameter in parameters_of(name) if isinstance(name, str) else ():
        value = parameter.value_in(arguments)
        header_value = headers.get(parameter.header)
        if header_value is None and (value is None or may_omit):
            continue
        decoded = None if header_value is None else decode_value(header_value)
        compare = _COMPARISONS.get(type(value))
        # A value of another type violates the tool's schema, which the tool reports later.
        is_same = decoded is not None and (compare is None or compare(decoded, value))
        if value is None or not is_same:
            raise HeaderMismatch(f"the header {parameter.header} must equal the argument {'.'.join(parameter.path)}")


def _is_same_number(text: str, value: float) -> bool:
    # 1.0, 1 and 1e0 are the same number in JSON, and each language writes it in its own way. Decimals are compared,
    # because 2^53 and 2^53 + 1 would be equal as floats.
    return _NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(value)


_COMPARISONS: dict[type, Callable[[str, Any], bool]] = {
    str: lambda text, value: text == value,
    bool: lambda text, value: text == ("true" if value else "false"),
    int: _is_same_number,
    float: _is_same_number,
}
