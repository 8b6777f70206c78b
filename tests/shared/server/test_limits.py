"""What one peer may take of a server."""

import anyio
import pytest

from shared.server.limits import Limits
from tests.quiet import quiet
from tests.shared.server.peer import STATELESS, server, talking


class Gate:
    """A server whose calls wait at a gate, and who came there."""

    def __init__(self, **limits):
        self.open = anyio.Event()
        self.came = []
        self.app = server()
        self.app.limits = Limits(drain_seconds=0.01, **limits)
        self.app.tool()(self.tool())

    def tool(self):
        async def enter(number: int) -> int:
            """Waits at the gate."""
            self.came.append(number)
            await self.open.wait()
            return number

        return enter


async def test_calls_over_the_cap_wait_their_turn_in_order():
    gate = Gate(concurrent_calls=2)
    async with talking(gate.app) as peer:
        ids = [await peer.start("enter", number=number) for number in range(5)]
        await quiet()
        assert gate.came == [0, 1]
        gate.open.set()
        texts = [(await peer.answer(id_))["result"]["content"][0]["text"] for id_ in ids]
    assert gate.came == [0, 1, 2, 3, 4]
    assert texts == ["0", "1", "2", "3", "4"]


async def test_each_call_that_ends_lets_one_in():
    gate = Gate(concurrent_calls=2)
    async with talking(gate.app) as peer:
        first, *_ = [await peer.start("enter", number=number) for number in range(4)]
        await peer.cancel(first)
        await quiet()
        assert gate.came == [0, 1, 2]


async def test_a_call_cancelled_in_the_queue_never_runs():
    gate = Gate(concurrent_calls=1)
    async with talking(gate.app) as peer:
        await peer.start("enter", number=0)
        queued = await peer.start("enter", number=1)
        last = await peer.start("enter", number=2)
        await peer.cancel(queued)
        gate.open.set()
        await peer.answer(last)
    assert gate.came == [0, 2]


async def test_what_the_protocol_answers_itself_does_not_queue():
    gate = Gate(concurrent_calls=1)
    async with talking(gate.app) as peer:
        await peer.start("enter", number=0)
        await peer.start("enter", number=1)
        assert (await peer.request("ping"))["result"] == {}


async def test_a_queue_that_is_full_refuses():
    gate = Gate(concurrent_calls=1, waiting_calls=1)
    async with talking(gate.app) as peer:
        for number in range(2):
            await peer.start("enter", number=number)
        error = (await peer.call("enter", number=2))["error"]
    assert error["code"] == -32603
    assert "too many calls" in error["message"]


async def open_stream(peer):
    return await peer.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


async def test_streams_over_the_cap_are_refused_and_others_go_on():
    gate = Gate(streams=2)
    async with talking(gate.app, STATELESS) as peer:
        streams = [await open_stream(peer) for _ in range(2)]
        assert (await peer.answer(await open_stream(peer)))["error"]["code"] == -32603
        await peer.cancel(streams[0])
        await quiet()
        await open_stream(peer)
        for _ in range(3):
            await peer.other("notifications/subscriptions/acknowledged")


async def test_streams_take_no_place_of_calls():
    gate = Gate(concurrent_calls=1)
    async with talking(gate.app, STATELESS) as peer:
        for _ in range(3):
            await open_stream(peer)
        await peer.start("enter", number=1)
        await quiet()
        assert gate.came == [1]


@pytest.mark.parametrize(("uris", "refused"), [(2, False), (3, True)])
async def test_a_stream_names_so_many_resources_at_most(uris, refused):
    gate = Gate(subscriptions=2)
    async with talking(gate.app, STATELESS) as peer:
        params = {"notifications": {"resourceSubscriptions": [f"a:{number}" for number in range(uris)]}}
        id_ = await peer.begin("subscriptions/listen", params)
        message = await peer.receive()
    assert (message.get("id") == id_) is refused


async def test_a_session_subscribes_to_so_many_resources_at_most():
    gate = Gate(subscriptions=2)
    gate.app.resource("a:b")(gate_resource)

    @gate.app.on_subscribe
    async def key(_ctx: object, uri: str) -> str:
        return uri

    async with talking(gate.app) as peer:
        answers = [await peer.request("resources/subscribe", {"uri": f"a:{number}"}) for number in (1, 2, 2, 3)]
    assert ["error" in answer for answer in answers] == [False, False, False, True]


async def gate_resource() -> str:
    return ""
