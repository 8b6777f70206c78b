"""Third-party servers behind `python -m servers serve`: a command, a URL, and a server with pinned tools."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio import to_thread

from servers.bundle.program import main
from tests.processes import is_alive
from tests.raw import ROOT, Raw
from tests.servers.bundle.commands.test_serve import client, metrics, serving
from tests.servers.bundle.other_server import COMMAND
from tests.shared.transports.http.http_wire import PATIENCE, Json, envelope, merged, routing, served

SECRET = "hunter2-hunter2"
TINY = Path(__file__).parents[2] / "bundle" / "tiny.py"


def configured(folder: Path, *, others: Json, **options: Any) -> Path:
    """Write a private configuration of one of our servers and of `others`."""
    path = folder / "bundle.yaml"
    path.write_text(json.dumps({**options, "servers": {"prompts": {}, **others}}))
    path.chmod(0o600)
    return path


def started(**more: Any) -> Json:
    return {"command": COMMAND, "cwd": str(ROOT), **more}


@asynccontextmanager
async def at_work(folder: Path, config: Path) -> AsyncIterator[tuple[Raw, httpx.AsyncClient]]:
    """The process, once all its servers are ready, and a client of it."""
    with serving(folder, "--config", config) as (process, url):
        async with client(url) as http:
            with anyio.fail_after(6 * PATIENCE):
                await ready(http)
                yield process, http


async def ready(http: httpx.AsyncClient) -> None:
    while (await http.get("/readyz")).status_code != 200:
        await anyio.lowlevel.checkpoint()


async def ask(http: httpx.AsyncClient, server: str, method: str, **params: Any) -> httpx.Response:
    """The answer of a server, or of the joined endpoint if the name is ""."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope()}}
    path = f"/{server}/mcp" if server else "/mcp"
    return await http.post(path, content=json.dumps(message), headers=merged(routing(method, params.get("name"))))


async def call(http: httpx.AsyncClient, server: str, tool: str, **arguments: Any) -> httpx.Response:
    return await ask(http, server, "tools/call", name=tool, arguments=arguments)


async def text(http: httpx.AsyncClient, server: str, tool: str, **arguments: Any) -> str:
    answer = (await call(http, server, tool, **arguments)).json()
    said: str = answer["result"]["content"][0]["text"]
    return said


async def listed(http: httpx.AsyncClient, server: str) -> list[str]:
    answer = await ask(http, server, "tools/list")
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


@pytest.mark.slow
async def test_bridge_servers_are_served_and_counted(tmp_path: Path) -> None:
    other = started(env={"KEY": SECRET}, tools={"deny": ["leave"], "rename": {"pid": "number"}})
    async with served(tokens=(SECRET,)) as site:
        remote = {"url": f"http://127.0.0.1:{site.port}/mcp", "token": SECRET}
        config = configured(
            tmp_path, others={"other": other, "remote": remote}, trace="trace", **{"log-level": "debug"}
        )
        async with at_work(tmp_path, config) as (process, http):
            assert await listed(http, "other") == ["digest", "number"]
            assert await text(http, "other", "digest", variable="KEY") == sha256(SECRET.encode()).hexdigest()
            assert (await text(http, "other", "number")).isdigit()
            assert "leave" in (await call(http, "other", "leave")).json()["error"]["message"]
            await listed(http, "remote")
            assert await text(http, "remote", "echo", text="x") == "x"
            raw, found = (await http.get("/metrics")).text, await metrics(http)
            process.process.terminate()
            assert process.wait() == 0
            log = process.stderr()
    assert found["mcp_requests_total"]["remote", "tools/call", "echo"] == 1
    assert found["mcp_requests_total"]["other", "tools/call", "other"] == 1
    assert found["mcp_server_up"] == {("prompts",): 1, ("other",): 1, ("remote",): 1}
    assert 'path="/other/mcp",server="other",version="3' in raw
    assert re.search(r" \[other\]: \S+: other: a word on stderr\n", log)
    for said in (raw, log, (tmp_path / "trace").read_text()):
        assert SECRET not in said


@pytest.mark.slow
async def test_a_missing_program_is_reported_with_the_reason(tmp_path: Path) -> None:
    config = configured(tmp_path, others={"other": {"command": ["/there/is/none", SECRET]}})
    with serving(tmp_path, "--config", config) as (process, url):
        async with client(url) as http:
            with anyio.fail_after(6 * PATIENCE):
                said: Json = {"status": "starting"}
                while said["status"] in ("starting", "ready"):
                    said = (await http.get("/readyz")).json()["servers"]["other"]
            answer = (await call(http, "other", "pid")).json()
            assert (await metrics(http))["mcp_server_up"] == {("prompts",): 1, ("other",): 0}
            told = (await http.get("/metrics")).text
        process.process.terminate()
        assert process.wait() == 0
        log = process.stderr()
    assert said["status"] == "degraded"
    assert "No such file" in said["reason"]
    assert "the server other is not available" in json.dumps(answer)
    assert SECRET not in json.dumps([said, answer, told]) + log


@pytest.mark.slow
def test_an_unresponsive_server_ends_with_the_program(tmp_path: Path) -> None:
    deaf = {"command": [sys.executable, "-m", "tests.servers.gateway.serve.deaf"], "cwd": str(ROOT)}
    with serving(tmp_path, "--config", configured(tmp_path, others={"deaf": deaf}, join=True)) as (process, _):
        assert process.process.stderr is not None
        while not (found := re.search(rb"pid (\d+)", line := process.process.stderr.readline())):
            assert line, "it ended"
        process.process.terminate()
        assert process.wait() == 0
        assert not is_alive(int(found[1]))


def offer(path: Path, **descriptions: str) -> None:
    """Make the tiny server offer these tools."""
    schema = {"type": "object"}
    tools = [{"name": name, "description": said, "inputSchema": schema} for name, said in descriptions.items()]
    # The server may be reading it.
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(tools))
    fresh.replace(path)


@pytest.mark.slow
async def test_a_changed_tool_is_withheld_until_it_is_accepted(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    offer(tools, a="Is a.", b="Is b.")
    command = [sys.executable, "-I", "-S", str(TINY), str(tools)]
    config = configured(tmp_path, others={"other": {"command": command, "pin": True}})
    pin = ["pin", "other", "--config", str(config)]
    async with at_work(tmp_path, config) as (process, http):
        assert await listed(http, "other") == ["a", "b"]
        offer(tools, a="Is another.", b="Is b.")
        assert await listed(http, "other") == ["b"]
        assert "the definition of a changed since it was pinned" in await text(http, "other", "a")
        assert await to_thread.run_sync(main, pin) == 1
        assert await to_thread.run_sync(main, [*pin, "--accept", "a"]) == 0
        assert await listed(http, "other") == ["a", "b"]
        assert await text(http, "other", "a") == "{}"
        process.process.terminate()
        assert process.wait() == 0
        log = process.stderr()
    said = "other: withheld, because their definitions do not match the pins: a; accept with: mcp-server-bundle pin"
    assert log.count(said) == 1
