"""Conversions of params, results and errors between document 002 and the specification.

Decisions where the document leaves room:

* the highest version that a client supports is its `maxVersion`, `version`, or semantic `protocolVersion`. It
  supports all versions from `minVersion` to that, by default all of the same major version ("Compatibility of
  versions");
* the `arguments` of a resource are the values of the variables in its URI; the remaining ones become its query;
* `arguments` of resources and prompts may have any type: values that are not strings become JSON, null is dropped;
* the structured content of a tool becomes a block of the type `json`. It replaces a text block with the same JSON, or
  follows the content if there is none;
* the texts of several prompt messages are joined with an empty line between them; other content is named in brackets.
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
"""The versions in the document's "History of versions", oldest first."""

NO_COMMON_VERSION, RESOURCE_NOT_FOUND, RESOURCE_FAILED = 1001, 3001, 3002
TOOL_NOT_FOUND, TOOL_FAILED, URI_INCOMPLETE, PROMPT_FAILED = 4001, 4002, 5001, 6001
"""Error codes. The document's "Error handling" has ranges for them, but defines only 3001."""

_CODES: Mapping[tuple[str, int], int] = {
    ("read_resource", -32603): RESOURCE_FAILED,
    ("call_tool", -32603): TOOL_FAILED,
    ("render_prompt", -32603): PROMPT_FAILED,
}
"""The document's codes for standard errors, by method and standard code. All other codes are the same in both."""

MAX_TEMPLATE, MAX_BRACES = 4_096, 16
"""Maximum number of characters, and of pairs of braces, in a URI. Such a URI takes a millisecond to compile."""
_TOO_MUCH = f"a URI with braces may have at most {MAX_TEMPLATE:,} characters and {MAX_BRACES} pairs of braces"

_HIGHEST = ("maxVersion", "version", "protocolVersion")
"""The params in which a client may send its highest version; the first that is present counts."""

_Object = dict[str, Any]


# Versions


def choose_version(params: _Object) -> _Object:
    """Convert the params of `initialize` to `{"version": ...}` with the highest version that both sides support.

    Raises InvalidParams for an invalid version, and RpcError with code 1001 if there is no version that both support.
    """
    requested = {name: params[name] for name in (*_HIGHEST, "minVersion") if name in params}
    highest = _parse_version(next((requested[name] for name in _HIGHEST if name in requested), VERSIONS[-1]))
    lowest = _parse_version(requested["minVersion"]) if "minVersion" in requested else (highest[0], 0, 0)
    common = [version for version in VERSIONS if lowest <= _parse_version(version) <= highest]
    if not common:
        data = {"supported": list(VERSIONS), "requested": requested}
        raise RpcError("there is no common version", code=NO_COMMON_VERSION, data=data)
    return {"version": common[-1]}


def initialize_result(result: _Object) -> _Object:
    """Return the result of `initialize`, which the handler of the extension has wrapped in `value`."""
    value: _Object = result["value"]
    return value


def _parse_version(version: object) -> tuple[int, ...]:
    match_ = re.fullmatch(SEMANTIC_VERSION, version) if isinstance(version, str) else None
    if match_ is None:
        raise InvalidParams("a version must have the form MAJOR.MINOR.PATCH")
    return tuple(int(part) for part in match_.groups())


# Resources


def read_params(params: _Object) -> _Object:
    """Return the params with the URI to read, in which the arguments have replaced the variables. Raises
    InvalidParams, and RpcError with code 5001 if there are too many braces, a variable has no value, or the template
    has an unsupported form."""
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
    """Return the contents of a resource as content blocks: text as `text`, bytes as `blob` in base64."""
    value, content = result["value"], []
    for contents in value["contents"]:
        kind = "text" if "text" in contents else "blob"
        mime_type = {"mimeType": contents["mimeType"]} if "mimeType" in contents else {}
        content.append({"type": kind, kind: contents[kind], **mime_type})
    return {"content": content, "isError": False, "meta": value["meta"]}


# Tools


def tool_params(params: _Object) -> _Object:
    """Return the params of `tools/call`. Raises InvalidParams."""
    return {"name": _read_string(params, "name"), "arguments": _read_arguments(params)}


def tool_result(result: _Object) -> _Object:
    """Return the result of `call_tool`, with structured content as a block of the type `json`. It replaces the text
    block with the same JSON; if there is none, it comes last."""
    content = result["content"]
    if "structuredContent" in result:
        data = result["structuredContent"]
        json_block = {"type": "json", "json": data}
        content = [json_block if _is_json_of(block, data) else block for block in content]
        content = content if json_block in content else [*content, json_block]
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
    """Return the params of `prompts/get`. Raises InvalidParams."""
    return {"name": _read_string(params, "name"), "arguments": texts_of(_read_arguments(params))}


def prompt_result(result: _Object) -> _Object:
    """Return the result of `render_prompt`, with all messages as one string."""
    blocks = [message["content"] for message in result["messages"]]
    texts: list[str] = []
    for block in blocks:
        resource = block.get("resource", block)
        text = resource.get("text")
        uri = block.get("uri") or resource.get("uri")
        texts.append(text if isinstance(text, str) else f"[{uri or block['type']}]")
    return {"content": "\n\n".join(texts), "isError": False}


# Errors


def convert_error(method: str, answer: Failure) -> _Object:
    """Return the error object of `answer`, an error for a call to `method`, which is "" if unknown."""
    data = answer.data
    if method == "read_resource" and answer.code == -32602 and isinstance(data, dict) and "uri" in data:
        # -32602 also means invalid params; only a missing resource has `data.uri`.
        return {
            "code": RESOURCE_NOT_FOUND,
            "message": "Resource not found",
            "data": {**data, "detail": answer.message},
        }
    default = TOOL_NOT_FOUND if answer.kind == UnknownTool.kind else answer.code
    return error_object(replace(answer, code=_CODES.get((method, answer.code), default)))


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


def pick_names(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name and the description of a tool or prompt."""
    return {name: entry[name] for name in ("name", "description") if name in entry}
