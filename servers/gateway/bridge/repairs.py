"""Repairs of a server's results and log messages that its own hosts may accept, but others refuse.

Many hosts validate strictly: one tool whose `annotations` are null makes them refuse the whole list, and here that
may include the tools of other servers. Programs in Go, Java and C# write an absent field as null.
"""

from typing import Any

from shared.protocol.wire.jsonrpc import json_of

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


def repaired(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `method` without fields that are null, with an object's type in each tool's input schema,
    and with structured content as text too if there is no other content. The argument is not changed."""
    if method not in _METHODS:
        return result
    result = _without_nulls(result)
    if method == "tools/list" and isinstance(result.get("tools"), list):
        return {**result, "tools": [_with_object_schema(tool) for tool in result["tools"]]}
    if method == "tools/call" and "structuredContent" in result and "content" not in result:
        text = json_of(result["structuredContent"]).decode()
        return {"content": [{"type": "text", "text": text}], **result}
    return result


def repaired_log(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a log message without fields that are null, except its data."""
    return {name: item for name, item in params.items() if item is not None or name == "data"}


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: item if name in _OPAQUE else _item_without_nulls(item, is_content=name == "content")
        for name, item in value.items()
        if item is not None or name in _NULLABLE
    }


def _item_without_nulls(item: Any, *, is_content: bool) -> Any:
    if isinstance(item, dict):
        is_unknown = is_content and item.get("type", "text") not in _CONTENT
        return item if is_unknown else _without_nulls(item)
    return [_item_without_nulls(part, is_content=is_content) for part in item] if isinstance(item, list) else item


def _with_object_schema(tool: Any) -> Any:
    schema = tool.get("inputSchema") if isinstance(tool, dict) else None
    if not isinstance(schema, dict):
        return tool
    # Arguments are an object, so that no keyword can be null.
    keywords = {name: keyword for name, keyword in schema.items() if keyword is not None}
    return {**tool, "inputSchema": keywords if "type" in keywords else {"type": "object", **keywords}}
