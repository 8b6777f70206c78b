"""Subscriptions over a bridge: one at the server for many clients, and the recipients of updates."""

from contextlib import AsyncExitStack

import anyio
import pytest

from servers.gateway.bridge import Bridge
from servers.gateway.bridge.session_messages import ANSWER_SECONDS
from servers.gateway.bridge.watching.listen_streams import ListenStreams
from shared.server.run import Run
from tests.clock import forward
from tests.servers.gateway.bridge.telling import MODES, Telling, until
from tests.servers.gateway.changes import subscribed, unsubscribed, updated
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, talking

ONE = "memo://one"
SHARING = [
    (mode, version) for mode in MODES for version in ERAS if (mode, version) != ("handshake", NEWEST_HANDSHAKE)
]
"""Where clients have no sessions of their own at the server."""


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_updates_are_sent_until_the_subscription_ends(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        id_ = await subscribed(peer, ONE)
        assert telling.subscribed == [ONE]
        telling.running.changes.resource(ONE)
        assert await updated(peer) == ONE
        await unsubscribed(peer, id_, ONE)
        await telling.released.wait()
        assert telling.subscribed == []


@pytest.mark.parametrize(
    ("mode", "version", "shared"), [*((*one, False) for one in SHARING), ("handshake", NEWEST_HANDSHAKE, True)]
)
async def test_many_clients_share_one_subscription_at_the_server(mode: str, version: str, shared: bool) -> None:
    telling = Telling(mode, shared=shared)
    async with telling.bridged() as running, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(talking(running, version)) for _ in range(8)]
        ids = [await subscribed(peer, ONE) for peer in peers]
        assert telling.subscribed == [ONE]
        telling.running.changes.resource(ONE)
        assert [await updated(peer) for peer in peers] == [ONE] * 8
        for peer, id_ in zip(peers[1:], ids[1:], strict=True):
            await unsubscribed(peer, id_, ONE)
        telling.running.changes.resource(ONE)
        assert await updated(peers[0]) == ONE
        assert telling.subscribed == [ONE]


