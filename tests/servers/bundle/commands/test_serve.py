"""`python -m servers serve` as a process: all servers on one port, while one crashes at its start and one hangs."""

import json
import os
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from servers.bundle.commands.serve import main
from servers.catalog import CATALOG
from tests.raw import ROOT, Raw, listening
from tests.servers.bundle.refusals import not_refused
from tests.shared.transports.http.http_wire import PATIENCE, Json, envelope, merged, routing

SERVE = [sys.executable, "-m", "servers", "serve", "--port", "0"]
FAULTY = {
    "crash": "    raise RuntimeError('a secret detail of /secret/path')\n    yield",
    "hang": "    await anyio.sleep_forever()\n    yield",
    "cling": "    yield\n    await anyio.to_thread.run_sync(threading.Event().wait)",
}
"""What the lifespan of each faulty server does."""


def faulty(folder: Path, *names: str) -> Path:
    """Writes a catalog with the servers of the bundle and those called `names`, whose code is beside it."""
    catalog = yaml.safe_load(CATALOG.read_text(encoding="utf-8"))
    for name in names:
        (folder / f"faulty_{name}").mkdir()
        (folder / f"faulty_{name}" / "server.py").write_text(
            "import threading\nimport anyio\nfrom shared import Implementation, Server\n"
            f"app = Server(Implementation(name={name!r}, version='1'))\n"
            f"@app.lifespan\nasync def _open(_opening):\n{FAULTY[name]}\n"
        )
        texts = {"title": name, "version": "1", "summary": name, "description": name, "category": "testing"}
        catalog["servers"].append({"name": name, "module": f"faulty_{name}", "transports": ["http"], **texts})
    path = folder / "catalog.yaml"
    path.write_text(yaml.safe_dump(catalog))
    return path


def configured(folder: Path, *names: str, **options: Any) -> Path:
    """Writes a configuration of the four servers and those called `names`."""
    (folder / "a.txt").write_text("hello")
    servers: Json = {"filesystem": {"roots": ["."]}, "sqlite": {"demo": True}, "fetch": {}, "prompts": {}}
    path = folder / "bundle.yaml"
    path.write_text(json.dumps({**options, "servers": servers | dict.fromkeys(names)}))
    return path


