"""Servers whose peers speak document 002, in memory. The official schemas have no dialects, so none are checked."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from shared import (
    Annotations,
    CompletionArgument,
    Context,
    Implementation,
    InvalidParams,
    Prompt,
    PromptArgument,
    ResourceNotFound,
    Server,
    TextResourceContents,
    ToolError,
)
from shared.testing import connected
from tests.shared.server.peer import PATIENCE, talking
from tests.transcript_apps import sourced

Json = dict[str, Any]


@asynccontextmanager
async def asking(app: Server[Any]) -> AsyncIterator[Any]:
    """A function that sends a request by method and params, and returns the answer without its id."""
    async with connected(app, dialects=True) as end:

        async def ask(method: str, params: Json) -> Json:
            with anyio.fail_after(PATIENCE):
                await end.send_bytes(json.dumps({"method": method, "params": params, "id": 7}).encode())
                answer = json.loads(await end.receive_bytes())
            assert answer.pop("id") == 7
            return answer

        yield ask


def made() -> Server[None]:
    app: Server[None] = Server(Implementation(name="made", version="1"), instructions="Use it.")

    @app.resource(
        "made:///bytes", mime_type="image/png", annotations=Annotations(last_modified="2025-01-01T00:00:00Z")
    )
    async def some_bytes() -> bytes:
        return b"\x00\x01"

    @app.resource("made:///parts", annotations=Annotations(last_modified="2025-01-01T00:00:00Z"))
    async def parts() -> list[TextResourceContents]:
        metas = (
            {"lastModified": "2026-01-01T00:00:00Z"},
            {"lastModified": "2026-02-01T00:00:00Z"},
            {"lastModified": 5},
        )
        return [TextResourceContents(uri="made:///parts", text="x", meta=meta) for meta in (*metas, None)]

    @app.resource("made:///closed")
    async def closed() -> str:
        raise ToolError("it is closed")

    @app.prompt()
    async def broken(count: int = 3) -> str:
        """Fails."""
        raise ToolError(f"there are {count}")

    return app


async def test_initialize_returns_the_features_and_capabilities() -> None:
    async with asking(made()) as ask:
        result = (await ask("initialize", {"version": "0.6.0"}))["result"]
    assert result == {
        "version": "0.6.0",
        "protocolVersion": "0.6.0",
        "serverInfo": {"name": "made", "version": "1"},
        "instructions": "Use it.",
        "capabilities": {"resources": {}, "prompts": {}},
        "tools": [],
        "prompts": [
            {
                "name": "broken",
                "description": "Fails.",
                "arguments": {"type": "object", "properties": {"count": {"type": "integer", "default": 3}}},
            }
        ],
    }


async def test_initialize_includes_the_prompts_of_a_source() -> None:
    async with asking(sourced()) as ask:
        prompts = (await ask("initialize", {}))["result"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["greet", "praise", "scold", "thank"]
    assert prompts[1]["arguments"] == {
        "type": "object",
        "properties": {"subject": {"type": "string"}},
        "required": ["subject"],
    }


async def test_the_default_of_an_argument_appears_only_in_the_dialect() -> None:
    class Source:
        async def page(self, context: Context[None], after: str, most: int) -> list[Prompt]:
            argument = PromptArgument(name="tone", default="calm")
            return [] if after else [Prompt(name="write", arguments=[argument])]

        async def get(self, context: Context[None], name: str, arguments: dict[str, str]) -> None:
            return None

        async def complete(
            self, context: Context[None], name: str, argument: CompletionArgument, settled: dict[str, str]
        ) -> None:
            return None

    app: Server[None] = Server(Implementation(name="made", version="1"))
    app.prompts_from(Source())
    async with asking(app) as ask:
        (prompt,) = (await ask("initialize", {}))["result"]["prompts"]
    assert prompt["arguments"]["properties"] == {"tone": {"type": "string", "default": "calm"}}
    async with talking(app) as peer:
        (prompt,) = (await peer.request("prompts/list"))["result"]["prompts"]
    assert prompt["arguments"] == [{"name": "tone"}]


async def test_a_read_has_the_last_modified_time_of_the_declaration() -> None:
    async with asking(made()) as ask:
        assert await ask("read_resource", {"uri": "made:///bytes"}) == {
            "result": {
                "content": [{"type": "blob", "blob": "AAE=", "mimeType": "image/png"}],
                "isError": False,
                "meta": {"lastModified": "2025-01-01T00:00:00Z"},
            }
        }


async def test_the_last_modified_time_of_contents_precedes_the_declared_time() -> None:
    async with asking(made()) as ask:
        read = (await ask("read_resource", {"uri": "made:///parts"}))["result"]
    assert read["meta"] == {"lastModified": "2026-02-01T00:00:00Z"}


async def test_a_failed_resource_returns_code_3002() -> None:
    async with asking(made()) as ask:
        assert await ask("read_resource", {"uri": "made:///closed"}) == {
            "error": {"code": 3002, "message": "it is closed"}
        }


async def test_a_failed_prompt_returns_code_6001() -> None:
    async with asking(made()) as ask:
        assert await ask("render_prompt", {"name": "broken", "arguments": {"count": 4}}) == {
            "error": {"code": 6001, "message": "there are 4"}
        }


async def test_errors_of_a_tool_differ_from_an_unknown_tool() -> None:
    app: Server[None] = Server(Implementation(name="made", version="1"))

    @app.tool()
    async def book(date: str) -> str:
        """Refuses."""
        raise InvalidParams("the date is in the past") if date else ResourceNotFound("calendar:")

    async with asking(app) as ask:
        for name, date, code in (("book", "x", -32602), ("book", "", -32602), ("cook", "x", 4001)):
            answer = await ask("call_tool", {"name": name, "arguments": {"date": date}})
            assert answer["error"]["code"] == code


async def test_methods_of_missing_features_are_unknown() -> None:
    async with asking(made()) as ask:
        assert (await ask("call_tool", {"name": "any"}))["error"]["code"] == -32601
