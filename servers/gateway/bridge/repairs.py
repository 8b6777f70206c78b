"""Repairs of a server's results and log messages that its own hosts may accept, but others refuse.

Many hosts validate strictly: one tool whose `annotations` are null makes them refuse the whole list, and here that
may include the tools of other servers. Programs in Go, Java and C# write an absent field as null.
"""

import logging
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
_LISTS = frozenset(
    {"content", "contents", "messages", "prompts", "resourceTemplates", "resources", "tools", "values"}
)
"""Required lists. An empty one is null in Go."""


def repair(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `method` without fields that are null, with an object's type in each tool's input schema,
    with texts as content, and with structured content as text too if there is no other content. The argument is not
    changed."""
    if method not in _METHODS:
        return result
    result = _drop_nulls(result)
    if method == "tools/list" and isinstance(result.get("tools"), list):
        tools: list[Any] = []
        for tool in result["tools"]:
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            if isinstance(schema, dict):
                # Arguments are an object, so that no keyword can be null.
                keywords = {name: keyword for name, keyword in schema.items() if keyword is not None}
                schema = keywords if "type" in keywords else {"type": "object", **keywords}
                tools.append({**tool, "inputSchema": schema})
            else:
                tools.append(tool)
        return {**result, "tools": tools}
    if method != "tools/call":
        return result
    content = result.get("content")
    structured = result.get("structuredContent")
    # Beside an empty list, null is an absent field.
    if ("structuredContent" in result and content is None) or (not content and structured is not None):
        content = {"type": "text", "text": json_of(structured).decode()}
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
        try:
            structured = from_json(texts[0], allow_inf_nan=False) if len(texts) == 1 and texts[0] else None
        except ValueError:
            structured = None
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
    return _drop_nulls(item)
