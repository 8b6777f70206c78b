"""A program that is spoken to in a dialect: real processes on stdio."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.wire import Wire

pytestmark = pytest.mark.slow


def filesystem(folder: Path, *options: str) -> Wire:
    return Wire([sys.executable, "-m", "servers.filesystem", *options, str(folder)], check=False)


def message(method: str, params: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, **more}


async def test_the_example_of_document_000_works_as_it_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("one\n")
    async with filesystem(tmp_path) as wire:
        await wire.send(
            message("mcp/tool/execute", {"toolId": "filesystem/readFile", "inputs": {"path": str(file)}}, id=1)
        )
        assert await wire.receive() == {"jsonrpc": "2.0", "id": 1, "result": "one\n"}
        await wire.send(message("mcp/initialize", {}, id=None))
        assert (await wire.receive())["result"]["name"] == "filesystem"
        await wire.send(message("mcp/resources/subscribe", {"uri": file.as_uri()}, id=2))
        assert (await wire.receive())["result"] == {}
        file.write_text("two\n")
        told = await wire.receive()
    assert told == message("mcp/notifications/resources/updated", {"uri": file.as_uri()})


async def test_the_first_line_of_document_002_is_answered_as_printed(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("one\n")
    async with filesystem(tmp_path) as wire:
        await wire.send(message("initialize", {}, id="1"))
        assert (await wire.receive())["result"]["version"] == "0.7.0"
        await wire.send({"method": "read_resource", "params": {"uri": file.as_uri()}, "id": "req-1"})
        read = await wire.receive()
    content = [{"type": "text", "text": "one\n", "mimeType": "text/plain"}]
    moment = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert read == {
        "id": "req-1",
        "result": {"content": content, "isError": False, "meta": {"lastModified": moment}},
    }


async def test_off_refuses_it(tmp_path: Path) -> None:
    async with filesystem(tmp_path, "--dialects", "off") as wire:
        await wire.send(message("mcp/listTools", {}, id=1))
        error = (await wire.receive())["error"]
        assert error["code"] == -32600
        assert 'send "initialize" first' in error["message"]
        await wire.send(message("initialize", {}, id=2))
        assert (await wire.receive())["error"]["message"] == "protocolVersion: Field required"
        await wire.initialize()
        assert (await wire.request("mcp/listTools", {}))["error"]["code"] == -32601
