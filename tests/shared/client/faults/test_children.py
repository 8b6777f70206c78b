"""Children that do what no server should: each call ends with a typed error or is answered, and nothing is left."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect_stdio
from shared.client.options import ClientOptions
from tests.shared.client.faults.leavings import nothing_left
from tests.shared.client.small import text_of

CHILD = Path(__file__).with_name("child.py")
BIG = "x" * 1_000_000
"""More than a pipe takes."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.process.PATIENCE", 0.1)
    monkeypatch.setattr("shared.client.connection.LAST_WORDS_SECONDS", 0.1)
    monkeypatch.setattr("shared.client.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.restart.LONGEST_SECONDS", 0.001)


@asynccontextmanager
async def connected(fault: str, **options: Any) -> AsyncIterator[Client]:
    command = [sys.executable, "-I", "-S", str(CHILD), fault]
    async with nothing_left():
        with anyio.fail_after(30):
            given: dict[str, Any] = {"mode": "handshake", **options}
            async with connect_stdio(command, ClientOptions(**given)) as client:
                yield client


@pytest.mark.parametrize("fault", ["serve", "is_stubborn", "floods_stderr", "prints_rubbish"])
async def test_a_call_is_answered(fault: str) -> None:
    async with connected(fault) as client:
        assert text_of(await client.plain.call_tool("work")) == "done"


@pytest.mark.parametrize("fault", ["exits", "exits_when_asked"])
async def test_a_server_that_ends_before_it_begins(fault: str) -> None:
    with pytest.raises(ConnectionError):
        async with connected(fault):
            pass


@pytest.mark.parametrize("fault", ["is_mute", "is_deaf"])
@pytest.mark.parametrize("mode", ["auto", "handshake"])
async def test_a_server_that_never_answers(fault: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.client.opening.OPENING_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match="no answer"):
        async with connected(fault, mode=mode, probe_seconds=0.05):
            pass


@pytest.mark.parametrize("command", ["no/such/program", "."])
async def test_a_server_that_never_starts(command: str) -> None:
    async with nothing_left():
        with pytest.raises(OSError):
            async with connect_stdio([command]):
                pass


async def test_a_server_that_reads_nothing_more() -> None:
    async with connected("reads_nothing_more") as client:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await client.plain.call_tool("work", {"text": BIG}, timeout=0.05)


@pytest.mark.parametrize("fault", ["closes_stdout", "kills_itself"])
@pytest.mark.parametrize("restart", [False, True])
async def test_a_server_lost_in_a_call(fault: str, restart: bool) -> None:
    async with connected(fault, restart=restart) as client:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await client.plain.call_tool("work")
        if restart:
            assert text_of(await client.plain.call_tool("rest")) == "done"


async def test_a_server_that_leaves_a_child() -> None:
    async with connected("has_a_child") as client:
        assert text_of(await client.plain.call_tool("work")) == "done"


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=[pytest.mark.slow])])
async def test_a_line_cut_anywhere(step: int) -> None:
    """What has no line end is taken where it is whole."""
    whole = len('{"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "done"}]}}')
    async with connected("stops_in_a_line", restart=True) as client:
        for size in range(0, whole, step):
            with pytest.raises(ConnectionError):
                await client.plain.call_tool("work", {"size": size})
        assert text_of(await client.plain.call_tool("work", {"size": whole})) == "done"
