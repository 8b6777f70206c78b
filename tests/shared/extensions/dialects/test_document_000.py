"""Servers whose peers speak document 000, in memory. The official schemas have no dialects, so none are checked."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from shared import CallToolResult, Context, ImageContent, Server, TextContent, ToolError
from shared.protocol.types.base import CLIENT_CAPABILITIES
from shared.testing import connected
from shared.transports.memory import MemoryTransport
from tests.shared.server.peer import PATIENCE, server
from tests.wire import CLIENT_INFO

Json = dict[str, Any]


class Talk:
    """The peer's end."""

    def __init__(self, end: MemoryTransport) -> None:
        self._end = end

    async def send(self, **message: Any) -> None:
        with anyio.fail_after(PATIENCE):
            await self._end.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> Json:
        with anyio.fail_after(PATIENCE):
            return json.loads(await self._end.receive_bytes())

    async def ask(self, method: str, params: Any = None, *, id: Any = 1) -> Any:
        """The result of a request, or its error."""
        await self.send(method=method, params=params, id=id)
        answer = await self.receive()
        assert answer["id"] == id
        return answer["result"] if "result" in answer else answer["error"]


@asynccontextmanager
async def talking(app: Server[Any]) -> AsyncIterator[Talk]:
    async with connected(app, dialects=True) as end:
        yield Talk(end)


def app() -> Server[Any]:
    """A server with tools, resources, a template and a prompt."""
    made = server()

    @made.tool()
    async def read_file(path: str) -> str:
        """Reads a file."""
        if path == "gone":
            raise ToolError("no such file")
        return f"what is in {path}"

    @made.tool()
    async def count(text: str) -> dict[str, int]:
        """Counts letters."""
        return {"letters": len(text)}

    @made.tool()
    async def both() -> list[TextContent]:
        """Gives two texts."""
        return [TextContent(text="a"), TextContent(text="b")]

    @made.tool()
    async def draw() -> CallToolResult:
        """Gives data and a picture of it."""
        picture = ImageContent(data="eA==", mime_type="image/png")
        return CallToolResult(content=[picture], structured_content={"May": 3})

    @made.tool()
    async def fail() -> CallToolResult:
        """Fails with two texts."""
        return CallToolResult(content=[TextContent(text="no"), TextContent(text="luck")], is_error=True)

    @made.resource("note://all", mime_type="text/plain")
    async def notes() -> str:
        """All notes."""
        return "a, b"

    @made.resource("note:///{name}{?lines}")
    async def note(name: str, lines: int = 1) -> str:
        """One note."""
        return f"{lines} of {name}"

    @made.resource("picture://all")
    async def picture() -> bytes:
        """No text."""
        return b"x"

    @made.prompt()
    async def hello() -> str:
        """Greets."""
        return "hello"

    made.page_size = 2
    return made


# mcp/initialize


async def test_initialize_returns_the_server_and_its_methods_once():
    async with talking(app()) as talk:
        initialized = await talk.ask(
            "mcp/initialize", {"transports": ["stdio"], "authentication": {"type": "oauth2"}}
        )
        assert (await talk.ask("mcp/initialize"))["code"] == -32600
    assert (initialized["name"], initialized["version"]) == ("test", "1")
    own = ["mcp/initialize", "mcp/listTools", "mcp/listResources", "mcp/tool/execute", "mcp/resource/read"]
    assert initialized["methods"][:5] == own
    assert {"mcp/ping", "mcp/tools/list", "mcp/prompts/get", "mcp/subscriptions/listen"} < set(initialized["methods"])
    assert "mcp/resources/subscribe" not in initialized["methods"]


async def test_every_method_of_initialize_is_served():
    async with talking(app()) as talk:
        for method in (await talk.ask("mcp/initialize"))["methods"]:
            answer = await talk.ask(method, {"x": 1}) if "listen" not in method else {}
            assert "code" not in answer or answer["code"] in (-32600, -32602), method


# Tools


async def test_list_tools_returns_all_tools_as_an_array():
    async with talking(app()) as talk:
        tools = await talk.ask("mcp/listTools")
    assert [one["toolId"] for one in tools] == ["test/read_file", "test/count", "test/both", "test/draw", "test/fail"]
    assert tools[0]["description"] == "Reads a file."
    assert tools[0]["inputSchema"]["required"] == ["path"]


