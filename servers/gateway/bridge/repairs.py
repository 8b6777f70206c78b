"""Repairs of results and log messages that the hosts of a third-party server may accept, but other hosts refuse.

Many hosts validate strictly: they refuse a whole list because of one tool whose `annotations` are null, and here that
list may include the tools of other servers. Programs in Go, Java and C# write an absent field as null.
"""

import logging
import re
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from shared.protocol.wire.jsonrpc import json_of
from shared.text import display_name

_log = logging.getLogger("shared.gateway.bridge.repairs")

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
"""The types of content in the specification. Others may have fields in which null has a meaning."""
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
        return {**tool, "inputSchema": {"type": "object"}}
    # No keyword of this schema has the value null, since the arguments are an object.
    keywords = {name: _repair_schema(name, keyword) for name, keyword in schema.items() if keyword is not None}
    kind = keywords.get("type", "object")
    if isinstance(kind, list) and "object" in kind:
        kind = "object"
    return {**tool, "inputSchema": {**keywords, "type": kind}}


def _repair_schema(name: str, part: Any) -> Any:
    if part == [] and name in _SCHEMA_MAPS:
        return {}
    if isinstance(part, dict) and name not in _VALUE_KEYWORDS:
        return {keyword: _repair_schema(keyword, value) for keyword, value in part.items()}
    return part


def _repair_call(result: dict[str, Any]) -> dict[str, Any]:
    content, structured = result.get("content"), result.get("structuredContent")
    is_error = result.get("isError")
    if not isinstance(is_error, bool | None):
        result = {**result, "isError": str(is_error).lower() in ("true", "1")}
    # If the list of content is empty, null counts as no structured content.
    if ("structuredContent" in result and content is None) or (not content and structured is not None):
        content = {"type": "text", "text": json_of(structured).decode()}
    if content is None and result.keys() <= {"_meta", "isError"}:
        return {**result, "content": []}
    return {**result, "content": [content]} if isinstance(content, dict) else result


class OutputSchemas:
    """The tools of a server that have an output schema. Some servers return the results of such tools only as text,
    but hosts refuse them without structured content."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._reported: set[str] = set()

    def learn(self, listed: dict[str, Any]) -> None:
        """Store which tools of a page of the list have an output schema."""
        for tool in filter(lambda tool: isinstance(tool, dict), listed.get("tools") or ()):
            change = self._names.add if isinstance(tool.get("outputSchema"), dict) else self._names.discard
            change(str(tool.get("name")))

    def add_structured(self, server: str, tool: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of `tool`. If that has an output schema and the result no structured content, the JSON
        object in its only text block becomes the structured content."""
        content = result.get("content")
        if tool not in self._names or not content or result.get("isError") or "structuredContent" in result:
            return result
        texts = [item.get("text") for item in content if isinstance(item, dict)]
        structured = None
        if len(texts) == 1 and isinstance(texts[0], str):
            with suppress(ValueError):
                structured = from_json(texts[0], allow_inf_nan=False)
        if isinstance(structured, dict):
            return {**result, "structuredContent": structured}
        if tool not in self._reported:
            self._reported.add(tool)
            words = "%s: the tool %s has an output schema but returned no structured content, so hosts may refuse it"
            _log.warning(words, server, display_name(tool))
        return result


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
    if name == "content" and item is not None and not isinstance(item, list):
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
    if not isinstance(item, dict) or item.get("type", "text") not in _CONTENT_TYPES:
        return item
    text = item.get("text")
    if item.get("type") == "text" and not isinstance(text, str):
        item = {**item, "text": "" if text is None else json_of(text).decode()}
    return _drop_nulls(_repair_media(item) if item.get("type") in ("image", "audio") else item)


def _repair_media(item: dict[str, Any]) -> dict[str, Any]:
    """Return an image or audio block whose data is plain base64, without a `data:` prefix, and which has a MIME type
    if that can be recognized."""
    data, kind = item.get("data"), item.get("mimeType")
    if not isinstance(data, str):
        return item
    uri = _DATA_URI.match(data)
    if uri is not None:
        data, kind = data[uri.end() :], kind or uri[1]
    if kind is None:
        kind = next((kind for start, kind in _MEDIA_TYPES.items() if data.startswith(start)), None)
    return {**item, "data": data, "mimeType": kind}
