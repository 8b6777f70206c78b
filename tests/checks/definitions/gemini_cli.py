"""What Gemini CLI tells its model of our tools: the program itself, with a model on loopback that says one word."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests import npm
from tests.checks.definitions.listings import OFFERS, ROOT

HOST = ROOT / "tests" / "checks" / "host_views" / "gemini"
SECONDS = 100.0
ANSWER = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}

Json = dict[str, Any]


def declared(schemas: Json, folder: Path) -> Json:
    """The schemas of the tools called `server.tool` as the model gets them. Raises npm.Unavailable."""
    node = npm.find_node()
    npm.require(node, HOST, "Gemini CLI")
    home, work = folder / "home", folder / "work"
    (home / ".gemini").mkdir(parents=True)
    work.mkdir()
    with model() as (url, requests):
        (home / ".gemini" / "settings.json").write_text(json.dumps(settings(work)))
        done = subprocess.run(
            [str(node), str(HOST / "node_modules" / ".bin" / "gemini"), "-m", "gemini-2.5-pro", "-y", "-p", "go"],
            env=environment(node, home, url),
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    tools = [tool for tool in requests[-1]["tools"] for tool in tool["functionDeclarations"]]
    told = {tool["name"]: tool["parametersJsonSchema"] for tool in tools if "parametersJsonSchema" in tool}
    return {name: told["mcp_" + name.replace(".", "_", 1)] for name in schemas}


def settings(work: Path) -> Json:
    """Its file: every server, with all that it may change."""
    fullest = {offer.entry.name: offer.command(work) for offer in OFFERS}
    servers = {
        name: {"command": command[0], "args": command[1:], "cwd": str(ROOT), "trust": True}
        for name, command in fullest.items()
    }
    return {"mcpServers": servers, "security": {"auth": {"selectedType": "gemini-api-key"}}}


def environment(node: Path, home: Path, url: str) -> dict[str, str]:
    """Nothing of this machine's but its programs."""
    return {
        "PATH": f"{node.parent}:{os.defpath}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


@contextmanager
def model() -> Iterator[tuple[str, list[Json]]]:
    """A model's address, and the requests that have tools, as they come."""
    requests: list[Json] = []

    class Model(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if request.get("tools"):
                requests.append(request)
            streamed = "stream" in self.path
            body = f"data: {json.dumps(ANSWER)}\r\n\r\n" if streamed else json.dumps(ANSWER)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
