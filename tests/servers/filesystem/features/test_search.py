"""Searches in a thread: their progress and cancellation.

The tests call `_search` itself: a real search would end before its progress shows.
"""

import threading
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import anyio

from servers.filesystem.features import search as tools
from servers.filesystem.features.search import _search
from shared.server.dispatch.turns import MAX_CONCURRENT, Turns
from tests.clock import forward
from tests.quiet import quiet
from tests.servers.filesystem.serving import inside
from tests.servers.peers import text_of

PATIENCE = 30


class Caller:
    """A context that records progress reports."""

    budget = SimpleNamespace(seconds=45.0)

    def __init__(self):
        self.reports = []
        self.enough = threading.Event()
        self._turns = Turns()

    def turn(self):
        return self._turns.acquire("")

    async def progress(self, progress, total=None, message=None):
        self.reports.append((progress, message))
        self.enough.set()


async def test_progress_is_reported_only_while_it_grows(monkeypatch):
    monkeypatch.setattr(tools, "_REPORT_SECONDS", 0)  # or the test would take seconds
    caller = Caller()

    def search(control):
        control.examined = 1_000
        return caller.enough.wait(PATIENCE)

    assert await _search(caller, search)
    assert caller.reports == [(1_000, "1,000 entries examined")]


async def test_a_search_has_the_time_that_its_wait_for_a_turn_left():
    caller, given = Caller(), []
    caller.budget = SimpleNamespace(seconds=1_000.0)
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        for _ in range(MAX_CONCURRENT):
            await stack.enter_async_context(caller.turn())
        tasks.start_soon(_search, caller, lambda control: given.append(control._seconds))
        await quiet()
        forward(600)
        await stack.aclose()
    assert given[0] < 400


async def test_a_cancelled_search_ends_its_thread():
    begun, ended = anyio.Event(), threading.Event()

    def search(control):
        anyio.from_thread.run_sync(begun.set)
        while control.stop_reason() is None:
            pass
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_search, Caller(), search)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert ended.wait(PATIENCE)


async def test_a_search_can_run_as_a_task(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a needle\n")
    params = {"name": "search_content", "arguments": {"path": ".", "pattern": "needle"}, "task": {}}
    async with inside(tmp_path) as peer:
        task = (await peer.request("tools/call", **params))["result"]["task"]["taskId"]
        answer = await peer.request("tasks/result", taskId=task)
    assert "a.txt" in text_of(answer["result"])
