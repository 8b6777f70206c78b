"""The effect of `sys.exit()` in a program and in a tool."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import anyio
import pytest

from shared import Implementation, Server
from shared.program.process import run_program
from tests.shared.server.peer import talking


async def leave() -> None:
    """Exits after a turn of the event loop."""
    await anyio.lowlevel.checkpoint()
    sys.exit(3)


async def in_task_group() -> None:
    """Exits in a task group."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)


async def in_task() -> None:
    """Exits in an awaited task."""
    await asyncio.create_task(leave())


@pytest.mark.parametrize("prefer_uvloop", [False, True])
@pytest.mark.parametrize("way", [in_task_group, in_task])
def test_sys_exit_in_a_tool_is_an_internal_error(
    way: Callable[[], Awaitable[None]], prefer_uvloop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = Server[None](Implementation(name="test", version="1"))
    app.tool(name="fail")(way)
    errors = []

    async def main() -> None:
        async with talking(app) as peer:
            for _ in range(2):
                answer = await peer.request("tools/call", {"name": "fail", "arguments": {}})
                errors.append(answer["error"]["message"])

    assert run_program("test", main, prefer_uvloop=prefer_uvloop) == 0
    assert errors == ["internal error"] * 2
    assert "sys.exit() was called in a task" in caplog.text


@pytest.mark.parametrize("prefer_uvloop", [False, True])
def test_sys_exit_in_a_program_ends_it(prefer_uvloop: bool) -> None:
    with pytest.raises(SystemExit, match="3"):
        run_program("test", leave, prefer_uvloop=prefer_uvloop)
