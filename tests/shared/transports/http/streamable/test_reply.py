"""Compression and streaming of answers."""

import gzip
import json

import anyio
import pytest

from shared.transports.http.streamable.reply import Asgi, Reply, Stage
from tests.shared.transports.http.http_wire import Json, Site, events, visited


def echo(size: int) -> Json:
    return {"name": "echo", "arguments": {"text": "x" * size}}


COMPRESSED = [
    ("gzip", 5_000, True),
    ("deflate, gzip;q=0.5", 5_000, True),
    ("gzip", 500, False),
    ("gzip;q=0", 5_000, False),
    ("br", 5_000, False),
    ("identity", 5_000, False),
]


@pytest.mark.parametrize("stateless", [True, False])
async def test_long_json_answers_are_compressed(standing: Site, stateless: bool) -> None:
    async with visited(standing) as site:
        session = await site.initialize()
        for accepted, size, compressed in COMPRESSED:
            if stateless:
                message, headers = site.stateless("tools/call", echo(size))
            else:
                message, headers = site.message("tools/call", echo(size)), session
            async with site.stream(message, {**headers, "Accept-Encoding": accepted}) as answer:
                body = b"".join([chunk async for chunk in answer.aiter_raw()])
            assert (answer.headers.get("content-encoding") == "gzip") is compressed, (accepted, size)
            assert ("accept-encoding" in answer.headers.get("vary", "").lower()) is (size > 1_024)
            assert answer.headers["content-length"] == str(len(body))
            text = json.loads(gzip.decompress(body) if compressed else body)["result"]["content"][0]["text"]
            assert len(text) == size
            assert not compressed or len(body) < 1_000


@pytest.mark.parametrize("stateless", [True, False])
async def test_streams_are_never_compressed(standing: Site, stateless: bool) -> None:
    async with visited(standing) as site:
        params = {"name": "report", "arguments": {"steps": 100}}
        if stateless:
            message, headers = site.stateless("tools/call", params, progressToken=1)
        else:
            headers = await site.initialize()
            message = site.message("tools/call", {**params, "_meta": {"progressToken": 1}})
        async with site.stream(message, {**headers, "Accept-Encoding": "gzip"}) as answer:
            assert "content-encoding" not in answer.headers
            assert len([one async for one in events(answer)]) == 101


async def test_a_reply_cancelled_while_ending_has_not_ended() -> None:
    """Its connection must be aborted."""

    async def send(event: Asgi) -> None:
        if not event.get("more_body", True):
            await anyio.sleep_forever()

    reply = Reply(send)
    await reply.events(())
    with anyio.move_on_after(0):
        await reply.end()
    assert reply.stage is Stage.STREAMING
