"""`export` through the front door: the link it gives, and what is read there."""

import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.servers.sqlite.serving import ERAS, Peer, inside, served
from tests.wire import PATIENCE, start_http

pytestmark = pytest.mark.slow


async def exported(peer: Peer, query: str, **arguments: Any) -> dict[str, Any]:
    """The link."""
    result = await peer.call("export", query=query, **arguments)
    assert "isError" not in result, result
    link: dict[str, Any] = result["content"][0]
    return link


async def contents(peer: Peer, uri: str) -> dict[str, Any]:
    (found,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("era", ERAS)
async def test_a_link_leads_to_the_rows(file: Path, era: str) -> None:
    async with served(file, era=era) as peer:
        result = await peer.call("export", query="SELECT n, name FROM numbers WHERE n < ?", parameters=[2])
        link, text = result["content"]
        uri = link["uri"] if era >= "2025-06-18" else link["text"].removeprefix("data.csv: ")
        found = await contents(peer, uri)
    assert found["text"] == "n,name\r\n0,number 0\r\n1,number 1\r\n"
    if era >= "2025-06-18":
        assert (link["mimeType"], link["size"], link["description"]) == ("text/csv", len(found["text"]), "2 rows")
    assert text["text"].startswith("2 rows, ")


@pytest.mark.parametrize("format", ["json", "jsonl"])
async def test_json_is_exported_too(file: Path, format: str) -> None:
    async with inside(file) as peer:
        link = await exported(peer, "SELECT x'00' AS a", format=format)
        text = (await contents(peer, link["uri"]))["text"]
    cell = {"type": "blob", "bytes": 1, "base64": "AA=="}
    expected = {"json": [{"columns": ["a"], "rows": [[cell]]}], "jsonl": [["a"], [cell]]}[format]
    assert [json.loads(line) for line in ([text] if format == "json" else text.splitlines())] == expected


async def test_what_is_too_large_for_an_answer_is_read_in_parts_of_whole_characters(file: Path) -> None:
    query = "SELECT n, 'é\"' || name AS name FROM numbers"
    async with served("--max-result", "5000", file) as peer:
        uri = (await exported(peer, query))["uri"]
        error = (await peer.request("resources/read", uri=uri))["error"]
        assert error["data"] == {"uri": uri, "uriTemplate": f"{uri}{{?offset,length}}"}
        text, offset = "", 0
        while part := (await contents(peer, f"{uri}?offset={offset}"))["text"]:
            text += part
            offset += len(part.encode())
    rows = [f'{n},"é""number {n}"' for n in range(1_000)]
    assert text.split("\r\n") == ["n,name", *rows, ""]


async def test_a_part_that_begins_within_a_character_is_bytes(file: Path) -> None:
    async with inside(file) as peer:
        uri = (await exported(peer, "SELECT 'é' AS a"))["uri"]
        part = await contents(peer, f"{uri}?offset=4&length=1")
    assert base64.b64decode(part["blob"]) == "é".encode()[1:]


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_an_export_that_is_not_there_is_not_found(file: Path, era: str) -> None:
    async with served(file, era=era) as peer:
        answer = await peer.request("resources/read", uri="sqlite-export:///nothing.csv")
    assert answer["error"]["code"] == (-32602 if era == "2026-07-28" else -32002)


async def test_an_export_over_the_limit_is_an_error(file: Path) -> None:
    async with inside("--max-export", "1000", file) as peer:
        error = await peer.error("export", query="SELECT * FROM numbers")
    assert error.startswith("too_large: the export has more than 1,000 bytes")


@asynccontextmanager
async def two_sessions(file: Path) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Two clients of one server over HTTP, where nobody has a token."""
    async with start_http([sys.executable, "-m", "servers.sqlite", str(file)]) as url:
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        one, other = (httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) for _ in range(2))
        async with one, other:
            for client in (one, other):
                client_info = {"name": "test", "version": "1"}
                hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
                answer = await client.post("/mcp", json=message("initialize", **hello))
                client.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
            yield one, other


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def answer_of(client: httpx.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    text = (await client.post("/mcp", json=message(method, **params), timeout=PATIENCE)).text
    (found,) = [line.partition("data:")[2] or line for line in text.splitlines() if '"jsonrpc"' in line]
    return json.loads(found)  # type: ignore[no-any-return]


async def test_without_tokens_an_export_belongs_to_its_session(file: Path) -> None:
    async with two_sessions(file) as (one, other):
        call = {"name": "export", "arguments": {"query": "SELECT 7 AS secret"}}
        uri = (await answer_of(one, "tools/call", **call))["result"]["content"][0]["uri"]
        mine = await answer_of(one, "resources/read", uri=uri)
        stolen = await answer_of(other, "resources/read", uri=uri)
    assert mine["result"]["contents"][0]["text"] == "secret\r\n7\r\n"
    assert stolen["error"]["code"] == -32002


async def test_without_tokens_a_cursor_belongs_to_its_session(file: Path) -> None:
    query = {"query": "SELECT n FROM numbers", "max_rows": 1}
    async with two_sessions(file) as (one, other):
        first = await answer_of(one, "tools/call", name="read_query", arguments=query)
        cursor = first["result"]["structuredContent"]["next_cursor"]
        stolen = await answer_of(other, "tools/call", name="read_query", arguments={**query, "cursor": cursor})
        mine = await answer_of(one, "tools/call", name="read_query", arguments={**query, "cursor": cursor})
    assert stolen["result"]["content"][0]["text"].startswith("bad_cursor: ")
    assert mine["result"]["structuredContent"]["rows"] == [[1]]
