"""Large bodies: those of one client leave room for what others ask."""

import asyncio
import json
import os
from contextlib import AsyncExitStack

import pytest
from anyio.abc import SocketAttribute

from tests.quiet import quiet
from tests.shared.transports.http.http_wire import make_server, merged, served

COUNT = 8
LARGE = "x" * 100_000


@pytest.mark.parametrize("stateless", [True, False])
async def test_of_large_bodies_that_come_at_once_one_is_read_in_a_turn_of_the_loop(stateless: bool) -> None:
    app, turns, read = make_server(), [0], list[int]()

    @app.tool()
    async def take(text: str) -> None:
        """Note the turn."""
        read.append(turns[0])

    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(served(app))
        session = {} if stateless else await site.initialize()
        streams = []
        for _ in range(COUNT):
            params = {"name": "take", "arguments": {"text": LARGE}}
            message, headers = (
                site.stateless("tools/call", params) if stateless else (site.message("tools/call", params), session)
            )
            body = json.dumps(message).encode()
            lines = [f"{name}: {value}" for name, value in merged(headers)]
            lines.append(f"Content-Length: {len(body)}")
            streams.append(await stack.enter_async_context(site.raw(*lines, body=body[:-1])))
        await quiet()
        for stream in streams:
            os.write(stream.extra(SocketAttribute.raw_socket).fileno(), b"}")

        def turn() -> None:
            turns[0] += 1
            turning[0] = loop.call_soon(turn)

        loop = asyncio.get_running_loop()
        turning = [loop.call_soon(turn)]
        for stream in streams:
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")
        turning[0].cancel()
    assert len(read) == COUNT
    assert len(set(read)) == COUNT
