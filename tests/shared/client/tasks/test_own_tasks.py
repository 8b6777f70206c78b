"""Tasks of the client: requests with `params.task` from a server of 2025-11-25, written by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.client.tasks.own_tasks import MAX_TASKS
from shared.concurrency import background
from shared.errors import RpcError
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from shared.protocol.types.tasks import RELATED_TASK
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response
from shared.transports.memory import MemoryTransport, memory_pair
from tests.shared.client.small import End

FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
INFO = {"name": "asking", "version": "1"}


class Asking:
    """A server that only sends requests."""

    def __init__(self, end: MemoryTransport) -> None:
        self._end = end
        self._last_id = 0
        self.is_open = anyio.Event()
        self.capabilities: dict[str, Any] = {}

    async def open(self, version: str) -> None:
        """Performs the handshake."""
        first = (await self._end.receive())[0]
        assert isinstance(first, Request)
        self.capabilities = first.params["capabilities"]
        result = {"protocolVersion": version, "capabilities": {}, "serverInfo": INFO}
        await self._end.send([Outgoing(Response(first.id, result))])
        assert isinstance((await self._end.receive())[0], Notification)
        self.is_open.set()

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Returns the result of a request. Raises RpcError for an error."""
        self._last_id += 1
        await self._end.send([Outgoing(Request(self._last_id, method, params))])
        (answer,) = await self._end.receive()
        if isinstance(answer, Failure):
            raise RpcError(answer.message, code=answer.code)
        assert isinstance(answer, Response)
        return answer.result


class Filling:
    """An elicit handler that waits until `may` is set."""

    def __init__(self) -> None:
        self.may = anyio.Event()
        self.was_cancelled = anyio.Event()

    async def elicit(self, _form: ElicitForm) -> ElicitResult:
        """Answers."""
        try:
            await self.may.wait()
        except anyio.get_cancelled_exc_class():
            self.was_cancelled.set()
            raise
        return ElicitResult(action="accept", content={})


@asynccontextmanager
async def _asking(filling: Filling, version: str = "2025-11-25") -> AsyncIterator[Asking]:
    ours, theirs = memory_pair()
    server = Asking(theirs)
    with anyio.fail_after(30):
        async with background() as crew:
            crew.start_soon(server.open, version)
            options = ClientOptions(mode=version, reconnect=False, elicit=filling.elicit, heartbeat_seconds=None)
            try:
                async with Client(End(ours), options):
                    await server.is_open.wait()
                    yield server
            finally:
                theirs.close()


async def _task(server: Asking, **task: Any) -> dict[str, Any]:
    created: dict[str, Any] = (await server.ask("elicitation/create", **FORM, task=task))["task"]
    return created


async def test_the_server_gets_the_task_id_before_the_answer() -> None:
    filling = Filling()
    async with _asking(filling) as server:
        task = await _task(server, ttl=60_000)
        assert (task["status"], task["ttl"]) == ("working", 60_000)
        assert await server.ask("tasks/get", taskId=task["taskId"]) == task
        filling.may.set()
        result = await server.ask("tasks/result", taskId=task["taskId"])
        assert result == {"action": "accept", "content": {}, "_meta": {RELATED_TASK: {"taskId": task["taskId"]}}}
        assert (await server.ask("tasks/get", taskId=task["taskId"]))["status"] == "completed"


async def test_a_task_can_be_cancelled_once() -> None:
    filling = Filling()
    async with _asking(filling) as server:
        id_ = (await _task(server))["taskId"]
        assert (await server.ask("tasks/get", taskId=id_))["status"] == "working"
        assert (await server.ask("tasks/cancel", taskId=id_))["status"] == "cancelled"
        await filling.was_cancelled.wait()
        for method in ("tasks/cancel", "tasks/result"):
            with pytest.raises(RpcError, match="cancelled") as error:
                await server.ask(method, taskId=id_)
            assert error.value.code == -32602


async def test_tasks_are_declared_for_requests_with_a_handler() -> None:
    async with _asking(Filling()) as server:
        assert server.capabilities["tasks"] == {"cancel": {}, "requests": {"elicitation": {"create": {}}}}


async def test_older_versions_have_no_tasks() -> None:
    filling = Filling()
    filling.may.set()
    async with _asking(filling, "2025-06-18") as server:
        assert "tasks" not in server.capabilities
        assert (await server.ask("elicitation/create", **FORM, task={}))["action"] == "accept"
        with pytest.raises(RpcError) as error:
            await server.ask("tasks/get", taskId="one")
        assert error.value.code == -32601


async def test_an_unknown_task_or_an_invalid_ttl_is_refused() -> None:
    async with _asking(Filling()) as server:
        with pytest.raises(RpcError, match="no such task"):
            await server.ask("tasks/get", taskId="one")
        with pytest.raises(RpcError) as error:
            await _task(server, ttl="long")
        assert error.value.code == -32602


async def test_the_number_of_tasks_is_limited() -> None:
    filling = Filling()
    async with _asking(filling) as server:
        first, *_ = [await _task(server) for _ in range(MAX_TASKS)]
        with pytest.raises(RpcError, match="too many"):
            await _task(server)
        filling.may.set()
        await server.ask("tasks/result", taskId=first["taskId"])
        second = await _task(server)  # the first task is over, and frees its place
        assert (await server.ask("tasks/result", taskId=second["taskId"]))["action"] == "accept"
        with pytest.raises(RpcError, match="no such task"):
            await server.ask("tasks/get", taskId=first["taskId"])


async def test_a_task_ends_after_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    filling = Filling()
    async with _asking(filling) as server:
        task = await _task(server, ttl=1)
        await filling.was_cancelled.wait()
        with pytest.raises(RpcError, match="task"):
            await server.ask("tasks/result", taskId=task["taskId"])


async def test_closing_the_client_cancels_its_tasks() -> None:
    filling = Filling()
    async with _asking(filling) as server:
        await _task(server)
    assert filling.was_cancelled.is_set()
