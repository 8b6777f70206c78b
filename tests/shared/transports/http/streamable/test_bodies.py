"""Decoding of large bodies."""

import asyncio

from shared.steps import Steps
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