async def test_updates_in_a_session_reach_only_its_client() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        for peer in (one, other):
            await subscribed(peer, ONE)
        assert telling.subscribed == [ONE, ONE]
        await one.call("touch", uri=ONE)
        assert await updated(one) == ONE
        await other.request("ping")
        assert other.others == []


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_an_update_of_a_part_has_the_uri_of_the_part(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        await subscribed(peer, "memo://all", "memo://other")
        telling.running.changes.resource("memo://all", "memo://all/1/2")
        assert await updated(peer) == "memo://all/1/2"


async def test_an_update_has_the_uri_as_the_server_spells_it() -> None:
    """The server may spell the URI differently than the subscriber."""
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        await subscribed(peer, ONE)
        await peer.call("touch", uri=ONE, part="MEMO://ONE")
        assert await updated(peer) == "MEMO://ONE"


@pytest.mark.parametrize("mode", MODES)
async def test_a_refusal_by_the_server_reaches_the_client(mode: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running) as peer:
        answer = await peer.request("resources/subscribe", {"uri": "http://x"})
        assert (answer["error"]["code"], answer["error"]["data"]) == (-32002, {"uri": "http://x"})


@pytest.mark.parametrize("mode", MODES)
async def test_a_stream_acknowledges_only_resources_the_server_accepts(mode: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, STATELESS) as peer:
        wanted = {"resourceSubscriptions": ["http://x", ONE, *(["memo://bad"] if mode == "handshake" else [])]}
        await peer.begin("subscriptions/listen", {"notifications": wanted})
        acknowledged = await peer.other("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [ONE]}


@pytest.mark.parametrize(("mode", "version"), SHARING)
async def test_lost_subscriptions_are_renewed_and_reported_as_updated(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        await subscribed(peer, ONE, "memo://two")
        await telling.cut()
        assert {await updated(peer), await updated(peer)} == {ONE, "memo://two"}
        assert telling.running.changes.has_subscribers(ONE)
        assert telling.running.changes.subscribed_resources == 2
        telling.running.changes.resource(ONE)
        assert await updated(peer) == ONE


async def test_a_lost_session_is_resubscribed_without_a_call() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        await subscribed(peer, ONE)
        await telling.cut(1)
        assert await updated(peer) == ONE
        await until(lambda: telling.subscribed == [ONE])
        await peer.call("touch", uri=ONE)
        assert await updated(peer) == ONE


async def test_repeated_subscriptions_start_no_further_tasks() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        await subscribed(peer, ONE)
        tasks: int = len(running.state.tasks)
        for _ in range(5):
            await unsubscribed(peer, None, ONE)
            await subscribed(peer, ONE)
        await until(lambda: len(running.state.tasks) == tasks)


async def test_the_session_of_a_client_that_left_is_not_reopened() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running:
        async with talking(running) as peer:
            await subscribed(peer, ONE)
        await until(lambda: not telling.running.changes.subscribed_resources)
        assert len(telling.lines) == 2
        assert running.changes.subscribed_resources == 0


async def test_a_second_subscriber_waits_for_the_pending_subscription() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running, STATELESS) as one, talking(running, STATELESS) as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(subscribed, one, "memo://slow")
            await telling.gate_seen.wait()
            tasks.start_soon(subscribed, other, "memo://slow")
            await until(lambda: len(running.calls) == 2)
            telling.gate.set()
        assert telling.subscribed == ["memo://slow"]


@pytest.mark.parametrize("mode", MODES)
async def test_the_end_of_a_stream_keeps_the_subscriptions_of_others(mode: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, STATELESS) as one, talking(running, STATELESS) as other:
        id_ = await subscribed(one, ONE, "memo://two")
        await subscribed(other, ONE, "memo://three")
        await unsubscribed(one, id_)
        await until(lambda: running.changes.subscribed_resources == 2)
        telling.running.changes.resource(ONE)
        assert await updated(other) == ONE


@pytest.mark.parametrize(("mode", "version"), SHARING)
async def test_a_subscription_during_an_unsubscription_is_kept(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as one, talking(running, version) as other:
        for _ in range(4):
            id_ = await subscribed(one, ONE)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(unsubscribed, one, id_, ONE)
                other_id = await subscribed(other, ONE)
            telling.running.changes.resource(ONE)
            assert await updated(other) == ONE
            await unsubscribed(other, other_id, ONE)
        await until(lambda: not telling.running.changes.subscribed_resources)


@pytest.mark.parametrize("mode", MODES)
async def test_all_resources_of_a_stream_are_subscribed_concurrently(mode: str) -> None:
    uris = [f"memo://{number}" for number in range(40)]
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, STATELESS) as peer:
        id_ = await subscribed(peer, *uris)
        assert telling.running.changes.subscribed_resources == 40
        assert streams_of(running) == (1 if mode == "stateless" else 0)
        await unsubscribed(peer, id_, *uris)
        await until(lambda: not telling.running.changes.subscribed_resources)


@pytest.mark.parametrize("mode", MODES)
async def test_subscriptions_are_refused_while_the_server_is_unavailable(mode: str) -> None:
    telling = Telling(mode)
    telling.is_away = True
    async with telling.bridged() as running, talking(running) as peer:
        error = (await peer.request("resources/subscribe", {"uri": ONE}))["error"]
        assert error == {"code": -32603, "message": "the server small is not available: nobody answers at http://…"}
        assert running.changes.subscribed_resources == 0


def streams_of(running: Run[Bridge]) -> int:
    """The number of listen streams for resources at the server."""
    asking = running.state.session_messages.watching.subscriber
    return asking.stream_count if isinstance(asking, ListenStreams) else 0


@pytest.mark.parametrize("mode", MODES)
async def test_a_subscription_without_an_answer_times_out(mode: str) -> None:
    telling = Telling(mode, shared=True)
    async with telling.bridged() as running, talking(running) as peer:
        id_ = await peer.begin("resources/subscribe", {"uri": "memo://slow"})
        await telling.gate_seen.wait()
        forward(ANSWER_SECONDS)
        error = (await peer.answer(id_))["error"]
        assert (error["code"], error["message"][:21]) == (-32603, "the server small was ")
        telling.gate.set()
        await subscribed(peer, ONE)


async def test_updates_with_an_invalid_uri_are_dropped() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        await subscribed(peer, ONE)
        for uri in (7, None, "memo://" + 9_000 * "x"):
            await peer.call("whisper", method="notifications/resources/updated", params={"uri": uri})
        await peer.call("touch", uri=ONE)
        assert await updated(peer) == ONE
        assert {message["params"]["uri"] for message in peer.others} <= {ONE}
