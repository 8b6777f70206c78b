"""The client side of the dialect of document 000.

The document leaves some forms to the server. The client accepts the form that this bundle's servers use, and any
other JSON:

* a `toolId` is the name of the tool; a `resourceId` is a URI, or if it contains braces, a URI template;
* an object that a tool returns is its structured content, a string is its text, and an array of content blocks is its
  content;
* all other methods have the params and results of the specification (3.2.1).
"""

from collections.abc import Mapping
from typing import Any

from ...types.base import CLIENT_INFO
from .client_dialect import ClientDialect, Fields, Form, discover_result, json_text

_LISTS = {"mcp/listTools": "tools", "mcp/listResources": "resources"}
_CAPABILITIES = {**_LISTS, "mcp/prompts/list": "prompts", "mcp/completion/complete": "completions"}
"""The server capability that each method shows."""


def _read_description(_params: Fields, result: Any) -> Fields:
    listed = result.get("methods")
    # Every server has the methods in `_LISTS` (5.2).
    methods = {*_LISTS, *(listed if isinstance(listed, list) else ())}
    capabilities: Fields = {capability: {} for method, capability in _CAPABILITIES.items() if method in methods}
    info = {"name": str(result.get("name", "unknown")), "version": str(result.get("version", "unknown"))}
    return discover_result(info, capabilities, result.get("instructions"))


def _no_params(_params: Fields) -> Fields:
    return {}


def _read_tools(_params: Fields, result: Any) -> Fields:
    tools = []
    for entry in result:
        others = {name: value for name, value in entry.items() if name != "toolId"}
        tools.append({"inputSchema": {"type": "object"}, **others, "name": entry["toolId"]})
    return {"tools": tools}


def _read_entry(entry: Fields, key: str) -> Fields:
    others = {name: value for name, value in entry.items() if name not in ("resourceId", "querySchema")}
    return {"name": entry["resourceId"], **others, key: entry["resourceId"]}


def _read_tool_result(_params: Fields, result: Any) -> Fields:
    if isinstance(result, str):
        return {"content": [{"type": "text", "text": result}]}
    if isinstance(result, list) and all(isinstance(block, dict) and "type" in block for block in result):
        return {"content": result}
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        return result
    data = {"structuredContent": result} if isinstance(result, dict) else {}
    return {"content": [{"type": "text", "text": json_text(result)}], **data}


def _read_contents(params: Fields, result: Any) -> Fields:
    if isinstance(result, list) and all(isinstance(block, dict) and "uri" in block for block in result):
        return {"contents": result}
    return {"contents": [{"uri": params["uri"], "text": result if isinstance(result, str) else json_text(result)}]}


class Client000(ClientDialect):
    """The client's side of one connection to a server that follows document 000."""

    document, prefix = "000", "mcp/"
    forms: Mapping[str, Form] = {
        "server/discover": Form(
            "mcp/initialize",
            lambda params: {"clientInfo": params["_meta"][CLIENT_INFO], "transports": ["stdio", "http", "sse"]},
            _read_description,
        ),
        "tools/list": Form("mcp/listTools", _no_params, _read_tools),
        "resources/list": Form(
            "mcp/listResources",
            _no_params,
            lambda _params, result: {
                "resources": [_read_entry(entry, "uri") for entry in result if "{" not in entry["resourceId"]]
            },
        ),
        "resources/templates/list": Form(
            "mcp/listResources",
            _no_params,
            lambda _params, result: {
                "resourceTemplates": [
                    _read_entry(entry, "uriTemplate") for entry in result if "{" in entry["resourceId"]
                ]
            },
        ),
        "tools/call": Form(
            "mcp/tool/execute",
            lambda params: {"toolId": params["name"], "inputs": params.get("arguments") or {}},
            _read_tool_result,
        ),
        "resources/read": Form("mcp/resource/read", lambda params: {"resourceId": params["uri"]}, _read_contents),
    }
