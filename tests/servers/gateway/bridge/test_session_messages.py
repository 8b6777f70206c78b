"""Notifications outside of calls: changed lists, log messages, unknown methods, and an unavailable server."""

import anyio
import pytest

from servers.gateway.bridge import Upstream, bridge
from servers.gateway.bridge.session_messages import forward_notification
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import UnknownNotification
from shared.server.dispatch.limits import Limits
from tests.servers.gateway.bridge.telling import MODES, Telling, until
from tests.servers.gateway.changes import LISTS, hear_lists, listening
from tests.servers.gateway.joined.members import Door, joined
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, PATIENCE, STATELESS, talking


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_list_changes_are_sent_to_all_clients(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as one, talking(running, version) as other:
        for peer in (one, other):
            await listening(peer)
        await telling.heard_by_all()
        await one.call("add", a=1, b=2)
        assert one.others == []  # nothing is told of a beginning
        for what in LISTS:
            getattr(telling.running.changes, what)()
            for peer in (one, other):
                await peer.other(f"notifications/{what}/list_changed")


async def test_a_list_change_in_one_session_is_sent_to_its_client_only() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        await one.call("shift", what="tools")
        await one.other("notifications/tools/list_changed")
        await other.request("ping")
        assert other.others == []


@pytest.mark.slow
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_disconnect_and_a_reconnect_announce_changed_lists(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        await listening(peer)
        telling.is_away = True
        await telling.cut()
        await hear_lists(peer)
        telling.is_away = False
        await hear_lists(peer)
        assert (await peer.request("tools/list"))["result"]["tools"]


async def test_an_unavailable_server_is_reported_as_a_condition() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        telling.is_away = True
        await telling.cut()
        message = (await peer.other("notifications/message"))["params"]
        assert message == {
            "level": "warning",
            "logger": "small",
            "data": "the server small is not available: it ended the connection",
        }
        assert len(running.conditions.active) == 1
        telling.is_away = False
        await until(lambda: not running.conditions.active)


async def test_unknown_notifications_are_forwarded_unchanged() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        await one.call("whisper", method="notifications/elicitation/complete", params={"elicitationId": "7"})
        assert (await one.other("notifications/elicitation/complete"))["params"] == {"elicitationId": "7"}
        await other.request("ping")
        assert other.others == []


async def test_a_log_message_without_a_valid_level_is_dropped() -> None:
    async with Telling("handshake").app.open() as running, talking(running, NEWEST_HANDSHAKE) as peer:
        await peer.request("ping")
        (link,) = running.changes._listeners  # the client's
        for params in ({}, {"level": "loud", "data": 1}, {"level": 7, "data": 1}):
            forward_notification(link, Notified("notifications/message", params))
        forward_notification(link, Notified("notifications/message", {"level": "error", "data": "one"}))
        assert (await peer.other("notifications/message"))["params"]["data"] == "one"


async def test_a_slow_client_gets_list_changes_only() -> None:
    async with Telling("handshake").app.open() as running, talking(running) as peer:
        await peer.request("ping")
        (link,) = running.changes._listeners  # the client's
        running.calls.limits = Limits(waiting_messages=10)
        for number in range(100):
            forward_notification(link, Notified("notifications/message", {"level": "error", "data": number}))
        assert len(link.session.waiting) <= 11
        forward_notification(link, Notified("notifications/tools/list_changed", {}))
        await peer.other("notifications/tools/list_changed")


async def test_notifications_of_a_client_reach_its_own_session() -> None:
    """For example its progress with a question of the server."""
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        await other.call("add", a=1, b=2)
        await one.call("ears")
        await one.notify("notifications/tasks/status", taskId="1", status="working")
        await one.notify("notifications/progress", progressToken="t", progress=1)
        await one.notify("notifications/org.example/own", a=1)
        await until(lambda: len(telling.told) == 2)
        assert telling.told == [
            UnknownNotification("notifications/progress", {"progressToken": "t", "progress": 1}),
            UnknownNotification("notifications/org.example/own", {"a": 1}),
        ]


async def test_notifications_of_a_client_do_not_reach_a_shared_session() -> None:
    telling = Telling("handshake", shared=True)
    async with telling.bridged() as running, talking(running) as peer:
        await peer.call("ears")
        await peer.notify("notifications/progress", progressToken="t", progress=1)
        await peer.call("add", a=1, b=2)
        assert telling.told == []


async def test_a_log_message_outside_of_calls_is_not_sent_to_stateless_clients() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running, STATELESS) as peer:
        await telling.heard_by_all()
        for link in telling.links():
            link.session.notify_session("notifications/message", {"level": "error", "data": "of no call"})
            link.send_soon()
        await peer.call("add", a=1, b=2)
        assert peer.others == []


ROOTS = {"roots": {"listChanged": True}}


async def test_a_shared_session_hears_of_changed_roots() -> None:
    telling = Telling("handshake", shared=True)
    async with telling.bridged() as running, talking(running, capabilities=ROOTS) as peer:
        await peer.notify("notifications/roots/list_changed")
        await until(lambda: telling.roots_changed == 1)


async def test_a_stateless_server_asks_for_roots_again_after_a_change() -> None:
    telling = Telling("stateless")
    async with telling.bridged() as running, talking(running, capabilities=ROOTS) as peer:
        await peer.notify("notifications/roots/list_changed")
        id_ = await peer.start("roots")
        asked = await peer.other("roots/list")
        await peer.reply(asked["id"], {"roots": [{"uri": "file:///here"}]})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "file:///here"
        assert telling.roots_changed == 0


async def test_a_shared_session_hears_of_roots_from_clients_that_connected_earlier() -> None:
    """They connected to the gateway before the bridge behind it was open."""
    telling = Telling("handshake", shared=True)
    door = Door("small", bridge(Upstream("small", telling.connect, shares_session=True)))
    with anyio.fail_after(3 * PATIENCE):
        async with (
            telling.app.open() as telling.running,
            joined(closed=(door,)) as running,
            talking(running, capabilities=ROOTS) as peer,
        ):
            await peer.request("ping")
            await door.open()
            assert await peer.text("add", a=1, b=2) == "3"
            await peer.notify("notifications/roots/list_changed")
            await until(lambda: telling.roots_changed == 1)
