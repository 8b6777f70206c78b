"""Repairs invalid results and log messages of third-party servers, which some hosts accept but others refuse.

Many hosts validate strictly: they refuse a whole list because of one tool whose `annotations` are null, and behind a
gateway that list includes the tools of other servers. Programs in Go, Java and C# write an absent field as null.
"""

import logging
import re
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from shared.protocol.wire.jsonrpc import json_of
from shared.text import display_name

_log = logging.getLogger("shared.gateway.bridge.repairs")

MAX_TOOLS = 5_000
"""Maximum number of tools whose arguments are repaired; beyond it, the tools that were listed first are forgotten."""
_REPAIRED_METHODS = frozenset(
    {
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "tools/call",
        "tools/list",
    }
)
_OPAQUE_FIELDS = frozenset({"_meta", "inputRequests", "inputSchema", "outputSchema", "structuredContent"})
"""Fields that contain any JSON, in which null is a value like any other."""
_CONTENT_TYPES = ("text", "image", "audio", "resource", "resource_link")
"""The types of content in the specification. Hosts refuse results with others."""
_NULLABLE_FIELDS = frozenset({"structuredContent", "ttl", "ttlMs"})
"""Fields in which null has a meaning, such as `ttl` of a task without a time limit (2025-11-25, Tasks)."""
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
"""Keywords whose value is an object. PHP writes an empty one as a list."""
_VALUE_KEYWORDS = ("const", "default", "enum", "examples")
"""Keywords whose values are data, not schemas."""
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")
_MEDIA_TYPES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""The types of images, by the first characters of their base64."""
_REQUIRED_LISTS = frozenset(
    {"content", "contents", "messages", "prompts", "resourceTemplates", "resources", "tools", "values"}
)
"""Fields whose list is required. Go writes an empty one as null."""


def repair(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `method` with these repairs: fields that are null are left out, the schema of each tool's
    arguments is that of an object, content that is only a string becomes a text block, and structured content without
    any other content is repeated as text. The argument is not changed."""
    if method not in _REPAIRED_METHODS:
        return result
    result = _drop_nulls(result)
    if method == "tools/list" and isinstance(result.get("tools"), list):
        return {
            **result,
            "tools": [_repair_tool(tool) if isinstance(tool, dict) else tool for tool in result["tools"]],
        }
    return _repair_call(result) if method == "tools/call" else result


