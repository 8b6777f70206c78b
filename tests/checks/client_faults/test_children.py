"""Children that do what no server should: each call ends with a typed error or is answered, and nothing is left. What
they say that is no answer is in `tests/shared/client/test_connect.py`, and the life of processes in
`tests/shared/transports/child/test_process.py`."""

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
from shared.protocol.types.client import Root
from tests.shared.client import child
from tests.shared.client.leavings import nothing_left
from tests.shared.client.small import text_of

CHILD = Path(child.__file__)
BIG = "x" * 1_000_000
"""More than a pipe takes."""
MANY = 20_000
"""Answers to so many questions are more than a pipe takes."""


@asynccontextmanager
async def connected(*fault: str, **options: Any) -> AsyncIterator[Client]:
    command = [sys.executable, "-I", "-S", str(CHILD), *fault]
    async with nothing_left():
        with anyio.fail_after(30):
            given: dict[str, Any] = {"mode": "handshake", **options}
            async with connect_stdio(command, ClientOptions(**given)) as client:
                yield client


async def test_a_server_that_ends_before_it_begins() -> None:
    with pytest.raises(ConnectionError):
        async with connected("exits_when_asked"):
            pass


@pytest.mark.parametrize("mode", ["auto", "handshake"])
async def test_a_server_that_never_answers(mode: str) -> None:
    with pytest.raises(TimeoutError, match="did not answer"):
        async with connected("is_deaf", mode=mode, probe_seconds=0.05, opening_seconds=0.05):
            pass


async def test_a_server_that_reads_nothing_more() -> None:
    async with connected("reads_nothing_more") as client:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await client.raw.call_tool("work", {"text": BIG}, timeout=0.05)


async def test_a_server_that_leaves_a_child() -> None:
    async with connected() as client:
        assert text_of(await client.raw.call_tool("work", {"fault": "has_a_child"})) == "done"


async def test_a_line_cut_anywhere() -> None:
    """What has no line end is taken where it is whole."""
    whole = len('{"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "done"}]}}')
    async with connected(restart=True) as client:
        for size in range(whole):
            with pytest.raises(ConnectionError):
                await client.raw.call_tool("work", {"fault": "stops_in_a_line", "size": size})
        assert text_of(await client.raw.call_tool("work", {"fault": "stops_in_a_line", "size": whole})) == "done"


async def test_a_flood_of_questions() -> None:
    """Most are refused: nobody answers so many at once."""
    under_way, most = 0, 0

    async def roots() -> list[Root]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await anyio.sleep(0)
        under_way -= 1
        return []

    async with connected(roots=roots) as client:
        assert text_of(await client.raw.call_tool("work", {"fault": "questions", "size": 900})) == "done"
    assert 0 < most <= 100


@pytest.mark.parametrize("fault", ["notes", "pings", "questions"])
async def test_a_server_that_says_much_and_reads_nothing_meanwhile(fault: str) -> None:
    """Nobody waits for the other for ever: what we owe is bounded, and what is more gets no answer."""
    async with connected() as client:
        assert text_of(await client.raw.call_tool("work", {"fault": fault, "size": MANY})) == "done"
        assert text_of(await client.raw.call_tool("work")) == "done"
