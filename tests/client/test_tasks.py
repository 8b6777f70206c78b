"""Calls that become tasks of their server: callers get the result as ever, in either form."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared import Context, Implementation, Server, ToolError
from shared.client.client import Client
from shared.client.following import TaskState
from shared.client.options import ClientOptions
from shared.extensions.tasks import experimental, extension, tasks
from shared.kit.tasks import background
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from shared.testing import connected
from tests.client.small import End, Name

FORMS = ("2025-11-25", "2026-07-28")


@pytest.fixture(autouse=True)
def _polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (experimental, extension):
        monkeypatch.setattr(module, "POLL_MS", 20)


class Lasting:
    """A server whose tools run as tasks, and what happened in it."""

    def __init__(self) -> None:
        self.app: Server[Any] = Server(Implementation(name="lasting", version="1"), extensions=[tasks()])
        self.began = anyio.Event()
        self.go_on = anyio.Event()
        self.was_cancelled = anyio.Event()
        self.went_on = False
        for function in (self.work, self.greet, self.fail):
            self.app.tool(task="required")(function)
        self.app.tool(task="optional")(self.count)

    @asynccontextmanager
    async def connected(self, mode: str, **options: Any) -> AsyncIterator[Client]:
        """A client; every wait ends after 30 seconds."""
        with anyio.fail_after(30):
            async with (
                connected(self.app) as end,
                Client(End(end), ClientOptions(mode=mode, reconnect=False, **options)) as client,
            ):
                yield client

    async def work(self, ctx: Context[Any]) -> str:
        """Work until the test says so."""
        await ctx.progress(1, 4, "working")
        self.began.set()
        try:
            await self.go_on.wait()
        except anyio.get_cancelled_exc_class():
            self.was_cancelled.set()
            raise
        return "done"

    async def greet(self, ctx: Context[Any]) -> str:
        """Ask for a name."""
        answer = await ctx.ask("name", "Your name?", Name)
        return f"Hello {answer.data.name}" if answer.data else answer.action

    async def fail(self) -> str:
        """Fail."""
        raise ToolError("not today")

    async def count(self, ctx: Context[Any], to: int) -> str:
        """Count aloud."""
        await ctx.progress(to, to, "counted")
        return "counted"


async def _named(_form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


@pytest.mark.parametrize("mode", FORMS)
async def test_caller_gets_the_result_of_a_task(mode: str) -> None:
    server = Lasting()
    async with server.connected(mode) as client, background() as crew:
        crew.start_soon(_released, server)
        result = await client.call_tool("work")
    assert result.content[0].text == "done"  # type: ignore[union-attr]


async def _released(server: Lasting) -> None:
    await server.began.wait()
    server.go_on.set()


@pytest.mark.parametrize("mode", FORMS)
async def test_task_asks_the_handlers(mode: str) -> None:
    async with Lasting().connected(mode, elicit=_named) as client:
        result = await client.call_tool("greet")
    assert result.content[0].text == "Hello Ada"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", FORMS)
async def test_tool_that_fails_in_a_task_has_a_result(mode: str) -> None:
    async with Lasting().connected(mode) as client:
        result = await client.call_tool("fail")
    assert result.is_error
    assert result.content[0].text == "not today"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", FORMS)
async def test_caller_that_is_cancelled_cancels_the_task(mode: str) -> None:
    server, is_task = Lasting(), anyio.Event()

    async def call(client: Client) -> None:
        params = {"name": "work", "arguments": {}}
        await client.request("tools/call", params, on_task=lambda _: is_task.set())

    async with server.connected(mode) as client:
        async with background() as crew:
            crew.start_soon(call, client)
            await is_task.wait()
            await server.began.wait()
        await server.was_cancelled.wait()


@pytest.mark.parametrize("mode", FORMS)
async def test_callback_hears_how_a_task_is(mode: str) -> None:
    server, heard = Lasting(), []

    def hear(state: TaskState) -> None:
        heard.append((state.status, state.message))
        if state.message == "working, 25%":
            server.go_on.set()

    async with server.connected(mode) as client:
        await client.request("tools/call", {"name": "work", "arguments": {}}, on_task=hear)
    assert ("working", "working, 25%") in heard
