"""The steps of the tutorial, each driven by the official client as a process of its own."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types import ElicitResult

from shared.client import connect

ROOT = Path(__file__).resolve().parents[3]
STEPS = sorted((ROOT / "examples" / "notes").glob("step_*.py"))
PATIENCE = 60.0
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def command(step: int) -> list[str]:
    return [sys.executable, str(STEPS[step - 1])]


@asynccontextmanager
async def client_of(step: int, **options: Any) -> AsyncIterator[Client]:
    program, *arguments = command(step)
    server = StdioServerParameters(command=program, args=arguments, env=ENVIRONMENT)
    with anyio.fail_after(PATIENCE):
        async with Client(stdio_client(server), read_timeout_seconds=PATIENCE, **options) as client:
            yield client


async def call(client: Client, tool: str, **arguments: str) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.content[0].text


async def test_a_tool_writes_a_note() -> None:
    async with client_of(1) as client:
        assert await call(client, "write_note", name="todo", text="call Ann") == "wrote todo"


async def test_a_note_is_a_resource() -> None:
    async with client_of(2) as client:
        await call(client, "write_note", name="todo", text="call Ann")
        (note,) = (await client.read_resource("note://todo")).contents
    assert note.text == "call Ann"


async def test_a_subscriber_receives_a_change() -> None:
    async with client_of(3) as client:
        await call(client, "write_note", name="my note", text="call Ann")
        uris = ["note://my%20note", "note://unknown"]
        async with client.listen(resource_subscriptions=uris) as changes:
            assert list(changes.honored.resource_subscriptions) == uris[:1]
            await call(client, "write_note", name="my note", text="call Bob")
            assert await anext(changes) == ResourceUpdated(uri="note://my%20note")


async def test_a_prompt_contains_the_note() -> None:
    async with client_of(4) as client:
        prompt = await client.get_prompt("summarize", {"name": "shopping"})
    assert prompt.messages[0].content.text.endswith("\n\nbread, milk")


@pytest.mark.parametrize(("action", "remaining"), [("accept", "[]"), ("decline", "['shopping']")])
async def test_a_note_is_deleted_if_the_user_agrees(action: str, remaining: str) -> None:
    async def answer(_context: Any, params: Any) -> ElicitResult:
        assert params.message == "Delete the note 'shopping'?"
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async with client_of(5, elicitation_callback=answer) as client:
        result = await client.call_tool("delete_note", {"name": "shopping"})
        assert result.is_error is (action == "decline")
        again = await client.call_tool("delete_note", {"name": "unknown"})
    assert again.is_error
    assert ("shopping" in again.content[0].text) is (remaining != "[]")


async def test_a_long_call_is_a_task_for_clients_that_have_tasks() -> None:
    async with client_of(6) as client:
        assert await call(client, "count_words") == '{"shopping":2}'
    with anyio.fail_after(PATIENCE):
        async with connect(command(6), env={"PYTHONPATH": str(ROOT)}) as ours:
            task = await ours.start_tool("count_words", {})
            assert "taskId" in task.saved()
            assert (await task.result()).structured_content == {"shopping": 2}
