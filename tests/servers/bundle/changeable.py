"""A server whose tools stand in a file: `python -I -S changeable.py FILE`. It speaks the handshake era and nothing
else, and says on stderr how it was started."""

import json
import os
import sys
from pathlib import Path


def answer(method: str, params: dict) -> dict | None:
    match method:
        case "initialize":
            info = {"name": "changeable", "version": "7"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            tools = json.loads(Path(sys.argv[1]).read_text())
            if not isinstance(tools, list):
                sys.exit("no tools today")
            return {"tools": tools}
        case "tools/call":
            return {"content": [{"type": "text", "text": os.environ.get("TOKEN", "")}]}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params", {}))
        said = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
