"""A server of HTTP that asks on and on, and accepts none of the answers: each of them takes a connection."""

import json

import anyio
import pytest

from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from tests.shared.client.faults.hostile import STREAM, Exchange, chunk, hostile, response
from tests.shared.client.faults.leavings import nothing_left
from tests.shared.client.small import text_of

PINGS = 50


async def pings(exchange: Exchange) -> None:
    asked = [{"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"} for number in range(PINGS)]
    await exchange.send(STREAM + chunk(b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in asked)))
    await exchange.hang()


async def test_answers_that_are_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.http.client.MAX_TOLD_AT_ONCE", 5)
    monkeypatch.setattr("shared.transports.http.client.MAX_TOLD", 8)
    accepts = anyio.Event()

    async def wait(exchange: Exchange) -> None:
        await accepts.wait()
        await exchange.send(response(b"", "202 Accepted"))
        exchange.kept = True

    async with nothing_left(), hostile() as server:
        server.on("GET", pings)
        server.on("POST", wait)
        with anyio.fail_after(30):
            async with connect_http(server.url, ClientOptions(mode="handshake")) as client:
                for expected in (5, 8):
                    while server.seen.count("POST") < expected:
                        await anyio.sleep(0.001)
                    for _ in range(10):
                        assert text_of(await client.plain.call_tool("work")) == "done"
                    assert server.seen.count("POST") == expected
                    accepts.set()
