"""Restarts of a crashed server: at once the first time, then after longer pauses, without leaks."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect_stdio
from shared.client.connection.changes import Change
from shared.client.connection.restart import MAX_PAUSE_SECONDS, STABLE_SECONDS, Pauses
from shared.client.options import ClientOptions
from tests.descriptors import left_open, settled_descriptors
from tests.shared.client.small import text_of

CRASHING = """
import json, os, sys
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
answers = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "tools/call": {"content": [{"type": "text", "text": str(os.getpid())}]},
    "prompts/list": {"prompts": []},
}
if os.path.exists(sys.argv[1] + ".mute"):
    del answers["initialize"]
for line in sys.stdin:
    asked = json.loads(line)
    answers["prompts/list"]["prompts"].append(asked["method"])
    if asked.get("params", {}).get("name") == "crash":
        os._exit(3)
    if asked.get("params", {}).get("name") == "hang":
        os.close(1)
    elif asked["method"] in answers:
        result = answers[asked["method"]]
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""A server that answers each tool with its process id, except `crash` and `hang`, which closes only its stdout. Its
prompts are the methods of its requests. It does not answer unknown methods, nor `initialize` while there is a file
whose name ends in `.mute`."""


@pytest.fixture
def starts(tmp_path: Path, short_pauses: None) -> Path:
    """The file with the process id of each start, one per line."""
    return tmp_path / "starts"


@asynccontextmanager
async def connected(starts: Path, **options: Any) -> AsyncIterator[Client]:
    command = [sys.executable, "-S", "-c", CRASHING, str(starts)]
    with anyio.fail_after(30):
        given: dict[str, Any] = {"mode": "handshake", "restart": True, **options}
        async with connect_stdio(command, ClientOptions(**given)) as client:
            yield client


async def pid(client: Client) -> str:
    return text_of(await client.raw.call_tool("pid"))


async def lose(client: Client, how: str = "crash") -> None:
    with pytest.raises(ConnectionError, match="the server ended the connection"):
        await client.raw.call_tool(how)


async def give_up(client: Client, seconds: float) -> None:
    with pytest.raises(TimeoutError, match="not be reopened"):
        await client.raw.call_tool("pid", timeout=seconds)


async def lose_out(client: Client) -> None:
    with pytest.raises(ConnectionError):
        await client.raw.call_tool("pid")


@pytest.mark.parametrize("how", ["crash", "hang"])
async def test_the_next_call_starts_a_new_server(how: str, starts: Path) -> None:
    async with connected(starts) as client:
        first = await pid(client)
        await lose(client, how)
        assert await pid(client) == await pid(client) != first
        with pytest.raises(ProcessLookupError):
            os.kill(int(first), 0)
    assert len(starts.read_text().split()) == 2


async def test_a_restarted_server_is_not_probed_again(starts: Path) -> None:
    opening = ["initialize", "notifications/initialized", "prompts/list"]
    async with connected(starts, mode="auto", probe_seconds=0.1) as client:
        assert await client.raw.list_prompts() == ["server/discover", *opening]
        await lose(client)
        assert await client.raw.list_prompts() == opening


async def test_without_restart_a_lost_server_stays_lost(starts: Path) -> None:
    async with connected(starts, restart=False) as client:
        await lose(client)
        await lose(client, "pid")
    assert len(starts.read_text().split()) == 1


async def test_concurrent_calls_share_a_new_server(starts: Path) -> None:
    pids: list[str] = []
    async with connected(starts) as client:
        await lose(client)

        async def call() -> None:
            pids.append(await pid(client))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(call)
    assert len(pids) == 10
    assert len(set(pids)) == 1


async def test_calls_fail_while_the_server_cannot_be_restarted(starts: Path) -> None:
    async with connected(starts) as client:
        await lose(client)
        starts.unlink()
        starts.mkdir()  # makes its script fail
        await lose(client, "pid")
        starts.rmdir()
        assert await pid(client) == starts.read_text().strip()


async def test_a_call_that_waits_for_a_restart_times_out(starts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.client.connection.restart.FIRST_SECONDS", 1_000.0)  # more than the test has
    async with connected(starts) as client:
        await lose(client)
        await lose(client)
        async with anyio.create_task_group() as tasks:  # one of them waits for the other
            for seconds in (0.01, 0.02):
                tasks.start_soon(give_up, client, seconds)
    assert len(starts.read_text().split()) == 2


async def test_a_client_closed_during_the_pause_starts_no_server(
    starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.client.connection.restart.FIRST_SECONDS", 1_000.0)  # more than the test has
    async with anyio.create_task_group() as tasks, connected(starts) as client:
        await lose(client)
        await lose(client)
        tasks.start_soon(lose_out, client)
        await anyio.wait_all_tasks_blocked()
    assert len(starts.read_text().split()) == 2


async def test_a_client_closed_during_a_restart_ends_waiting_calls(starts: Path) -> None:
    async with anyio.create_task_group() as tasks, connected(starts) as client:
        await lose(client)
        starts.with_suffix(".mute").touch()
        tasks.start_soon(lose_out, client)
        while len(starts.read_text().split()) < 2:
            await anyio.lowlevel.checkpoint()


async def test_a_restarted_server_gets_the_subscriptions(starts: Path) -> None:
    async with connected(starts) as client, client.changes(["memo://one"]) as changes:
        await lose(client)
        assert await anext(changes) == Change("missed")
        assert "resources/subscribe" in await client.raw.list_prompts()
    assert len(starts.read_text().split()) == 2


async def test_a_closed_client_starts_no_server(starts: Path) -> None:
    async with connected(starts) as client:
        await lose(client)
    await lose(client, "pid")
    assert len(starts.read_text().split()) == 1


@pytest.mark.slow
async def test_many_restarts_leave_no_descriptors_or_processes(starts: Path) -> None:
    async with connected(starts):  # the first server opens descriptors that the event loop keeps
        pass
    before = settled_descriptors()
    async with connected(starts) as client:
        for _ in range(20):
            await lose(client)
        await pid(client)
        assert len(anyio.get_running_tasks()) < 12
    assert len(starts.read_text().split()) == 22
    assert left_open(before) == []
    for one in starts.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(one), 0)


# Pauses


def starts_at(pauses: Pauses, *lives: float) -> list[float]:
    """The wait before each start, for servers with these lifetimes."""
    now, waits = 1_000.0, list[float]()
    for life in lives:
        waits.append(pauses.remaining(now + life))
        now += life + waits[-1]
        pauses.record_start(now)
    return waits


def test_the_pause_doubles_with_each_crash_up_to_30_seconds() -> None:
    assert starts_at(Pauses(), *[0.0] * 9) == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


def test_the_lifetime_of_a_server_shortens_its_pause() -> None:
    assert starts_at(Pauses(), 0, 0.25, 5, 0) == [0, 0.25, 0, 2]


def test_a_long_lifetime_resets_the_pause() -> None:
    assert starts_at(Pauses(), *[0.0] * 9, STABLE_SECONDS, 0)[-3:] == [MAX_PAUSE_SECONDS, 0, 0.5]


def test_a_cancelled_wait_does_not_lengthen_the_pause() -> None:
    pauses = Pauses()
    starts_at(pauses, *[0.0] * 9)
    last = 1_000.0 + 0.5 + 1 + 2 + 4 + 8 + 16 + 30 + 30
    assert [pauses.remaining(last + after) for after in (0, 10, 20, 30)] == [30, 20, 10, 0]
