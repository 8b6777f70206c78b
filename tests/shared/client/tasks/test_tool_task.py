"""Calls that become tasks of the server, and started tools, in both forms of tasks."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared import Context, Implementation, Server, ToolError
from shared.client.approval import Act, Denied
from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.group.group import ClientGroup
from shared.client.group.member import GroupServer
from shared.client.options import ClientOptions
from shared.client.tasks.following import TaskState
from shared.concurrency import background
from shared.errors import PeerError, TaskCancelled, TaskLost
from shared.extensions.tasks import experimental, extension, tasks
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from shared.server.run import Run
from shared.testing import connected
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.client.small import End, Name, listening, text_of

FORMS = ("2025-11-25", "2026-07-28")


@pytest.fixture(autouse=True)
def _polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (experimental, extension):
        monkeypatch.setattr(module, "POLL_MS", 20)  # servers have no option for this


class Lasting:
    """A server whose tools run as tasks, and records of their calls."""

    def __init__(self) -> None:
        self.app: Server[Any] = Server(
            Implementation(name="lasting", version="1"), extensions=[tasks(after_seconds=60)]
        )
        self.running: Any = None
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
            async with connected(self.app) as end:
                self.line = End(end)
                async with Client(self.line, ClientOptions(mode=mode, reconnect=False, **options)) as client:
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
async def test_call_tool_answers_the_input_requests_of_a_task_and_returns_its_result(mode: str) -> None:
    async with Lasting().connected(mode, elicit=_named) as client:
        assert (await client.call_tool("greet")).text == "Hello Ada"
        failed = await client.call_tool("fail")
        assert (failed.is_error, failed.text) == (True, "not today")


@pytest.mark.parametrize("mode", FORMS)
async def test_a_cancelled_caller_cancels_the_task(mode: str) -> None:
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


async def test_a_task_may_take_longer_than_a_request() -> None:
    server, results = Lasting(), []

    async def call(client: Client) -> None:
        results.append((await client.call_tool("work", timeout=5)).text)

    async with server.connected("2025-11-25") as client, background() as crew:
        crew.start_soon(call, client)
        await server.began.wait()
        await quiet()
        forward(10)
        await quiet()
        server.go_on.set()
        while not results:
            await anyio.lowlevel.checkpoint()
    assert results == ["done"]


@pytest.mark.parametrize("mode", FORMS)
async def test_on_task_gets_the_states_of_a_task(mode: str) -> None:
    server, states = Lasting(), []

    def record(state: TaskState) -> None:
        states.append((state.status, state.message))
        if state.message == "working, 25%":
            server.go_on.set()

    async with server.connected(mode) as client:
        result = await client.request("tools/call", {"name": "work", "arguments": {}}, on_task=record)
    assert ("working", "working, 25%") in states
    assert text_of(result) == "done"


async def test_progress_continues_after_a_call_became_a_task() -> None:
    server, progress_reports = Lasting(), []

    def record(progress: float, total: float | None, message: str | None) -> None:
        progress_reports.append((progress, total, message))
        server.go_on.set()

    async with server.connected("2025-11-25") as client:
        await client.list_tools()
        await client.call_tool("work", on_progress=record)
    assert progress_reports == [(1, 4, "working")]


async def test_the_progress_of_a_task_is_parsed_from_its_status_message() -> None:
    server, progress_reports = Lasting(), []

    def record(progress: float, total: float | None, message: str | None) -> None:
        progress_reports.append((progress, total, message))
        server.go_on.set()

    async with server.connected("2026-07-28") as client:
        await client.call_tool("work", on_progress=record)
    assert progress_reports == [(25, 100, "working, 25%")]


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ((3, 8, "tidying"), [(2, 8, "counting"), (3.04, 8, "tidying, 38%")]),
        ((3, None, "tidying"), [(2, 8, "counting"), (2, 8, "tidying")]),
    ],
)
async def test_progress_keeps_its_scale_when_a_call_becomes_a_task(text: Any, reports: list[Any]) -> None:
    app: Server[Any] = Server(Implementation(name="later", version="1"), extensions=[tasks(after_seconds=0.1)])
    go_on, progress_reports = anyio.Event(), []

    @app.tool(task="optional")
    async def count(ctx: Context[Any]) -> str:
        """Count."""
        await ctx.progress(2, 8, "counting")
        while not ctx.call.is_over:
            await anyio.sleep(0.01)
        await ctx.progress(*text)
        await go_on.wait()
        return "done"

    def record(progress: float, total: float | None, message: str | None) -> None:
        if message != "counting, 25%":
            progress_reports.append((progress, total, message))
        if message is not None and message.startswith("tidying"):
            go_on.set()

    with anyio.fail_after(30):
        async with connected(app) as end, Client(end, ClientOptions(mode="2026-07-28")) as client:
            await client.call_tool("count", on_progress=record)
    assert progress_reports == reports


@pytest.mark.parametrize("mode", FORMS)
async def test_a_denied_input_request_of_a_task_ends_the_call(mode: str) -> None:
    async def permit(act: Act) -> None:
        if act.kind == "elicit":
            raise Denied("not here")

    async with Lasting().connected(mode, elicit=_named, permit=permit) as client:
        # In the handshake era the server gets the refusal, as for every request, and the task fails.
        with pytest.raises(Denied if mode == "2026-07-28" else PeerError, match="not here"):
            await client.call_tool("greet")


async def test_a_client_without_tasks_cannot_call_a_tool_that_requires_a_task() -> None:
    async with Lasting().connected("2026-07-28", tasks=False) as client:
        assert text_of(await client.raw.call_tool("count", {"to": 3})) == "counted"
        with pytest.raises(PeerError) as error:
            await client.call_tool("work")
    assert error.value.code == -32021


@pytest.mark.parametrize("mode", FORMS)
async def test_a_lost_connection_ends_the_wait_for_a_task_at_once(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (experimental, extension):
        monkeypatch.setattr(module, "POLL_MS", 60_000)  # more than the test has
    server, is_task = Lasting(), anyio.Event()

    async with server.connected(mode) as client, background() as crew:

        async def lose() -> None:
            await is_task.wait()
            await server.line.aclose()

        crew.start_soon(lose)
        with pytest.raises(ConnectionError):
            await client.request("tools/call", {"name": "work"}, on_task=lambda _: is_task.set())


# Over HTTP


@pytest.mark.parametrize("mode", FORMS)
async def test_input_requests_of_a_task_over_http_reach_the_handlers(mode: str) -> None:
    server, options = Lasting(), ClientOptions(mode=mode, elicit=_named)
    async with listening(server) as (address, _), connect_http(f"http://{address}/mcp", options) as client:
        assert text_of(await client.raw.call_tool("greet")) == "Hello Ada"


# Started tools


@pytest.mark.parametrize("mode", FORMS)
async def test_a_started_tool_runs_without_a_waiting_caller(mode: str) -> None:
    server = Lasting()
    async with server.connected(mode) as client:
        started = await client.start_tool("work")
        await server.began.wait()
        state = await started.state()
        assert state is not None
        assert (state.id, state.status) == (started.id, "working")
        server.go_on.set()
        result = await started.result()
    assert result.text == "done"


@pytest.mark.parametrize("mode", FORMS)
async def test_a_started_tool_is_resumed_by_another_client(mode: str) -> None:
    server = Lasting()
    async with server.app.open() as running:
        async with _joined(running, mode) as client:
            saved = json.loads(json.dumps((await client.start_tool("work")).saved()))
        assert saved["tool"] == "work"
        server.go_on.set()
        async with _joined(running, mode) as other:
            result = await other.resume_tool(saved).result()
    assert result.text == "done"


@asynccontextmanager
async def _joined(running: Run[Any], mode: str) -> AsyncIterator[Client]:
    with anyio.fail_after(30):
        async with connected(running) as end, Client(End(end), ClientOptions(mode=mode)) as client:
            yield client


@pytest.mark.parametrize("mode", FORMS)
async def test_a_started_tool_can_be_cancelled(mode: str) -> None:
    server = Lasting()
    async with server.connected(mode) as client:
        started = await client.start_tool("work")
        await server.began.wait()
        await started.cancel()
        await server.was_cancelled.wait()
        with pytest.raises(TaskCancelled):
            await started.result()


@pytest.mark.parametrize("mode", FORMS)
async def test_a_started_tool_continues_when_its_waiting_caller_is_cancelled(mode: str) -> None:
    server, is_followed = Lasting(), anyio.Event()
    async with server.connected(mode) as client:
        started = await client.start_tool("work")
        async with background() as crew:
            crew.start_soon(started.result, lambda _: is_followed.set())
            await is_followed.wait()
        server.go_on.set()
        result = await started.result()
    assert result.text == "done"


@pytest.mark.parametrize("mode", FORMS)
async def test_an_unknown_task_is_lost(mode: str) -> None:
    async with Lasting().connected(mode) as client:
        with pytest.raises(TaskLost):
            await client.resume_tool({"tool": "work", "taskId": "none"}).result()


async def test_a_started_tool_that_answers_at_once_has_no_task() -> None:
    async with Lasting().connected("2026-07-28") as client:
        started = await client.start_tool("count", {"to": 3})
        assert started.id is None
        assert await started.state() is None
        assert await client.resume_tool(started.saved()).plain_result() == await started.plain_result()


async def test_an_invalid_handle_is_refused() -> None:
    async with Lasting().connected("2026-07-28") as client:
        with pytest.raises(ValueError, match="not a handle"):
            client.resume_tool({"tool": "work"})


async def test_a_group_starts_tools_of_its_servers() -> None:
    server = Lasting()
    async with server.app.open() as running:

        @asynccontextmanager
        async def join(options: ClientOptions) -> AsyncIterator[Client]:
            async with connected(running) as end, Client(End(end), options) as client:
                yield client

        async with ClientGroup({"one": GroupServer(join)}) as group:
            started = await group.start_tool("one__work")
            server.go_on.set()
            result = await started.result()
    assert result.text == "done"
