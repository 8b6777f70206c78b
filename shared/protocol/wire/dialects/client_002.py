"""The client side of the dialect of document 002.

A server's tools and prompts are part of its answer to `initialize`, so the client sends `initialize` again to list
them. Resources can be read, but not listed. Servers receive only requests. A method that the document does not have
is sent under its standard name, and the server refuses it.
"""

from collections.abc import Mapping
from typing import Any

from .client_dialect import ClientDialect, Fields, Form, discover_result, json_text
from .forms_002 import VERSIONS, pick_names


def _write_introduction(_params: Fields) -> Fields:
    return {"version": VERSIONS[-1], "minVersion": VERSIONS[0]}


def _read_description(_params: Fields, result: Any) -> Fields:
    info = result.get("serverInfo")
    if not isinstance(info, dict):
        info = {"name": "unknown", "version": str(result.get("version", "unknown"))}
    lists: Fields = {name: {} for name in ("tools", "prompts") if isinstance(result.get(name), list)}
    return discover_result(info, {**lists, "resources": {}}, result.get("instructions"))


def _read_tools(_params: Fields, result: Any) -> Fields:
    return {
        "tools": [
            {**pick_names(tool), "inputSchema": tool.get("arguments") or {"type": "object"}}
            for tool in result["tools"]
        ]
    }


def _read_prompts(_params: Fields, result: Any) -> Fields:
    return {
        "prompts": [
            {**pick_names(prompt), "arguments": _read_arguments(prompt.get("arguments") or {})}
            for prompt in result["prompts"]
        ]
    }


def _read_arguments(schema: Fields) -> list[Fields]:
    """Return the arguments of a prompt, from their JSON Schema."""
    required = schema.get("required", [])
    return [
        {"name": name, "required": name in required, **{key: field[key] for key in ("description",) if key in field}}
        for name, field in schema.get("properties", {}).items()
    ]


def _write_call(params: Fields) -> Fields:
    return {"name": params["name"], "arguments": params.get("arguments") or {}}


def _read_tool_result(_params: Fields, result: Any) -> Fields:
    blocks = result["content"]
    content = [
        {"type": "text", "text": json_text(block["json"])} if block["type"] == "json" else block for block in blocks
    ]
    data = [{"structuredContent": block["json"]} for block in blocks if block["type"] == "json"]
    return {"content": content, **(data[-1] if data else {}), "isError": result.get("isError", False)}


def _read_contents(params: Fields, result: Any) -> Fields:
    contents = []
    for block in result["content"]:
        kind = "blob" if "blob" in block else "text"
        mime_type = {"mimeType": block["mimeType"]} if "mimeType" in block else {}
        contents.append({"uri": params["uri"], kind: block[kind], **mime_type})
    return {"contents": contents}


class Client002(ClientDialect):
    """The client's side of one connection to a server that follows document 002."""

    document, notifies = "002", False
    forms: Mapping[str, Form] = {
        "server/discover": Form("initialize", _write_introduction, _read_description),
        "tools/list": Form("initialize", _write_introduction, _read_tools),
        "prompts/list": Form("initialize", _write_introduction, _read_prompts),
        "tools/call": Form("call_tool", _write_call, _read_tool_result),
        "resources/read": Form("read_resource", lambda params: {"uri": params["uri"]}, _read_contents),
        "prompts/get": Form(
            "render_prompt",
            _write_call,
            lambda _params, result: {
                "messages": [{"role": "user", "content": {"type": "text", "text": result["content"]}}]
            },
        ),
    }
