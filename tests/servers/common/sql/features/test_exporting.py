"""The tool `export` through the protocol: its link, and the contents behind it."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from servers.sqlite.server import app
from servers.sqlite.settings import Settings
from tests.servers.sqlite.serving import Peer, inside, served
from tests.shared.transports.http.http_wire import Json, listening


async def export_link(peer: Peer, query: str, **arguments: Any) -> dict[str, Any]:
    """The link that `export` returns."""
    result = await peer.call("export", query=query, **arguments)
    assert "isError" not in result, result
    link: dict[str, Any] = result["content"][0]
    return link


async def contents(peer: Peer, uri: str) -> dict[str, Any]:
    (found,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    return found  # type: ignore[no-any-return]


async def test_export_returns_a_link_to_the_rows(file: Path) -> None:
    async with inside(file) as peer:
        result = await peer.call("export", query="SELECT n, name FROM numbers WHERE n < ?", parameters=[2])
        link, text = result["content"]
        found = await contents(peer, link["uri"])
    assert found["text"] == "n,name\r\n0,number 0\r\n1,number 1\r\n"
    assert (link["mimeType"], link["size"], link["description"]) == ("text/csv", len(found["text"]), "2 rows")
    assert text["text"].startswith("2 rows, ")


@pytest.mark.slow
async def test_a_large_export_is_read_in_parts_of_whole_characters(file: Path) -> None:
    query = "SELECT n, 'é\"' || name AS name FROM numbers"
    async with served("--max-result", "5000", file) as peer:
        uri = (await export_link(peer, query))["uri"]
        error = (await peer.request("resources/read", uri=uri))["error"]
        assert error["data"] == {"uri": uri, "uriTemplate": f"{uri}{{?offset,length}}"}
        text, offset = "", 0
        while part := (await contents(peer, f"{uri}?offset={offset}"))["text"]:
            text += part
            offset += len(part.encode())
    rows = [f'{n},"é""number {n}"' for n in range(1_000)]
    assert text.split("\r\n") == ["n,name", *rows, ""]


async def test_the_uri_of_a_part_counts_the_bytes_of_its_text(file: Path) -> None:
    async with inside(file) as peer:
        uri = (await export_link(peer, "SELECT 'ééé' AS a"))["uri"]
        text, offset = "", 0
        while part := (await contents(peer, f"{uri}?offset={offset}&length=4")):
            if not part["text"]:
                break
            text += part["text"]
            offset, length = map(int, re.findall(r"=(\d+)", part["uri"]))
            offset += length
    assert text == "a\r\nééé\r\n"


async def test_exports_are_read_in_each_format_and_in_parts(file: Path) -> None:
    cell = {"type": "blob", "bytes": 1, "base64": "AA=="}
    async with inside(file) as peer:
        uris = [(await export_link(peer, "SELECT x'00' AS a", format=one))["uri"] for one in ("json", "jsonl")]
        whole, lines = [(await contents(peer, uri))["text"] for uri in uris]
        uri = (await export_link(peer, "SELECT 'é' AS a"))["uri"]
        part = await contents(peer, f"{uri}?offset=4&length=1")
        missing = await peer.request("resources/read", uri="sqlite-export:///nothing.csv")
    assert json.loads(whole) == {"columns": ["a"], "rows": [[cell]]}
    assert [json.loads(line) for line in lines.splitlines()] == [["a"], [cell]]
    # The part begins within a character, so it is bytes.
    assert base64.b64decode(part["blob"]) == "é".encode()[1:]
    assert missing["error"]["code"] == -32002


async def test_an_export_over_the_limit_is_an_error(file: Path) -> None:
    async with inside("--max-export", "1000", file) as peer:
        error = await peer.error("export", query="SELECT * FROM numbers")
    assert error.startswith("too_large: the export has more than 1,000 bytes")


async def test_without_tokens_exports_and_cursors_are_private_to_their_session(file: Path) -> None:
    query = {"query": "SELECT n FROM numbers", "max_rows": 1}

    async def ask(session: Json, method: str, **params: Any) -> Any:
        return (await site.post(site.message(method, params), session)).json()

    async with app.open(Settings(databases=[file])) as running, listening(running) as site:
        one, other = await site.initialize(), await site.initialize()
        made = await ask(one, "tools/call", name="export", arguments={"query": "SELECT 7 AS secret"})
        uri = made["result"]["content"][0]["uri"]
        mine, stolen = [await ask(session, "resources/read", uri=uri) for session in (one, other)]
        first = await ask(one, "tools/call", name="read_query", arguments=query)
        again = {**query, "cursor": first["result"]["structuredContent"]["next_cursor"]}
        refused = await ask(other, "tools/call", name="read_query", arguments=again)
        rest = await ask(one, "tools/call", name="read_query", arguments=again)
    assert mine["result"]["contents"][0]["text"] == "secret\r\n7\r\n"
    assert stolen["error"]["code"] == -32002
    assert refused["result"]["content"][0]["text"].startswith("bad_cursor: ")
    assert rest["result"]["structuredContent"]["rows"] == [[1]]
