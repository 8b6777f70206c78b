"""What a connection leaves behind when it is over: nothing."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Settings
from shared.server.dispatch.connection import serve
from shared.server.run import Run
from shared.transports.memory import MemoryTransport, memory_pair
from tests.descriptors import descriptors, settled_descriptors
from tests.raw import INITIALIZE, INITIALIZED, Json, call, request, stateless
from tests.slow_server import URI
from tests.slow_server import app as slow
from tests.wire import PATIENCE

LISTEN = {"notifications": {"resourceSubscriptions": [URI], "toolsListChanged": True}}


@asynccontextmanager
async def connected(running: Run[Any], *messages: Json) -> AsyncIterator[MemoryTransport]:
    """A peer that has sent these messages, of a server that runs; over when `serve` has returned."""
    ours, theirs = memory_pair(10_000)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, running, theirs)
            for message in messages:
                await ours.send_bytes(json.dumps(message).encode())
            yield ours
            ours.close()
    theirs.close()


async def answer(end: MemoryTransport, id: int | str) -> Json:
    while True:
        message: Json = json.loads(await end.receive_bytes())
        if "method" not in message and message.get("id") == id:
            return message


async def begun(end: MemoryTransport) -> None:
    while b"begun" not in await end.receive_bytes():
        pass


class Census:
    """What there is of all that a connection might leave behind."""

    def __init__(self, running: Run[Any]) -> None:
        self._running = running
        self._tasks = len(asyncio.all_tasks())
        self._descriptors = settled_descriptors()

    async def check(self) -> None:
        # A thread that watches closes what it has after the watch itself.
        with anyio.move_on_after(PATIENCE):
            while settled_descriptors() != self._descriptors:
                await anyio.sleep(0.01)
        assert settled_descriptors() == self._descriptors
        assert len(asyncio.all_tasks()) == self._tasks
        assert self._running.changes.subscribed_resources == 0
        assert not self._running.changes._listeners


async def _connect_and_leave(running: Run[Any], kind: int) -> None:
    """One connection of one of several kinds, each of which ends with something under way."""
    match kind % 5:
        case 0:
            async with connected(running, INITIALIZE, INITIALIZED, request(1, "ping")) as end:
                await answer(end, 1)
        case 1:
            async with connected(
                running, INITIALIZE, INITIALIZED, request(1, "resources/subscribe", {"uri": URI})
            ) as end:
                assert "result" in await answer(end, 1)
                assert running.changes.subscribed_resources == 1
        case 2:
            async with connected(running, stateless(request("a", "subscriptions/listen", LISTEN))) as end:
                assert b"acknowledged" in await end.receive_bytes()
        case 3:
            async with connected(running, INITIALIZE, INITIALIZED, call(1, "hold", seconds=0)) as end:
                await begun(end)
        case _:
            declared = {**INITIALIZE["params"], "capabilities": {"elicitation": {}}}
            async with connected(running, request(0, "initialize", declared), INITIALIZED, call(1, "ask")) as end:
                while b"elicitation/create" not in await end.receive_bytes():
                    pass


async def test_a_thousand_connections_leak_nothing() -> None:
    async with slow.open() as running:
        await _connect_and_leave(running, 0)
        census = Census(running)
        for number in range(1_000):
            await _connect_and_leave(running, number)
        await census.check()


def watches() -> int:
    return sum("inotify" in name for name in descriptors())


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_subscription_to_a_file_leaks_no_watch(era: str, tmp_path: Path) -> None:
    file = tmp_path / "watched"
    file.write_text("one")
    if era == "handshake":
        wanted = [INITIALIZE, INITIALIZED, request(1, "resources/subscribe", {"uri": file.as_uri()})]
    else:
        wanted = [
            stateless(
                request(1, "subscriptions/listen", {"notifications": {"resourceSubscriptions": [file.as_uri()]}})
            )
        ]
    async with filesystem.open(Settings(roots=[tmp_path])) as running:
        await anyio.wait_all_tasks_blocked()
        census, before = Census(running), watches()
        threads = 0
        for size in range(1, 7):
            async with connected(running, *wanted) as end:
                with anyio.fail_after(PATIENCE):
                    while watches() == before:
                        await anyio.lowlevel.checkpoint()
                file.write_text("two" * size)
                while b"notifications/resources/updated" not in await end.receive_bytes():
                    pass
            with anyio.fail_after(PATIENCE):
                while watches() != before:
                    await anyio.lowlevel.checkpoint()
            threads = threads or threading.active_count()
        # How many idle worker threads are kept varies by one or two; what must not be is one more each time.
        assert threading.active_count() <= threads + 2
        await anyio.lowlevel.checkpoint()
        await census.check()
