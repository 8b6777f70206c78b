"""What Gemini CLI tells its model of our tools: the program itself, with a model on loopback that says one word."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any

from tests import npm
from tests.checks.definitions.listings import OFFERS, ROOT
from tests.web_site import Reply, answered

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

    def answer(path: str, body: bytes, _headers: Message) -> Reply:
        request = json.loads(body or b"{}")
        if request.get("tools"):
            requests.append(request)
        if "stream" in path:
            return Reply(f"data: {json.dumps(ANSWER)}\r\n\r\n".encode(), "text/event-stream")
        return Reply(json.dumps(ANSWER).encode())

    with answered(answer) as url:
        yield url, requests
