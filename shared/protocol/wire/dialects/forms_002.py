"""Params, results and errors of document 002, converted to and from the specification.

Decisions where the document leaves room:

* a client's `version`, or a semantic `protocolVersion`, is the highest that it speaks, as is `maxVersion`; it speaks
  all from there down to `minVersion`, or to the first of that major version ("Compatibility of versions");
* the `arguments` of a resource fill the braces of its URI, and the remaining ones become its query;
* `arguments` of both may be of any type: a value that is not a string becomes its JSON, and null is left out;
* the data of a tool replaces a text block that is its JSON, or else follows the content, which stays as it is;
* the texts of several messages are joined by an empty line, and other content is named in brackets.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from ....errors import DeclarationError, InvalidParams, RpcError, UnknownTool
from ...uri_template import UriTemplate, add_query
from ..jsonrpc import Failure, error_object, texts_of
from . import SEMANTIC_VERSION

VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0")
"""The versions of "History of versions", oldest first."""

NO_COMMON_VERSION, RESOURCE_NOT_FOUND, RESOURCE_FAILED = 1001, 3001, 3002
TOOL_NOT_FOUND, TOOL_FAILED, URI_INCOMPLETE, PROMPT_FAILED = 4001, 4002, 5001, 6001
"""Codes in the ranges of "Error handling"; the document itself only defines 3001."""

_CODES: Mapping[tuple[str, int], int] = {
    ("read_resource", -32603): RESOURCE_FAILED,
    ("call_tool", -32603): TOOL_FAILED,
    ("render_prompt", -32603): PROMPT_FAILED,
}
"""The codes of document 002 for errors of the core. The codes that the document shares with JSON-RPC are left
unchanged."""

MAX_TEMPLATE, MAX_BRACES = 4_096, 16
"""Maximum numbers of characters and of pairs of braces in a URI. Compiling it to a pattern takes a millisecond."""
_TOO_MUCH = f"a URI with braces may have at most {MAX_TEMPLATE:,} characters and {MAX_BRACES} pairs of braces"

_HIGHEST = ("maxVersion", "version", "protocolVersion")
"""The params in which a client may send its highest version; the first one counts."""

_Object = dict[str, Any]


# Versions


def choose_version(params: _Object) -> _Object:
    """Return the params of `initialize` as `{"version": ...}`, the highest version that both sides support.

    Raises InvalidParams for an invalid version, and RpcError 1001 if both sides have no version in common.
    """
    named = {name: params[name] for name in (*_HIGHEST, "minVersion") if name in params}
    highest = _parse_version(next((named[name] for name in _HIGHEST if name in named), VERSIONS[-1]))
    lowest = _parse_version(named["minVersion"]) if "minVersion" in named else (highest[0], 0, 0)
    common = [version for version in VERSIONS if lowest <= _parse_version(version) <= highest]
    if not common:
        data = {"supported": list(VERSIONS), "requested": named}
        raise RpcError("there is no common version", code=NO_COMMON_VERSION, data=data)
    return {"version": common[-1]}


def initialize_result(result: _Object) -> _Object:
    """Return the answer, which is the value that the extension returns."""
    value: _Object = result["value"]
    return value


def _parse_version(version: object) -> tuple[int, ...]:
    match_ = re.fullmatch(SEMANTIC_VERSION, version) if isinstance(version, str) else None
    if match_ is None:
        raise InvalidParams("a version must have the form MAJOR.MINOR.PATCH")
    return tuple(int(part) for part in match_.groups())


# Resources


def read_params(params: _Object) -> _Object:
    """Return the URI to read, with the arguments filled in. Raises InvalidParams, and RpcError 5001 for braces that
    stay empty, are too many, or have an unknown form."""
    uri = _read_string(params, "uri")
    values = texts_of(_read_arguments(params))
    if "{" in uri:
        if len(uri) > MAX_TEMPLATE or uri.count("{") > MAX_BRACES:
            raise RpcError(_TOO_MUCH, code=URI_INCOMPLETE)
        try:
            template = UriTemplate(uri)
            uri = template.expand(values)
        except (DeclarationError, InvalidParams) as error:
            raise RpcError(str(error), code=URI_INCOMPLETE) from None
        values = {name: value for name, value in values.items() if name not in template.names}
    return {"uri": add_query(uri, values)}


def read_result(result: _Object) -> _Object:
    """Return the contents of a resource as content: texts as `text`, bytes as `blob` in base64."""
    value, content = result["value"], []
    for contents in value["contents"]:
        kind = "text" if "text" in contents else "blob"
        mime_type = {"mimeType": contents["mimeType"]} if "mimeType" in contents else {}
        content.append({"type": kind, kind: contents[kind], **mime_type})
    return {"content": content, "isError": False, "meta": value["meta"]}


# Tools


def tool_params(params: _Object) -> _Object:
    """Return the converted params. Raises InvalidParams."""
    return {"name": _read_string(params, "name"), "arguments": _read_arguments(params)}


def tool_result(result: _Object) -> _Object:
    """Return the content with data as `json`, which replaces the text that is its JSON or else comes last. Other
    content is unchanged."""
    content = result["content"]
    if "structuredContent" in result:
        data = result["structuredContent"]
        shown = {"type": "json", "json": data}
        content = [shown if _is_json_of(block, data) else block for block in content]
        content = content if shown in content else [*content, shown]
    return {"content": content, "isError": result.get("isError", False)}


def _is_json_of(block: _Object, data: object) -> bool:
    if block["type"] != "text":
        return False
    try:
        return bool(from_json(block["text"]) == data)
    except ValueError:
        return False


# Prompts


def prompt_params(params: _Object) -> _Object:
    """Return the converted params. Raises InvalidParams."""
    return {"name": _read_string(params, "name"), "arguments": texts_of(_read_arguments(params))}


def prompt_result(result: _Object) -> _Object:
    """Return the messages as one string."""
    blocks = [message["content"] for message in result["messages"]]
    shown: list[str] = []
    for block in blocks:
        inside = block.get("resource", block)
        text = inside.get("text")
        uri = block.get("uri") or inside.get("uri")
        shown.append(text if isinstance(text, str) else f"[{uri or block['type']}]")
    return {"content": "\n\n".join(shown), "isError": False}


# Errors


def convert_error(method: str, answer: Failure) -> _Object:
    """Return the error object for an answer to `method`, which is "" if unknown."""
    data = answer.data
    if method == "read_resource" and answer.code == -32602 and isinstance(data, dict) and "uri" in data:
        # The code depends on the version; all of them have the data.
        return {
            "code": RESOURCE_NOT_FOUND,
            "message": "Resource not found",
            "data": {**data, "detail": answer.message},
        }
    named = TOOL_NOT_FOUND if answer.kind == UnknownTool.kind else answer.code
    return error_object(replace(answer, code=_CODES.get((method, answer.code), named)))


# Params


def _read_string(params: _Object, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise InvalidParams(f'"{name}" must be a string')
    return value


def _read_arguments(params: _Object) -> _Object:
    arguments = params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise InvalidParams('"arguments" must be an object')
    return arguments
