"""The GET stream of a client: reopening, resuming and giving up."""

import anyio
import anyio.lowlevel
import pytest

from shared.protocol.wire.jsonrpc import Gap, Notification, Response
from tests.shared.transports.http.scripted import (
    CALL,
    NOTED,
    Answer,
    handshake,
    result,
    say,
    shake_hands,
    stream,
    transport_to,
    until_lost,
)


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_without_a_get_stream_serves_calls(status: int) -> None:
    script = handshake(GET=Answer(status), call=result(2, {}))
    async with transport_to(script) as transport:
        await shake_hands(transport)
        while not script.count("GET"):
            await anyio.lowlevel.checkpoint()
        await say(transport, CALL)
        assert await transport.receive() == [Response(2, {})]
    assert script.count("DELETE") == 1


async def test_reopening_a_stream_without_ids_reports_a_gap() -> None:
    streams = [stream(f"retry: 1\ndata: {NOTED}\n\n"), Answer(503, headers={"retry-after": "0"}), stream(": \n\n")]
    async with transport_to(handshake(GET=[*streams, Answer(405)])) as transport:
        await shake_hands(transport)
        assert await until_lost(transport) == [Notification("notifications/x"), Gap()]


async def test_resuming_a_stream_by_its_last_id_reports_no_gap() -> None:
    streams = [stream(f"id: {n}\nretry: 1\ndata: {NOTED}\n\n", whole=False) for n in range(8)]
    script = handshake(GET=[*streams, Answer(405)])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        assert await until_lost(transport) == [Notification("notifications/x")] * 8
    assert [one.headers.get("last-event-id") for one in script.requests if one.method == "GET"] == [
        *(None, "0", "1", "2", "3", "4", "5", "6", "7")
    ]


async def test_a_404_when_resuming_a_stream_breaks_the_connection() -> None:
    script = handshake(GET=[stream("id: 1\nretry: 1\ndata:\n\n"), Answer(404)])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()
    assert script.count("DELETE") == 0


async def test_resuming_a_stream_has_an_attempt_limit() -> None:
    script = handshake(GET=[stream("id: 1\nretry: 1\ndata:\n\n"), *[Answer(502)] * 10])
    async with transport_to(script) as transport:
        await shake_hands(transport)
        with pytest.raises(anyio.BrokenResourceError):
            await transport.receive()
    assert script.count("GET") == 6
