"""Answers that are cut at every byte. Of event streams of HTTP, what was numbered is resumed without a gap, and
nothing comes twice; what was not ends with an error. Of connections that are a session, the call is lost, and the
next opens another.
"""

import json
from collections.abc import Awaitable, Callable

import anyio
import pytest

from shared.client.client import Client
from shared.client.connect import connect_http, connect_sse, connect_websocket
from shared.client.options import ClientOptions
from tests.shared.client.hostile import STREAM, Exchange, Hostile, Json, chunk, closes, hostile, resets, result_for
from tests.shared.client.hostile_sockets import Framed, HostileSse, HostileWebSocket
from tests.shared.client.leavings import nothing_left
from tests.shared.client.small import text_of

End = Callable[[Exchange], Awaitable[None]]


async def ends(exchange: Exchange) -> None:
    await exchange.send(b"0\r\n\r\n")
    exchange.kept = True


ENDS = pytest.mark.parametrize("end", [closes, resets, ends])
TOGETHER = 16
"""Calls at once."""


def numbered(stream: str, *data: Json | None) -> list[bytes]:
    """Events with ids, which tell how soon a client may come again."""
    texts = ["" if one is None else json.dumps(one) for one in data]
    return [f"id: {stream}/{n}\nretry: 1\ndata: {text}\n\n".encode() for n, text in enumerate(texts)]


def progress(token: object, number: int) -> Json:
    params = {"progressToken": token, "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def told(number: int) -> Json:
    return {"jsonrpc": "2.0", "method": "notifications/told", "params": {"number": number}}


class Cuts:
    """Calls whose answers are cut after as many bytes as they ask for, and the streams that go on with them."""

    def __init__(self, end: End, mode: str) -> None:
        self._end = end
        self._is_numbered = mode == "handshake"
        self._events: dict[str, list[bytes]] = {}
        self.curable: dict[int, bool] = {}
        """Whether enough came, by the bytes that did: the first number, or all."""
        self.length = 0

    async def call(self, exchange: Exchange) -> None:
        """Answers a call, up to a byte."""
        params = exchange.message["params"]
        token, size = params["_meta"]["progressToken"], params["arguments"]["size"]
        events = numbered(f"{token:04}", None, progress(token, 1), progress(token, 2), result_for(exchange.message))
        if not self._is_numbered:
            events = [event[event.index(b"data") :] for event in events[1:]]
        self._events[f"{token:04}"], self.length = events, len(b"".join(events))
        self.curable[size] = size >= (len(events[0]) if self._is_numbered else self.length)
        await exchange.send(STREAM + chunk(b"".join(events)[:size]))
        await self._end(exchange)

    async def resume(self, exchange: Exchange) -> None:
        """Sends what the client has not seen."""
        stream, _, number = exchange.headers.get("last-event-id", "").partition("/")
        if not stream:
            await exchange.good()
        else:
            await exchange.send(STREAM + chunk(b"".join(self._events[stream][int(number) + 1 :])))
            await ends(exchange)


async def outcome(client: Client, size: int) -> tuple[bool, list[float]]:
    """Whether a call that is cut after `size` bytes was answered, and its progress."""
    seen: list[float] = []
    try:
        result = await client.raw.call_tool("work", {"size": size}, on_progress=lambda *one: seen.append(one[0]))
    except ConnectionError:
        return False, seen
    return text_of(result) == "done", seen


@ENDS
@pytest.mark.parametrize("mode", ["handshake", "stateless"])
async def test_an_answer_cut_anywhere(mode: str, end: End) -> None:
    cuts, outcomes = Cuts(end, mode), dict[int, tuple[bool, list[float]]]()
    turn = anyio.Semaphore(TOGETHER)

    async def call(size: int) -> None:
        async with turn:
            outcomes[size] = await outcome(client, size)

    async with nothing_left(), hostile() as server:
        server.on("tools/call", cuts.call)
        server.on("GET", cuts.resume)
        with anyio.fail_after(60):
            async with connect_http(server.url, ClientOptions(mode=mode)) as client:
                await call(0)
                async with anyio.create_task_group() as tasks:
                    for size in range(1, cuts.length + 1):
                        tasks.start_soon(call, size)
    assert {size: answered for size, (answered, _) in outcomes.items()} == cuts.curable
    assert all(seen == [1, 2] if answered else seen == [1, 2][: len(seen)] for answered, seen in outcomes.values())


@ENDS
async def test_the_stream_of_notifications_cut_anywhere(end: End) -> None:
    """Each connection brings one event more, and a byte more of the next one."""
    sizes = range(1, len(numbered("0000", told(100))[0]))
    events = numbered("0000", *(told(100 + n) for n in range(len(sizes) + 1)))
    seen: list[int] = []
    heard = anyio.Event()

    async def stream(exchange: Exchange) -> None:
        last = exchange.headers.get("last-event-id", "0/-1").partition("/")[2]
        first, *others = events[int(last) + 1 :] or [b""]
        if others:
            await exchange.send(STREAM + chunk(first + others[0][: sizes[int(last) + 1]]))
            await end(exchange)
        else:
            await exchange.send(STREAM + chunk(first))
            await exchange.hang()

    def take(_method: str, params: Json) -> None:
        seen.append(params["number"] - 100)
        if len(seen) == len(events):
            heard.set()

    async with nothing_left(), hostile() as server:
        server.on("GET", stream)
        with anyio.fail_after(60):
            async with connect_http(server.url, ClientOptions(mode="handshake", on_notification=take)):
                await heard.wait()
    assert seen == list(range(len(events)))


# Sessions

CONNECT = {HostileWebSocket: connect_websocket, HostileSse: connect_sse}


@pytest.mark.parametrize("end", [closes, resets])
@pytest.mark.parametrize("kind", CONNECT)
async def test_a_session_cut_anywhere(kind: type[Hostile], end: End) -> None:
    async def cut(exchange: Exchange) -> None:
        assert isinstance(exchange, Framed)
        await exchange.send(exchange.text()[: exchange.message["params"]["arguments"]["size"]])
        await end(exchange)

    async with nothing_left(), hostile(kind) as server:
        server.on("tools/call", cut)
        with anyio.fail_after(60):
            async with CONNECT[kind](server.url, ClientOptions(mode="handshake")) as client:
                for size in range(160):
                    try:
                        result = await client.raw.call_tool("work", {"size": size})
                    except ConnectionError:
                        continue
                    assert text_of(result) == "done"
                    break
                assert size > 100
                assert server.seen.count("initialize") == server.seen.count("tools/call") > 1