@contextmanager
def serving(folder: Path, *arguments: str | Path) -> Iterator[tuple[Raw, str]]:
    """Starts `serve`; yields the process and its URL."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    with Raw([*SERVE, *map(str, arguments)], env=env) as process:
        url = listening(process).rstrip("/")
        assert process.process.stderr is not None
        process.process.stderr.readline()
        yield process, url


class Clients:
    """Clients of all servers, which count their requests and outcomes."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.errors: Counter[tuple[str, str, str]] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()
        self.sessions: list[tuple[str, Json]] = []
        self._id = 0

    async def post(self, server: str, message: Json, headers: Json | None = None) -> httpx.Response:
        return await self.http.post(f"/{server}/mcp", content=json.dumps(message), headers=merged(headers))

    async def ask(self, server: str, method: str, params: Json, session: Json | None) -> httpx.Response:
        """Sends a request, with or without a session, and counts it with its outcome."""
        self._id += 1
        headers = session
        if session is None:
            params = {**params, "_meta": envelope()}
            headers = routing(method, params.get("name"))
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        answer = await self.post(server, message, headers)
        tool = params.get("name", "")
        labels = (server, method if method in METHODS else "other", "other" if tool.startswith("made-up") else tool)
        self.requests[labels] += 1
        body = answer.json()
        if "error" in body or body["result"].get("isError"):
            self.errors[labels] += 1
        return answer

    async def visit(self, number: int) -> None:
        """Opens a session with one of the servers, which stays open, and sends a few requests without a session."""
        server = list(WORK)[number % len(WORK)]
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        answer = await self.ask(server, "initialize", params, {})
        session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        await self.post(server, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        for used in (session, None):
            for tool, arguments in (*WORK[server], (f"made-up-{number}", {})):
                await self.ask(server, "tools/call", {"name": tool, "arguments": arguments}, used)
            await self.ask(server, f"made/up{number}", {}, used)
        self.sessions.append((server, session))
        for faulty in ("crash", "hang"):
            refused = await self.post(faulty, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert (refused.status_code, refused.headers["retry-after"].isdigit()) == (503, True)
            self.refused[faulty, "503"] += 1


# Successful and failing requests.
WORK: dict[str, list[tuple[str, Json]]] = {
    "filesystem": [("read_text_file", {"path": "a.txt"}), ("read_text_file", {"path": "/etc/passwd"})],
    "sqlite": [("list_tables", {}), ("read_query", {"query": "SELECT FROM"})],
    "fetch": [("fetch", {"url": "http://127.0.0.1:1/"})],
    "prompts": [("search_prompts", {"query": "commit"})],
}
METHODS = {"initialize", "tools/call"}


async def metrics(http: httpx.AsyncClient) -> dict[str, Counter[tuple[str, ...]]]:
    """Returns the metrics by name, then by the values of the given labels; errors of all kinds are added up."""
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for family in text_string_to_metric_families((await http.get("/metrics")).text):
        for sample in family.samples:
            chosen = ("server", "method", "tool") if "method" in sample.labels else ("server", "status")
            labels = tuple(sample.labels[name] for name in chosen if name in sample.labels)
            found.setdefault(sample.name, Counter())[labels] += int(sample.value)
    return found


@asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=None, limits=limits) as http:
        yield http


async def _ready(http: httpx.AsyncClient, **expected: str) -> None:
    """Waits until each server has its expected state; checks the status of the whole too."""
    states: dict[str, str] = {}
    with anyio.fail_after(6 * PATIENCE):
        while states != expected:
            answer = await http.get("/readyz")
            states = {name: one["status"] for name, one in answer.json()["servers"].items()}
            assert answer.status_code == (200 if set(states.values()) == {"ready"} else 503)


ALL_READY = {"filesystem": "ready", "sqlite": "ready", "fetch": "ready", "prompts": "ready"}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sessions", [16, 200])
async def test_other_servers_serve_while_one_crashes_and_one_hangs(sessions: int, tmp_path: Path) -> None:
    catalog, config = faulty(tmp_path, "crash", "hang"), configured(tmp_path, "crash", "hang")
    with serving(tmp_path, "--config", config, "--catalog", catalog) as (process, url):
        async with client(url) as http:
            await _ready(http, **ALL_READY, crash="failed", hang="starting")
            clients = Clients(http)
            async with anyio.create_task_group() as tasks:
                room = anyio.CapacityLimiter(40)

                async def visit(number: int) -> None:
                    async with room:
                        await clients.visit(number)

                for number in range(sessions):
                    tasks.start_soon(visit, number)
                assert (await http.get("/healthz")).status_code == 200
            await _ready(http, **ALL_READY, crash="failed", hang="starting")
            readiness = (await http.get("/readyz")).text
            found = await metrics(http)
            for server, session in clients.sessions:
                assert (await http.delete(f"/{server}/mcp", headers=merged(session))).status_code == 200
            assert not any((await metrics(http))["mcp_sessions"].values())
        assert "RuntimeError" in readiness
        assert "secret" not in readiness
        assert found["mcp_requests_total"] == clients.requests
        assert found["mcp_request_duration_seconds_count"] == clients.requests
        assert found["mcp_request_errors_total"] == clients.errors
        assert found["mcp_http_refused_total"] == clients.refused
        assert found["mcp_sessions"] == Counter((server,) for server, _ in clients.sessions)
        assert found["mcp_server_up"] == Counter({(name,): 1 for name in ALL_READY})
        process.process.terminate()
        assert process.wait() == 0
        assert "[crash]" in (log := process.stderr())
        assert "a secret detail of /secret/path" in log


def test_serve_needs_no_configuration_file(tmp_path: Path) -> None:
    with serving(tmp_path, "prompts", "sqlite") as (process, url):
        exposition = httpx.get(f"{url}/metrics", timeout=PATIENCE, trust_env=False).text
        assert set(re.findall(r'mcp_server_info{path="(.*?)"', exposition)) == {"/prompts/mcp", "/sqlite/mcp"}
        process.process.terminate()
        assert process.wait() == 0
        assert process.stderr() == ""


@pytest.mark.slow
def test_a_server_that_does_not_stop_is_abandoned(tmp_path: Path) -> None:
    config = tmp_path / "bundle.yaml"
    config.write_text("servers: {cling: {}, prompts: {}}")
    with serving(tmp_path, "--config", config, "--catalog", faulty(tmp_path, "cling")) as (process, url):
        while httpx.get(f"{url}/readyz", timeout=PATIENCE, trust_env=False).status_code != 200:
            pass
        process.process.terminate()
        assert process.wait() == 1
        assert "[cling]: the server did not stop in time and was abandoned" in process.stderr()


@pytest.mark.slow
def test_the_token_is_read_from_its_file_and_never_printed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    config = tmp_path / "bundle.yaml"
    config.write_text("token-file: token\nlog-level: debug\ntrace: trace\nservers: {prompts: {}}")
    with serving(tmp_path, "--config", config) as (process, url):
        for headers, status in (({}, 401), ({"authorization": "Bearer hunter2"}, 404)):
            answer = httpx.get(f"{url}/x", headers=headers, timeout=PATIENCE, trust_env=False)
            assert answer.status_code == status
        process.process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert "hunter2" not in process.stderr() + (tmp_path / "trace").read_text()


REFUSED = [
    (["--host", "0.0.0.0", "fetch"], "--host 0.0.0.0 is reachable from other machines: set a token with --token"),
    (["--host", "0.0.0.0", "--no-auth"], "filesystem: other machines can reach it, and no directory was chosen: "),
    (
        ["filesystem", "--", "~/Documents"],
        "'~/Documents' is not the name of a server; with this command, a server takes its dir",
    ),
    (["fech"], "there is no server 'fech' in the catalog; available: filesystem, "),
    (["--config", "/there/is/none"], "/there/is/none: No such file or directory"),
    (["--catalog", "/there/is/none"], "/there/is/none: No such file or directory"),
    (["--transport", "stdio"], "unrecognized arguments: --transport"),
    (["--max-calls", "0"], "--max-calls: it must be greater than or equal to 1"),
    (["--token-file", "/there/is/none"], "--token-file: /there/is/none: No such file or directory"),
    (["--trace", "/there/is/none"], "--trace: /there/is/none: No such file or directory"),
]


def test_unusable_arguments_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert not not_refused(capsys, main, REFUSED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "reason"),
    [("--port", "can't listen on 127.0.0.1 port "), ("--allowed-host", "not a host or an origin")],
)
def test_errors_while_starting_are_reported_in_one_line(option: str, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        value = str(taken.getsockname()[1]) if option == "--port" else "a b"
        with Raw([*SERVE, option, value, "prompts"]) as process:
            assert process.wait() == 2
            stderr = process.stderr()
    assert stderr.startswith(f"python -m servers serve: {reason}")
    assert len(stderr.splitlines()) == 1
