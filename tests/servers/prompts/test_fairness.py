"""What takes long waits for its client's turn."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.servers.prompts.serving import folder, inside

FILES = {"hello.md": "---\ndescription: Says hello.\n---\nHello!\n"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "render_prompt", "arguments": {"name": "hello"}}),
        ("tools/call", {"name": "search_prompts", "arguments": {}}),
        ("prompts/get", {"name": "hello"}),
        ("prompts/list", {}),
        ("resources/read", {"uri": "prompt://"}),
        ("resources/list", {}),
    ],
)
async def test_it_begins_when_it_is_its_clients_turn(tmp_path: Path, method: str, params: dict[str, Any]) -> None:
    async with inside(folder(tmp_path / "library", FILES)) as peer, anyio.create_task_group() as tasks:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await peer.request(method, **params))

        async with AsyncExitStack() as others:
            for _ in range(4):
                await others.enter_async_context(peer.running.turns.take(""))
            tasks.start_soon(ask)
            with anyio.fail_after(30):
                while not peer.running.turns.waiting:
                    await anyio.sleep(0)
            assert not answers
        with anyio.fail_after(30):
            while not answers:
                await anyio.sleep(0)
        assert "result" in answers[0]
