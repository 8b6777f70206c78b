"""Repairs of a server's results and log messages that its own hosts may accept, but others refuse.

Many hosts validate strictly: one tool whose `annotations` are null makes them refuse the whole list, and here that
may include the tools of other servers. Programs in Go, Java and C# write an absent field as null.
"""

import logging
import re
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from shared.protocol.wire.jsonrpc import json_of
from shared.text import display_name

_log = logging.getLogger("shared.gateway.bridge.repairs")

_METHODS = frozenset(
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
_OPAQUE = frozenset({"_meta", "inputRequests", "inputSchema", "outputSchema", "structuredContent"})
"""Fields with any JSON, in which null is a value."""
_CONTENT = ("text", "image", "audio", "resource", "resource_link")
"""The kinds of content of the specification. Others may have fields that can be null."""
_NULLABLE = frozenset({"structuredContent", "ttl", "ttlMs"})
"""Fields that may be null: the lifetime of a task that is kept forever (2025-11-25, Tasks)."""
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
"""Keywords with an object. An empty one is a list in PHP."""
_VALUES = ("const", "default", "enum", "examples")
"""Keywords with values, which may have any form."""
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")
_MEDIA_TYPES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""The types of images by the start of their base64."""
_LISTS = frozenset(
    {"content", "contents", "messages", "prompts", "resourceTemplates", "resources", "tools", "values"}
)
"""Required lists. An empty one is null in Go."""


def repair(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `method` without fields that are null, with a schema of an object for each tool's
    arguments, with texts as content, and with structured content as text too if there is no other content. The
    argument is not changed."""
    if method not in _METHODS:
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
    # Arguments are an object, so that no keyword can be null.
    keywords = {name: _repair_schema(name, keyword) for name, keyword in schema.items() if keyword is not None}
    kind = keywords.get("type", "object")
    if isinstance(kind, list) and "object" in kind:
        kind = "object"
    return {**tool, "inputSchema": {**keywords, "type": kind}}


def _repair_schema(name: str, part: Any) -> Any:
    if part == [] and name in _SCHEMA_MAPS:
        return {}
    if isinstance(part, dict) and name not in _VALUES:
        return {keyword: _repair_schema(keyword, value) for keyword, value in part.items()}
    return part


def _repair_call(result: dict[str, Any]) -> dict[str, Any]:
    content, structured = result.get("content"), result.get("structuredContent")
    is_error = result.get("isError")
    if not isinstance(is_error, bool | None):
        result = {**result, "isError": str(is_error).lower() in ("true", "1")}
    # Beside an empty list, null is an absent field.
    if ("structuredContent" in result and content is None) or (not content and structured is not None):
        content = {"type": "text", "text": json_of(structured).decode()}
    if content is None and result.keys() <= {"_meta", "isError"}:
        return {**result, "content": []}
    return {**result, "content": [content]} if isinstance(content, dict) else result


class OutputSchemas:
    """The tools of a server that have an output schema. Hosts refuse a result of theirs without structured content,
    which programs omit that write it as text alone."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._reported: set[str] = set()

    def learn(self, listed: dict[str, Any]) -> None:
        """Store which tools of a page have an output schema."""
        for tool in filter(lambda tool: isinstance(tool, dict), listed.get("tools") or ()):
            change = self._names.add if isinstance(tool.get("outputSchema"), dict) else self._names.discard
            change(str(tool.get("name")))

    def add_structured(self, server: str, tool: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result with the object in its only text as structured content, if its tool requires that and it
        is missing."""
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
    """Return the params of a log message without fields that are null, except its data."""
    return {name: item for name, item in params.items() if item is not None or name == "data"}


def _drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: item if (type(item) is str and name != "content") or name in _OPAQUE else _repair_item(name, item)
        for name, item in value.items()
        if item is not None or name in _NULLABLE or name in _LISTS
    }


def _repair_item(name: str, item: Any) -> Any:
    if name == "content" and item is not None and not isinstance(item, list):
        return _repair_content(item)
    if isinstance(item, dict):
        return _drop_nulls(item)
    if item is None and name in _LISTS:
        return []
    return (
        [_repair_content(part) if name == "content" else _repair_item("", part) for part in item]
        if isinstance(item, list)
        else item
    )


def _repair_content(item: Any) -> Any:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not isinstance(item, dict) or item.get("type", "text") not in _CONTENT:
        return item
    text = item.get("text")
    if item.get("type") == "text" and not isinstance(text, str):
        item = {**item, "text": "" if text is None else json_of(text).decode()}
    return _drop_nulls(_repair_media(item) if item.get("type") in ("image", "audio") else item)


def _repair_media(item: dict[str, Any]) -> dict[str, Any]:
    """Return an image or sound as the base64 of its bytes alone, with its type."""
    data, kind = item.get("data"), item.get("mimeType")
    if not isinstance(data, str):
        return item
    uri = _DATA_URI.match(data)
    if uri is not None:
        data, kind = data[uri.end() :], kind or uri[1]
    if kind is None:
        kind = next((kind for start, kind in _MEDIA_TYPES.items() if data.startswith(start)), None)
    return {**item, "data": data, "mimeType": kind}
