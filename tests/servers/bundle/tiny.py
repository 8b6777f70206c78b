"""A server that starts at once: `python -I -S tiny.py`. It speaks the handshake era and nothing else.

`tiny.py FILE` reads its tools from the file at each request, and exits if the file has no list.
"""

import json
import os
import sys
from pathlib import Path

TOOLS = [
    {
        "name": "repeat",
        "description": "Repeat the arguments.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "how often", "default": 1},
                "mode": {"enum": ["fast", "slow"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "text": {"type": "string"},
            },
            "required": ["text"],
        },
    },
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "vanish", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "draw", "inputSchema": {"type": "object"}},
    {"name": "measure", "inputSchema": {"type": "object"}},
]
PICTURE = {"type": "image", "mimeType": "image/png", "data": "iVBORwo="}


def linked(name: str) -> dict:
    return {"type": "resource_link", "uri": f"tiny://{name}", "name": name}


def called(params: dict) -> dict | None:
    match params["name"]:
        case "locked":  # It is not listed, and its error explains why.
            return {"isError": True, "content": [{"type": "text", "text": "locked: start me with --unlock"}]}
        case "repaet":
            return None
        case "fail":
            return {"isError": True, "content": [{"type": "text", "text": "\x1b[31mno luck"}]}
        case "draw":
            return {"content": [PICTURE, {"type": "text", "text": "two"}, {**PICTURE, "data": "!"}, PICTURE]}
        case "measure":
            return {"content": [], "structuredContent": {"width": 80}}
        case "export":
            return {"content": [linked("text")]}
        case "export_all":
            return {"content": [{"type": "text", "text": "done"}, *map(linked, ("text", "text", "none", "vanish"))]}
        case "export_many":
            return {"content": [linked(str(number)) for number in range(101)]}
        case "pid":
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
        case "vanish":
            sys.stderr.write("out of ink\n")
            sys.exit(3)
    return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}


def tools() -> list:
    found = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else TOOLS
    return found if isinstance(found, list) else sys.exit("no tools today")


def answer(method: str, params: dict) -> dict | None:
    match method:
        case "initialize":
            capabilities = {"tools": {}, "resources": {}, "prompts": {}}
            info = {"name": "tiny", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            return {"tools": tools()}
        case "tools/call":
            return called(params)
        case "prompts/list":
            return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}
        case "prompts/get" if params["name"] == "greet":
            turns = [("user", "Hello"), ("assistant", params["arguments"]["who"])]
            return {"messages": [{"role": role, "content": {"type": "text", "text": text}} for role, text in turns]}
        case "resources/read" if params["uri"] == "tiny://picture":
            return {"contents": [{"uri": params["uri"], "mimeType": "image/png", "blob": PICTURE["data"]}]}
        case "resources/read" if params["uri"] == "tiny://text":
            return {"contents": [{"uri": params["uri"], "text": "plain \x1b[2J\u202e text"}]}
        case "resources/read" if params["uri"] == "tiny://vanish":
            sys.exit(3)
    return None


for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params") or {}
    if "id" not in request or params.get("name") == "hang":
        continue
    result = answer(request["method"], params)
    reply = {"error": {"code": -32601, "message": "there is no such thing"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
