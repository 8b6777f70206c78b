"""The client side of document 000.

Where the document leaves the form to the server, the form of this bundle's servers is accepted, and any other JSON:

* any `toolId` is the name of the tool, and a `resourceId` is a URI, or with braces a template;
* an object that a tool returns is its structured content, a string its text, and an array of content its content;
* all other methods have the params and results of the specification (3.2.1).
"""

from collections.abc import Mapping
from typing import Any

from ...types.base import CLIENT_INFO
from .client_dialect import ClientDialect, Fields, Form, description, json_text

_LISTS = {"mcp/listTools": "tools", "mcp/listResources": "resources"}
_CAPABILITIES = {**_LISTS, "mcp/prompts/list": "prompts", "mcp/completion/complete": "completions"}
"""The server capability for each method."""


def _introduction(params: Fields) -> Fields:
    return {"clientInfo": params["_meta"][CLIENT_INFO], "transports": ["stdio", "http", "sse"]}


def _description(_params: Fields, result: Any) -> Fields:
    listed = result.get("methods")
    # Every server has these lists (5.2).
    methods = {*_LISTS, *(listed if isinstance(listed, list) else ())}
    capabilities: Fields = {capability: {} for method, capability in _CAPABILITIES.items() if method in methods}
    info = {"name": str(result.get("name", "unknown")), "version": str(result.get("version", "unknown"))}
    return description(info, capabilities, result.get("instructions"))


def _no_params(_params: Fields) -> Fields:
    return {}


def _tools(_params: Fields, result: Any) -> Fields:
    tools = []
    for entry in result:
        own = {name: value for name, value in entry.items() if name != "toolId"}
        tools.append({"inputSchema": {"type": "object"}, **own, "name": entry["toolId"]})
    return {"tools": tools}


def _resources(_params: Fields, result: Any) -> Fields:
    return {"resources": [_entry(entry, "uri") for entry in result if "{" not in entry["resourceId"]]}


def _templates(_params: Fields, result: Any) -> Fields:
    return {"resourceTemplates": [_entry(entry, "uriTemplate") for entry in result if "{" in entry["resourceId"]]}


def _entry(entry: Fields, key: str) -> Fields:
    own = {name: value for name, value in entry.items() if name not in ("resourceId", "querySchema")}
    return {"name": entry["resourceId"], **own, key: entry["resourceId"]}


def _execution(params: Fields) -> Fields:
    return {"toolId": params["name"], "inputs": params.get("arguments") or {}}


def _tool_result(_params: Fields, result: Any) -> Fields:
    if isinstance(result, str):
        return {"content": [{"type": "text", "text": result}]}
    if isinstance(result, list) and all(isinstance(block, dict) and "type" in block for block in result):
        return {"content": result}
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        return result
    data = {"structuredContent": result} if isinstance(result, dict) else {}
    return {"content": [{"type": "text", "text": json_text(result)}], **data}


def _reading(params: Fields) -> Fields:
    return {"resourceId": params["uri"]}


def _contents(params: Fields, result: Any) -> Fields:
    if isinstance(result, list) and all(isinstance(block, dict) and "uri" in block for block in result):
        return {"contents": result}
    return {"contents": [{"uri": params["uri"], "text": result if isinstance(result, str) else json_text(result)}]}


class Client000(ClientDialect):
    """The dialect of one connection of a client."""

    name, prefix = "000", "mcp/"
    forms: Mapping[str, Form] = {
        "server/discover": Form("mcp/initialize", _introduction, _description),
        "tools/list": Form("mcp/listTools", _no_params, _tools),
        "resources/list": Form("mcp/listResources", _no_params, _resources),
        "resources/templates/list": Form("mcp/listResources", _no_params, _templates),
        "tools/call": Form("mcp/tool/execute", _execution, _tool_result),
        "resources/read": Form("mcp/resource/read", _reading, _contents),
    }
