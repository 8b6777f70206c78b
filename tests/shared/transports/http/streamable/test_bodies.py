"""Decoding of large bodies."""

import asyncio
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from shared.protocol.http.rules import Headers, Refusal
from shared.steps import Steps
from shared.transports.http.streamable import bodies as bodies_module
from shared.transports.http.streamable.bodies import Bodies


async def test_each_decoding_step_of_a_large_body_yields_to_other_clients() -> None:
    """Other tasks run between the decoding steps, and before the validation."""
    turns = list[str]()

    def decode(body: bytes) -> Steps[int]:
        for step in ("first", "second"):
            turns.append(step)
            asyncio.get_running_loop().call_soon(turns.append, "others")
            if step == "first":
                yield
        return len(body)

    assert await Bodies(4_000_000).decode("a", decode, bytes(1_000_000)) == 1_000_000
    assert turns == ["first", "others", "second", "others"]


async def test_a_body_takes_memory_until_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_module, "_MAX_BODIES_BYTES", 0)
    size, may_end, results = 400_000, False, list[Any]()
    bodies = Bodies(size)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": bytes(size)}

    def decode(body: bytes) -> Steps[int]:
        while not may_end:
            yield
        return len(body)

    async def read() -> None:
        http: Any = SimpleNamespace(
            headers=Headers({}), client="a", receive=receive, reply=SimpleNamespace(unreported_bytes=0)
        )
        results.append(await bodies.read(http, decode))

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(read)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            # One client may use half of the memory for four bodies.
            assert [isinstance(result, Refusal) for result in results] == [True] * (number == 2)
        may_end = True
    await read()
    assert results[1:] == [size, size, size]
