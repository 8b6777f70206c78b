"""The shipped nginx.conf in front of servers configured as in compose.yaml."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from websockets.sync.client import connect

from tests.checks.docker.images import TOKEN, service
from tests.checks.docker.proxy import proxied
from tests.raw import Raw, call, listening, post, request, stateless
from tests.wire import PATIENCE, Json

AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}
ISSUER, PUBLIC = "https://issuer.example.org", "https://mcp.example.org"
DISCOVER = stateless(request(1, "server/discover"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data").resolve()


@pytest.fixture(scope="module")
def ports(folder: Path) -> Iterator[dict[str, str]]:
    """Where a filesystem server and a SQLite server listen."""
    secret = folder / "token"
    secret.write_text(TOKEN)
    (folder / "data").mkdir()
    with ExitStack() as stack:
        found = {}
        for name in ("filesystem", "sqlite"):
            arguments, environment = service(name)
            environment |= {"MCP_TOKEN_FILE": str(secret), "MCP_HOST": "0.0.0.0"}
            environment |= {"MCP_AUTH_ISSUER": ISSUER, "MCP_PUBLIC_URL": f"{PUBLIC}/{name}"}
            words = [word.replace("/data", str(folder / "data")) for word in arguments]
            command = [sys.executable, "-m", f"servers.{name}", *words]
            server = stack.enter_context(Raw(command, env={**os.environ, **environment}))
            found[name] = listening(server).rsplit(":", 1)[1].removesuffix("/mcp")
        yield found


@pytest.fixture(scope="module")
def site(nginx: str, ports: dict[str, str]) -> Iterator[str]:
    with proxied(nginx, ports) as port:
        yield f"http://localhost:{port}"


def test_each_path_is_routed_to_its_server(site: str, ports: dict[str, str]) -> None:
    for name in ports:
        answer = post(f"{site}/{name}/mcp", DISCOVER, **AUTHORIZED)
        assert answer.json()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == name


def test_a_client_without_a_token_finds_the_issuer(site: str, ports: dict[str, str]) -> None:
    for name in ports:
        refused = post(f"{site}/{name}/mcp", DISCOVER)
        assert refused.status_code == 401
        path = f"/.well-known/oauth-protected-resource/{name}/mcp"
        assert f'resource_metadata="{PUBLIC}{path}"' in refused.headers["www-authenticate"]
        said = httpx.get(site + path, timeout=PATIENCE, trust_env=False).json()
        assert (said["resource"], said["authorization_servers"]) == (f"{PUBLIC}/{name}/mcp", [ISSUER])


def test_an_sse_stream_of_2024_11_05_is_proxied(site: str) -> None:
    url = f"{site}/filesystem/sse"
    with httpx.stream("GET", url, headers=AUTHORIZED, timeout=PATIENCE, trust_env=False) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: endpoint"
        address = urljoin(url, next(lines).removeprefix("data: "))
        assert post(address, request(1, "ping"), **AUTHORIZED).status_code == 202
        assert next(line for line in lines if '"id":1' in line) == 'data: {"jsonrpc":"2.0","id":1,"result":{}}'


def test_a_stopped_server_does_not_affect_others(site: str) -> None:
    assert post(f"{site}/fetch/mcp", DISCOVER, **AUTHORIZED).status_code == 502


@pytest.mark.parametrize("path", ["/", "/mcp", "/nothing/mcp", "/filesystem/healthz", "/filesystem/mcp/"])
def test_other_paths_are_not_found(site: str, path: str) -> None:
    assert post(f"{site}{path}", DISCOVER, **AUTHORIZED).status_code == 404


def test_the_proxy_has_its_own_health_path(site: str) -> None:
    assert httpx.get(f"{site}/healthz", trust_env=False, timeout=PATIENCE).text == "ok\n"


def test_the_server_sees_the_token_and_the_host(site: str) -> None:
    url = f"{site}/filesystem/mcp"
    assert post(url, DISCOVER).status_code == 401
    assert post(url, DISCOVER, **AUTHORIZED, host="other.example").status_code == 403
    assert post(url, DISCOVER, **AUTHORIZED, host="localhost").status_code == 200


def test_the_size_of_a_body_is_limited(site: str) -> None:
    url = f"{site}/filesystem/mcp"
    assert post(url, stateless(call(1, "get_file_info", path="x" * 4_000_000)), **AUTHORIZED).status_code == 200
    refused = post(url, stateless(call(1, "get_file_info", path="x" * 4_200_000)), **AUTHORIZED)
    assert (refused.status_code, "nginx" in refused.text) == (413, True)


def test_excess_requests_are_refused(nginx: str, ports: dict[str, str]) -> None:
    with proxied(nginx, ports, {"rate=50r/s": "rate=1r/m", "burst=200": "burst=2"}) as port:
        url = f"http://localhost:{port}/filesystem/mcp"
        assert [post(url, DISCOVER, **AUTHORIZED).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_listen_stream_is_not_buffered(site: str, folder: Path) -> None:
    watched = folder / "data" / "watched.txt"
    watched.write_text("first")
    wanted = {"notifications": {"resourceSubscriptions": [watched.as_uri()]}}
    message = stateless(request("L", "subscriptions/listen", wanted))
    with stream(f"{site}/filesystem/mcp", message) as answer:
        arriving = events(answer)
        assert next(arriving)["method"] == "notifications/subscriptions/acknowledged"
        for text in ("second", "third"):
            watched.write_text(text)
            event = next(arriving)
            assert (event["method"], event["params"]["uri"]) == ("notifications/resources/updated", watched.as_uri())


@contextmanager
def stream(url: str, message: Json) -> Iterator[httpx.Response]:
    headers = {"accept": "application/json, text/event-stream", "mcp-method": message["method"], **AUTHORIZED}
    headers["mcp-protocol-version"] = "2026-07-28"
    with httpx.stream("POST", url, json=message, headers=headers, trust_env=False, timeout=PATIENCE) as answer:
        yield answer


def events(answer: httpx.Response) -> Iterator[Json]:
    assert answer.headers["content-type"] == "text/event-stream"
    for line in answer.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def test_a_websocket_is_proxied(site: str) -> None:
    url = f"{site.replace('http:', 'ws:')}/filesystem/mcp"
    with connect(url, additional_headers=AUTHORIZED, open_timeout=PATIENCE, close_timeout=PATIENCE) as socket:
        socket.send(json.dumps(DISCOVER))
        answer = json.loads(socket.recv(PATIENCE))
        assert answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "filesystem"