def _repair_tool(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    # PHP writes an empty object as a list, and some programs omit the schema of a tool without arguments.
    if not isinstance(schema, dict):
        schema = {}
    # No keyword of this schema has the value null, since the arguments are an object.
    keywords = _repair_schema({name: value for name, value in schema.items() if value is not None})
    kind = keywords.get("type", "object")
    if isinstance(kind, list) and "object" in kind:
        kind = "object"
    # OpenAI refuses an object without properties.
    if kind == "object":
        keywords = {"properties": {}, **keywords}
    return {**tool, "inputSchema": {**keywords, "type": kind}}


def _repair_schema(schema: Any) -> Any:
    """Return the schema with an empty object for each map that is an empty list, without entries of maps that are no
    schemas, and with `items` in each array, which VS Code and Gemini require."""
    if isinstance(schema, list):
        return [_repair_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    repaired: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _SCHEMA_MAPS and (isinstance(value, dict) or value == []):
            parts = dict(value).items()
            repaired[keyword] = {name: _repair_schema(part) for name, part in parts if isinstance(part, dict | bool)}
        else:
            repaired[keyword] = value if keyword in _VALUE_KEYWORDS else _repair_schema(value)
    kind = schema.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {"items": {}, **repaired} if is_array else repaired


def _repair_call(result: dict[str, Any]) -> dict[str, Any]:
    content, structured = result.get("content"), result.get("structuredContent")
    is_error = result.get("isError")
    if not isinstance(is_error, bool | None):
        result = {**result, "isError": str(is_error).lower() in ("true", "1")}
    # Structured content that is null counts as a value only if there is no `content` at all.
    if ("structuredContent" in result and content is None) or (not content and structured is not None):
        content = {"type": "text", "text": json_of(structured).decode()}
    if content is None and result.keys() <= {"_meta", "isError"}:
        return {**result, "content": []}
    return {**result, "content": [content]} if isinstance(content, dict) else result


class ToolSchemas:
    """The schemas in the last lists of a server's tools, with which calls and results are repaired.

    Hosts refuse results without structured content if the tool has an output schema, and many of them also errors
    whose structured content does not match it. Servers refuse arguments that hosts send as a string of their JSON, or
    as null instead of leaving them out (see `argument_coercion.py` for the hosts).
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        """The tools that have an output schema."""
        self._arguments: dict[str, dict[str, tuple[frozenset[str], bool]]] = {}
        """For each tool, the types of its arguments, with True if the argument is required."""
        self._reported: set[str] = set()

    def learn(self, listed: dict[str, Any]) -> None:
        """Store the schemas of a page of the list."""
        for tool in filter(lambda tool: isinstance(tool, dict), listed.get("tools") or ()):
            name, schema = str(tool.get("name")), tool.get("inputSchema")
            change = self._names.add if isinstance(tool.get("outputSchema"), dict) else self._names.discard
            change(name)
            self._arguments.pop(name, None)
            if types := _read_argument_types(schema) if isinstance(schema, dict) else {}:
                self._arguments[name] = types
            if len(self._arguments) > MAX_TOOLS:
                del self._arguments[next(iter(self._arguments))]

    def repair_arguments(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call: those that are the JSON of a value of the right type become that value, and
        those that are null although they may only be left out are left out. The argument is not changed."""
        types, repaired = self._arguments.get(tool, {}), {}
        for name, value in arguments.items():
            expected, is_required = types.get(name, (frozenset[str](), True))
            if value is None and "null" not in expected and not is_required:
                continue
            read = None if "string" in expected else _read_json(value)
            repaired[name] = read if _types_of(read) & expected else value
        return repaired

    def repair_result(self, server: str, tool: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of `tool`. If that has an output schema, and the result is not an error and has no
        structured content, the JSON object in its only text block becomes the structured content; that of an error
        becomes a text block."""
        content = result.get("content")
        if tool not in self._names or not content or bool(result.get("isError")) != ("structuredContent" in result):
            return result
        texts = [item.get("text") for item in content if isinstance(item, dict)]
        if result.get("isError"):
            rest, structured = dict(result), result["structuredContent"]
            del rest["structuredContent"]
            is_repeated = any(_read_json(text) == structured for text in texts)
            text = {"type": "text", "text": json_of(structured).decode()}
            return rest if is_repeated else {**rest, "content": [*content, text]}
        structured = _read_json(texts[0]) if len(texts) == 1 else None
        if isinstance(structured, dict):
            return {**result, "structuredContent": structured}
        if tool not in self._reported:
            self._reported.add(tool)
            words = "%s: the tool %s has an output schema but returned no structured content, so hosts may refuse it"
            _log.warning(words, server, display_name(tool))
        return result


def _read_json(text: Any) -> Any:
    """Return the value of a JSON text; None for any other value."""
    with suppress(ValueError):
        return from_json(text, allow_inf_nan=False) if isinstance(text, str) else None
    return None


def _read_argument_types(schema: dict[str, Any]) -> dict[str, tuple[frozenset[str], bool]]:
    """Return the types of the arguments whose types are known, with True if the argument is required."""
    properties, required = schema.get("properties"), schema.get("required")
    types: dict[str, tuple[frozenset[str], bool]] = {}
    for name, part in properties.items() if isinstance(properties, dict) else ():
        kinds = part.get("type") if isinstance(part, dict) else None
        expected = frozenset(
            kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)
        )
        if expected:
            types[name] = expected, isinstance(required, list) and name in required
    return types


def _types_of(value: Any) -> frozenset[str]:
    """Return the names that JSON Schema has for the type of `value`, which is no string and not null."""
    match value:
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number"})
        case list():
            return frozenset({"array"})
        case dict():
            return frozenset({"object"})
    return frozenset()


def repair_log(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a log message without fields that are null, except `data`, which may be any JSON."""
    return {name: item for name, item in params.items() if item is not None or name == "data"}


def _drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: item
        if (type(item) is str and name != "content") or name in _OPAQUE_FIELDS
        else _repair_item(name, item)
        for name, item in value.items()
        if item is not None or name in _NULLABLE_FIELDS or name in _REQUIRED_LISTS
    }


def _repair_item(name: str, item: Any) -> Any:
    if name == "content" and isinstance(item, str | dict):
        return _repair_content(item)
    if isinstance(item, dict):
        return _drop_nulls(item)
    if item is None and name in _REQUIRED_LISTS:
        return []
    return (
        [_repair_content(part) if name == "content" else _repair_item("", part) for part in item]
        if isinstance(item, list)
        else item
    )


def _repair_content(item: Any) -> Any:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    text = item.get("text") if isinstance(item, dict) else None
    kind = item.get("type", "text" if isinstance(text, str) else None) if isinstance(item, dict) else None
    if kind not in _CONTENT_TYPES:
        return {"type": "text", "text": json_of(item).decode()}
    if kind == "text":
        item = {**item, "type": kind, "text": text if isinstance(text, str) else _as_text(text)}
    return _drop_nulls(_repair_media(item) if kind in ("image", "audio") else item)


def _as_text(value: Any) -> str:
    return "" if value is None else json_of(value).decode()


def _repair_media(item: dict[str, Any]) -> dict[str, Any]:
    """Return an image or audio block with plain base64 as its data, without a `data:` prefix, and with a MIME type if
    the type can be recognized."""
    data, kind = item.get("data"), item.get("mimeType")
    if not isinstance(data, str):
        return item
    uri = _DATA_URI.match(data)
    if uri is not None:
        data, kind = data[uri.end() :], kind or uri[1]
    if kind is None:
        kind = next((kind for start, kind in _MEDIA_TYPES.items() if data.startswith(start)), None)
    return {**item, "data": data, "mimeType": kind}