async def test_a_tool_is_found_by_its_name_in_camel_case_or_snake_case():
    async with talking(app()) as talk:
        for tool in ("test/readFile", "test/read_file", "readFile", "read_file", "Test/ReadFile"):
            assert await talk.ask("mcp/tool/execute", {"toolId": tool, "inputs": {"path": "x"}}) == "what is in x"
        error = await talk.ask("mcp/tool/execute", {"toolId": "filesystem/readFile", "inputs": {}})
        assert error == {"code": -32602, "message": "this server is 'test'; call its tools as test/NAME"}


async def test_execute_returns_the_plain_result_of_the_tool():
    picture = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    async with talking(app()) as talk:
        assert await talk.ask("mcp/tool/execute", ["count", {"text": "abc"}]) == {"letters": 3}
        both = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        assert await talk.ask("mcp/tool/execute", ["both", {}]) == both
        drawn = {"content": [picture], "structuredContent": {"May": 3}}
        assert await talk.ask("mcp/tool/execute", ["draw", {}]) == drawn


async def test_failed_calls_and_reads_return_error_codes():
    async with talking(app()) as talk:
        for params, code, message in (
            ({"toolId": "readFile", "inputs": {"path": "gone"}}, -32603, "no such file"),
            ({"toolId": "fail", "inputs": {}}, -32603, "no\nluck"),
            ({"toolId": "readFile", "inputs": {}}, -32602, "path"),
            ({"toolId": "nothing", "inputs": {}}, -32602, "unknown tool: nothing"),
            ({"toolId": "readFile"}, -32602, "inputs"),
            ({"name": "read_file", "arguments": {}}, -32602, "toolId"),
            ([], -32602, "toolId"),
        ):
            error = await talk.ask("mcp/tool/execute", params)
            assert (error["code"], message in error["message"]) == (code, True)
        for params, message in (
            ({"resourceId": "other://x"}, "not found"),
            ({"resourceId": "note:///{name}{?lines}"}, "'name'"),
            ({"resourceId": "note:///x", "query": {"lines": []}}, "lines"),
            ({"resourceId": "note:///x", "query": "lines=1"}, "query"),
            ({"uri": "note://all"}, "resourceId"),
        ):
            error = await talk.ask("mcp/resource/read", params)
            assert (error["code"], message in error["message"]) == (-32602, True)


async def test_a_tool_that_needs_client_input_is_refused():
    made = app()

    @made.tool()
    async def sign(ctx: Context[Any]) -> str:
        """Asks for a signature."""
        return (await ctx.ask_to_visit("page", "Please sign.", "https://example.org")).action

    async with talking(made) as talk:
        meta = {CLIENT_CAPABILITIES: {"elicitation": {"url": {}}}}
        error = await talk.ask("mcp/tool/execute", {"toolId": "sign", "inputs": {}, "_meta": meta})
        assert error["code"] == -32021
        assert await talk.ask("mcp/ping") == {}


# Resources


async def test_list_resources_returns_resources_and_templates_as_an_array():
    async with talking(app()) as talk:
        notes, picture, note = await talk.ask("mcp/listResources", [])
    assert (notes["resourceId"], notes["description"]) == ("note://all", "All notes.")
    assert notes["querySchema"] == {"type": "object", "properties": {}}
    assert picture["resourceId"] == "picture://all"
    assert note["resourceId"] == "note:///{name}{?lines}"
    assert note["querySchema"]["properties"]["lines"]["type"] == "integer"
    assert note["querySchema"]["required"] == ["name"]


async def test_a_query_fills_the_template_or_extends_the_uri():
    async with talking(app()) as talk:
        for params, text in (
            ({"resourceId": "note://all"}, "a, b"),
            ({"resourceId": "note:///a%20b", "query": {}}, "1 of a b"),
            ({"resourceId": "note:///{name}{?lines}", "query": {"name": "a b", "lines": 2}}, "2 of a b"),
            ({"resourceId": "note:///x", "query": {"lines": 3}}, "3 of x"),
            (["note:///x?lines=4"], "4 of x"),
            ({"resourceId": "note:///x?lines=4", "query": {"other": True}}, "4 of x"),
            ({"resourceId": "note:///x", "query": {"lines": None, "other": ["y"]}}, "1 of x"),
        ):
            assert await talk.ask("mcp/resource/read", params) == text
        (contents,) = await talk.ask("mcp/resource/read", {"resourceId": "picture://all"})
        assert contents["blob"] == "eA=="  # contents that are not text come unchanged


# Methods of the specification


# Errors


async def test_methods_of_a_dialect_are_unknown_in_a_standard_session():
    async with talking(app()) as talk:
        await talk.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO})
        for method in ("mcp/listTools", "dialects/000/listTools"):
            assert await talk.ask(method, {}) == {"code": -32601, "message": f"method not found: {method}"}
