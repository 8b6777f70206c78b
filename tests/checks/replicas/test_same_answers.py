"""Answers of a server are the same, to the byte, with a store and without."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.checks.interop.peers import DATABASE, LIBRARY, command
from tests.raw import Json, Raw, lines, listening, request
from tests.redis_server import RedisServer
from tests.wire import CLIENT_INFO, PATIENCE, STATELESS

SERVERS = ["filesystem", "sqlite", "postgres", "fetch", "prompts", "everything"]
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LISTS = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
META = {
    f"io.modelcontextprotocol/{name}": value
    for name, value in (("protocolVersion", STATELESS), ("clientInfo", CLIENT_INFO), ("clientCapabilities", {}))
}


@pytest.mark.parametrize("server", SERVERS)
def test_answers_are_the_same_with_and_without_a_store(
    redis_server: RedisServer, tmp_path: Path, server: str
) -> None:
    (tmp_path / LIBRARY).mkdir()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute("CREATE TABLE t (x)")
    alone = told(command(server, tmp_path))
    assert b'"tools":[{' in alone["2025-11-25 tools/list"]
    replica = told([*command(server, tmp_path), "--store", redis_server.url, "--store-prefix", f"same-{server}:"])
    assert replica == alone


def told(words: list[str]) -> dict[str, bytes]:
    """The bodies of the answers about the server, in every version."""
    environment = {**os.environ, "MCP_STATE_KEY": "of-all-replicas" * 3}
    with Raw([*words, "--transport", "http", "--port", "0"], env=environment) as program:
        url = listening(program)
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            return {
                f"{version} {method}": body
                for version in (*HANDSHAKES, STATELESS)
                for method, body in answers(client, url, version).items()
            }


def answers(client: httpx.Client, url: str, version: str) -> dict[str, bytes]:
    """The bodies in that version, by the method."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if version == STATELESS:
        said = headers | {"mcp-protocol-version": version}
        asked = {method: ({"_meta": META}, said | {"mcp-method": method}) for method in ("server/discover", *LISTS)}
        return {method: body(client, url, method, *rest) for method, rest in asked.items()}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}
    answer = client.post(url, content=lines(request(1, "initialize", hello)), headers=headers)
    session = headers | {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": version}
    client.post(url, content=lines({"jsonrpc": "2.0", "method": "notifications/initialized"}), headers=session)
    return {"initialize": answer.content, **{method: body(client, url, method, {}, session) for method in LISTS}}


def body(client: httpx.Client, url: str, method: str, params: Json, headers: dict[str, str]) -> bytes:
    """What a request gets, a result or an error."""
    return client.post(url, content=lines(request(1, method, params)), headers=headers).content
