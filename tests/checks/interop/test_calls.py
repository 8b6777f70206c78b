"""What happens while a call of the official client's runs: progress, log messages, cancellation."""

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import LoggingMessageNotificationParams

from .peers import Case


async def test_progress_of_two_calls_is_separate(case: Case) -> None:
    seen: dict[int, list[float]] = {3: [], 5: []}

    async with case.connect("bench") as client, anyio.create_task_group() as tasks:

        async def call(steps: int) -> None:
            async def progress(done: float, _total: float | None, _message: str | None) -> None:
                seen[steps].append(done)

            await client.call_tool("count", {"steps": steps}, progress_callback=progress)

        tasks.start_soon(call, 3)
        tasks.start_soon(call, 5)
    assert seen == {3: [1, 2, 3], 5: [1, 2, 3, 4, 5]}


async def test_call_beyond_its_timeout_is_stopped(case: Case, key: str) -> None:
    """The client's own limit for one request."""
    began = anyio.Event()

    async def progress(_progress: float, _total: float | None, _message: str | None) -> None:
        began.set()

    async with case.connect("bench") as client:
        await client.call_tool("echo", {"text": "the server is up"})
        while not began.is_set():
            with pytest.raises(MCPError, match=r"[Tt]imed out"):
                await client.call_tool("hold", {"key": key}, read_timeout_seconds=0.5, progress_callback=progress)
        assert (await client.call_tool("when_stopped", {"key": key})).content[0].text == "stopped"


@pytest.mark.parametrize("mode", ["auto"])
async def test_no_log_messages_without_a_level(case: Case) -> None:
    seen: list[str] = []

    async def logging(params: LoggingMessageNotificationParams) -> None:
        seen.append(params.level)

    async with case.connect("bench", logging_callback=logging) as client:
        await client.call_tool("chatter")
    assert not seen
