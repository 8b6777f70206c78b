"""Tasks in numbers, clients that vanish, and servers that stop."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared import Context, Implementation, Server
from shared.contracts import TaskLimits
from shared.extensions.tasks import tasks
from shared.extensions.tasks.runner import STOPPED, tasks_of
from shared.protocol.types.tasks import TASKS
from shared.server.run import Run
from tests.clock import forward
from tests.raw import INITIALIZE, INITIALIZED, Json, Raw, request
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, Peer, talking

HAS_TASKS: Json = {"extensions": {TASKS: {}}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
COMMAND = [sys.executable, "-m", "servers.everything"]
SECONDS = 600.0


class Many:
    """A server whose tasks wait for the test, or give back so many bytes."""

    def __init__(self, **limits: Any) -> None:
        self.go = anyio.Event()
        self.app: Server[Any] = Server(Implementation(name="many", version="1"), extensions=[tasks()])
        self.app.task_limits = TaskLimits(seconds=SECONDS, **limits)

        @self.app.tool(task="required")
        async def hold() -> str:
            """Wait."""
            await self.go.wait()
            return "done"

        @self.app.tool(task="required")
        async def fill(size: int) -> str:
            """Give back so much."""
            return "x" * size

        @self.app.tool(task="required")
        async def ask(ctx: Context[Any]) -> str:
            """Ask for the roots."""
            return str(len(await ctx.roots()))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Run[Any]]:
        with anyio.fail_after(PATIENCE + 10 * SECONDS):
            async with self.app.open() as running:
                yield running


async def begin(peer: Peer, tool: str, /, **arguments: Any) -> str:
    asked: Json = {} if peer.version == STATELESS else {"task": {}}
    answer = await peer.request("tools/call", {"name": tool, "arguments": arguments, **asked})
    result = answer["result"]
    id_: str = (result if peer.version == STATELESS else result["task"])["taskId"]
    return id_


async def get(peer: Peer, id: str) -> Json:
    found: Json = (await peer.request("tasks/get", {"taskId": id}))["result"]
    return found


async def over(peer: Peer, id: str) -> Json:
    while (found := await get(peer, id))["status"] in ("working", "input_required"):
        await anyio.lowlevel.checkpoint()
    return found


# How many


def memory() -> int:
    """How many KiB of memory this process has."""
    return int(re.findall(r"VmRSS:\s+([0-9]+) kB", Path("/proc/self/status").read_text())[0])


@pytest.mark.timeout(600)
async def test_the_number_of_tasks_is_limited() -> None:
    most = 10_000
    many = Many(total=most, of_one_client=most)
    async with many.open() as running, talking(running, STATELESS, HAS_TASKS) as peer:
        before = memory()
        ids = [await begin(peer, "hold") for _ in range(most)]
        assert memory() - before < 16 * most + 20_000
        for _ in range(10):
            assert "too many tasks" in (await peer.call("hold"))["error"]["message"]
        assert len(running.calls) == most
        many.go.set()
        assert (await over(peer, ids[-1]))["status"] == "completed"
        await running.calls.drain()
        assert not tasks_of(running).local_tasks


async def use(peer: Peer, number: int) -> None:
    """One task, of one of several kinds, which comes to its end or not."""
    id_ = await begin(peer, ("hold", "fill", "ask", "fill")[number % 4], **({"size": 10} if number % 2 else {}))
    if number % 4 == 0 or number % 8 == 2:
        await peer.request("tasks/cancel", {"taskId": id_})
    elif number % 4 == 1:
        await over(peer, id_)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [STATELESS, NEWEST_HANDSHAKE])
async def test_expired_tasks_leak_nothing(version: str) -> None:
    many, capabilities = Many(), {**HAS_TASKS, "roots": {}}
    async with many.open() as running, talking(running, version, capabilities) as peer:
        await peer.request("tools/list")
        before, kept = len(asyncio.all_tasks()), tasks_of(running)
        for number in range(1_000):
            await use(peer, number)
        forward(SECONDS + 1)
        while len(kept.background) or len(running.calls):
            await anyio.lowlevel.checkpoint()
        store: Any = kept.store  # what is left is seen nowhere but inside it
        kinds = store, store._timers, store._listeners, store._counts_by_client, store._sizes
        assert [len(one) for one in kinds] == [0] * 5
        assert store._bytes == 0
        assert not kept.local_tasks
        assert len(asyncio.all_tasks()) == before


# Clients that vanish


async def test_lost_listeners_leak_nothing() -> None:
    many = Many()
    async with many.open() as running, talking(running, STATELESS, HAS_TASKS) as peer:
        id_ = await begin(peer, "hold")
        store: Any = tasks_of(running).store  # who listens is seen nowhere else
        heard = len(store._listeners[id_])
        async with talking(running, STATELESS, HAS_TASKS) as other:
            await other.begin("subscriptions/listen", {"notifications": {"taskIds": [id_]}})
            await other.other("notifications/tasks")
            assert len(store._listeners[id_]) == heard + 1
        while len(store._listeners[id_]) > heard:
            await anyio.lowlevel.checkpoint()


async def test_lost_clients_waiting_for_a_result_leak_nothing() -> None:
    many = Many()
    async with many.open() as running, talking(running, NEWEST_HANDSHAKE) as peer:
        id_ = await begin(peer, "hold")
        store: Any = tasks_of(running).store  # who listens is seen nowhere else
        heard = len(store._listeners[id_])
        async with talking(running, NEWEST_HANDSHAKE) as other:
            await other.begin("tasks/result", {"taskId": id_})
            while len(store._listeners[id_]) == heard:
                await anyio.lowlevel.checkpoint()
        while len(store._listeners[id_]) > heard:
            await anyio.lowlevel.checkpoint()


# Servers that stop


def _stateless(message: Json) -> Json:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        CAPABILITIES: {**HAS_TASKS, "elicitation": {"form": {}}},
    }
    return {**message, "params": {**message["params"], "_meta": meta}}


def test_a_signal_fails_running_tasks_for_listeners() -> None:
    with Raw(COMMAND) as server:
        server.send(_stateless(request(1, "tools/call", {"name": "confirm_delete", "arguments": {"filename": "a"}})))
        id_ = server.answer(1)["result"]["taskId"]
        server.send(_stateless(request(2, "subscriptions/listen", {"notifications": {"taskIds": [id_]}})))
        server.until(lambda one: one.get("params", {}).get("status") == "input_required")
        server.process.send_signal(signal.SIGTERM)
        rest = server.rest()
        told = rest[0]["params"]
        assert (told["status"], told["statusMessage"]) == ("failed", STOPPED)
        assert rest[1]["id"] == 2
        assert server.wait() == 0


def test_a_signal_answers_clients_waiting_for_a_result() -> None:
    task = {"name": "slow_compute", "arguments": {"seconds": 3_600}, "task": {}}
    with Raw(COMMAND) as server:
        server.send(INITIALIZE, INITIALIZED, request(1, "tools/call", task))
        id_ = server.answer(1)["result"]["task"]["taskId"]
        server.send(request(2, "tasks/result", {"taskId": id_}), request(3, "ping"))
        server.answer(3)
        server.process.send_signal(signal.SIGTERM)
        assert server.answer(2)["error"]["message"] == STOPPED
        assert server.wait() == 0
