"""A server of the era with handshakes that tells its process id: `python -I -S old_process.py`."""

import json
import os
import sys
from pathlib import Path

COMMAND = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]


def result(method: str, params: dict) -> dict | None:
    match method:
        case "initialize":
            info = {"name": "old", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": "pid", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
    return {} if method == "ping" else None


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        found = result(asked["method"], asked.get("params", {}))
        said = {"error": {"code": -32601, "message": "method not found"}} if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
