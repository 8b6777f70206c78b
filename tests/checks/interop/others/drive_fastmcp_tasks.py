"""Drives FastMCP's client with its extension for tasks, and prints what became of each row as JSON.

The argument tells how to reach a server: `{"command": [...], "cwd": "..."}` or `{"url": "...", "token": "..."}`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import ClientTransport, StdioTransport, StreamableHttpTransport
from fastmcp_tasks import call_tool_task  # the import has every client declare the extension

SECONDS = 60.0
SLOW = ("slow_compute", {"seconds": 0.8, "label": "work"})


async def fill_in(_message: str, _type: Any, params: Any, _context: Any) -> dict[str, Any]:
    """What the user fills into a form: a name, or yes."""
    fields = params.requested_schema["properties"]
    return {name: "Ada" if field["type"] == "string" else True for name, field in fields.items()}


async def said(
    client: Client[Any], name: str, arguments: dict[str, Any] | None = None, *, fails: bool = False
) -> str:
    """The text of a result, or of an error where `fails`."""
    result = await client.call_tool(name, arguments, raise_on_error=False)
    text: str = result.content[0].text
    assert result.is_error is fails, text
    return text


async def answers_at_once(client: Client[Any]) -> None:
    assert await said(client, "greet", {"name": "Ada"}) == "Hello, Ada!"


async def follows_a_task(client: Client[Any]) -> None:
    assert await said(client, *SLOW) == "work took 0.8 seconds."


async def tells_of_a_failure(client: Client[Any]) -> None:
    assert await said(client, "failing_job", fails=True) == "the job has failed"


async def tells_of_an_error(client: Client[Any]) -> None:
    assert "the job ended with a protocol error" in await said(client, "protocol_error_job", fails=True)


async def answers_a_question(client: Client[Any]) -> None:
    assert await said(client, "confirm_delete", {"filename": "a.txt"}) == "Confirmed: a.txt"


async def answers_two_questions(client: Client[Any]) -> None:
    assert await said(client, "multi_input") == "name: accept, confirm: accept"


async def answers_before_the_task(client: Client[Any]) -> None:
    assert await said(client, "test_tool_with_task") == "Hello, Ada!"


async def looks_by_hand(client: Client[Any]) -> None:
    task = await call_tool_task(client, *SLOW)
    assert (await task.status()).status == "working"
    assert (await task.result()).content[0].text == "work took 0.8 seconds."


async def cancels_twice(client: Client[Any]) -> None:
    task = await call_tool_task(client, "slow_compute", {"seconds": 600})
    await task.cancel()
    await task.cancel()
    assert (await task.status()).status == "cancelled"


ROWS: tuple[Callable[[Client[Any]], Awaitable[None]], ...] = (
    answers_at_once,
    follows_a_task,
    tells_of_a_failure,
    tells_of_an_error,
    answers_a_question,
    answers_two_questions,
    answers_before_the_task,
    looks_by_hand,
    cancels_twice,
)


def reached(where: dict[str, Any]) -> ClientTransport:
    if "url" in where:
        return StreamableHttpTransport(where["url"], headers={"Authorization": f"Bearer {where['token']}"})
    program, *arguments = where["command"]
    return StdioTransport(program, arguments, cwd=where["cwd"], keep_alive=False)


async def outcome(client: Client[Any], row: Callable[[Client[Any]], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(SECONDS):
            await row(client)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what became of the row
        return f"{type(error).__name__}: {error}"
    return "ok"


async def main() -> None:
    async with Client(reached(json.loads(sys.argv[1])), elicitation_handler=fill_in, mode="auto") as client:
        print(json.dumps({row.__name__: await outcome(client, row) for row in ROWS}))


asyncio.run(main())
