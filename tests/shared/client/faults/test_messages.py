"""Messages that no server should send: the call that they are about ends with a typed error, and no other suffers."""

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
from shared.errors import McpError, PeerError
from shared.protocol.types.client import Root
from tests.shared.client.faults.leavings import nothing_left
from tests.shared.client.small import text_of

CHILD = Path(__file__).with_name("child_messages.py")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.process.PATIENCE", 0.1)
    monkeypatch.setattr("shared.client.connection.LAST_WORDS_SECONDS", 0.1)


@asynccontextmanager
async def connected(fault: str, **options: Any) -> AsyncIterator[Client]:
    command = [sys.executable, "-S", "-E", str(CHILD), fault]
    async with nothing_left():
        with anyio.fail_after(30):
            given: dict[str, Any] = {"mode": "handshake", **options}
            async with connect_stdio(command, ClientOptions(**given)) as client:
                yield client


MANY = 20_000
"""Answers to so many questions are more than a pipe takes."""
UNUSABLE = ["of_another_version", "of_no_version", "without_a_result", "with_a_result_and_an_error", "with_a_list"]
UNUSABLE += [
    "with_an_error_that_is_none",
    "no_utf8",
    "half_a_character",
    "no_number",
    "too_deep",
    "too_deep_without_an_end",
]
UNKNOWN = ["of_an_unknown_type", "of_a_type_that_is_none", "with_questions_that_are_none", "with_no_end_of_questions"]


@pytest.mark.parametrize("fault", ["twice", "twice_in_two_ways", "to_all_before", "notes", "pings"])
async def test_a_call_is_answered(fault: str) -> None:
    async with connected(fault) as client:
        for _ in range(3):
            assert text_of(await client.plain.call_tool("work")) == "done"
        assert text_of(await client.plain.call_tool("rest")) == "done"


@pytest.mark.parametrize("fault", UNUSABLE)
async def test_an_answer_that_is_of_no_use(fault: str) -> None:
    async with connected(fault) as client:
        with pytest.raises((ConnectionError, PeerError)):
            await client.plain.call_tool("work", timeout=5)
        assert text_of(await client.plain.call_tool("rest")) == "done"


@pytest.mark.parametrize("fault", UNKNOWN)
async def test_a_result_of_no_known_type(fault: str) -> None:
    async with connected(fault, mode="stateless") as client:
        with pytest.raises((ConnectionError, McpError)):
            await client.plain.call_tool("work", timeout=5)
        assert text_of(await client.plain.call_tool("rest")) == "done"


async def test_answers_to_others() -> None:
    async with connected("to_another") as client:
        with pytest.raises(TimeoutError):
            await client.plain.call_tool("work", timeout=0.1)
        assert text_of(await client.plain.call_tool("rest")) == "done"


@pytest.mark.parametrize("fault", ["the_same_page", "ever_new_pages"])
async def test_a_list_without_an_end(fault: str) -> None:
    async with connected(fault) as client:
        with pytest.raises(McpError):
            await client.plain.list_tools()
        assert text_of(await client.plain.call_tool("rest")) == "done"


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

    async with connected("questions", roots=roots) as client:
        assert text_of(await client.plain.call_tool("work")) == "done"
    assert 0 < most <= 100


@pytest.mark.parametrize("fault", ["pings", "questions"])
async def test_a_server_that_asks_much_and_reads_nothing_meanwhile(fault: str) -> None:
    """Nobody waits for the other for ever: what we owe is bounded, and what is more gets no answer."""
    async with connected(fault) as client:
        assert text_of(await client.plain.call_tool("work", {"size": MANY})) == "done"
        assert text_of(await client.plain.call_tool("rest")) == "done"


@pytest.mark.slow
async def test_a_line_that_is_too_long() -> None:
    async with connected("too_long") as client:
        with pytest.raises(ConnectionError):
            await client.plain.call_tool("work", {"size": 70 * 2**20})
        assert text_of(await client.plain.call_tool("rest")) == "done"
