"""What the floors answer: the least that Python has to do for a request, without any protocol around it, with nothing
but its own library."""

import json
from pathlib import Path
from typing import Any

TOOL = {
    "name": "read_text_file",
    "description": "Read a text file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor", "version": "1"},
}


def result_of(request: dict[str, Any]) -> dict[str, Any]:
    """The result of a request; the file is really read."""
    match request["method"]:
        case "tools/call":
            text = Path(request["params"]["arguments"]["path"]).read_text()
            return {"content": [{"type": "text", "text": text}]}
        case "tools/list":
            return {"tools": [TOOL]}
        case "initialize":
            return HELLO
    return {}


def answer_to(message: bytes) -> bytes | None:
    """The answer to a message, None where none is due."""
    request = json.loads(message)
    if "id" not in request:
        return None
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result_of(request)}
    return json.dumps(answer).encode()
