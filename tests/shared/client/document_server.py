"""A server with a tool `add` that speaks only document 000 or 002: `python document_server.py 000`.

It imports nothing of the project: its messages are written by hand from the documents. An unreadable message ends it.
"""

import json
import sys
from typing import Any

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


def read_framed() -> Json | None:
    """The next message behind a header (000, 4.1.2); None at the end."""
    header = sys.stdin.buffer.readline()
    if not header:
        return None
    name, _, length = header.partition(b": ")
    assert name == b"Content-Length", header
    assert sys.stdin.buffer.readline() == b"\r\n"
    message: Json = json.loads(sys.stdin.buffer.read(int(length)))
    assert message["jsonrpc"] == "2.0"
    return message


def write_framed(message: Json) -> None:
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def answer_000(method: str, params: Any) -> Any:
    match method:
        case "mcp/initialize":
            assert isinstance(params, dict)
            return {"name": "by hand", "version": "1", "methods": ["mcp/listTools", "mcp/tool/execute"]}
        case "mcp/listTools":
            return [{"toolId": "hand/add", "description": "Add.", "inputSchema": SCHEMA}]
        case "mcp/listResources":
            return [{"resourceId": "note:one", "description": "A note."}]
        case "mcp/tool/execute":
            assert params["toolId"] == "hand/add"
            return params["inputs"]["a"] + params["inputs"]["b"]
        case "mcp/resource/read":
            return f"the text of {params['resourceId']}"
    raise LookupError(method)


def answer_002(method: str, params: Any) -> Any:
    match method:
        case "initialize":
            tools = [{"name": "add", "description": "Add.", "arguments": SCHEMA}]
            prompts = [{"name": "greet", "description": "Greet.", "arguments": {"type": "object", "properties": {}}}]
            return {"version": params["version"], "tools": tools, "prompts": prompts}
        case "call_tool":
            numbers = params["arguments"]
            return {"content": [{"type": "json", "json": {"sum": numbers["a"] + numbers["b"]}}], "isError": False}
        case "read_resource":
            return {"content": [{"type": "text", "text": f"the text of {params['uri']}"}], "isError": False}
        case "render_prompt":
            return {"content": "Hello", "isError": False}
    raise LookupError(method)


def main() -> None:
    is_000 = sys.argv[1] == "000"
    while True:
        line = "" if is_000 else sys.stdin.readline()
        message = read_framed() if is_000 else json.loads(line) if line else None
        if message is None:
            return
        if "id" not in message:
            continue
        answer: Json = {"id": message["id"]}
        try:
            answer["result"] = (answer_000 if is_000 else answer_002)(message["method"], message["params"])
        except LookupError:
            answer["error"] = {"code": -32601, "message": "method not found"}
        if is_000:
            write_framed({"jsonrpc": "2.0", **answer})
        else:
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
