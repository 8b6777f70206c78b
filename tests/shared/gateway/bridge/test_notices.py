"""What is told of no call: lists that change, messages, and what nobody knows; and that the server is away."""

from typing import Any

import pytest

from shared.gateway.bridge.notices import told
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Told
from tests.shared.gateway.bridge.telling import MODES, Telling, until
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, Peer, talking

LISTS = ("tools", "prompts", "resources")


async def listening(peer: Peer) -> None:
    """Has the lists told of, where that must be asked for."""
    if peer.version == STATELESS:
        await peer.begin("subscriptions/listen", {"notifications": {f"{what}ListChanged": True for what in LISTS}})
        acknowledged = await peer.other("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"] == {f"{what}ListChanged": True for what in LISTS}


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_lists_that_change_are_told_to_all(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as one, talking(running, version) as other:
        for peer in (one, other):
            await listening(peer)
        await telling.heard_by_all()
        for what in LISTS:
            getattr(telling.running.changes, what)()
            for peer in (one, other):
                await peer.other(f"notifications/{what}/list_changed")


async def test_a_list_that_changes_in_one_session_is_told_to_its_client() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        await one.call("shift", what="tools")
        await one.other("notifications/tools/list_changed")
        await other.request("ping")
        assert other.others == []


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_nothing_is_told_of_a_beginning(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        await listening(peer)
        await telling.heard_by_all()
        await peer.call("add", a=1, b=2)
        assert peer.others == []


@pytest.mark.slow
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_server_that_goes_and_comes_has_other_lists(mode: str, version: str) -> None:
    telling = Telling(mode)
    async with telling.bridged() as running, talking(running, version) as peer:
        await listening(peer)
        telling.is_down = True
        await telling.cut()
        for what in LISTS:
            await peer.other(f"notifications/{what}/list_changed")
        telling.is_down = False
        for what in LISTS:
            await peer.other(f"notifications/{what}/list_changed")
        assert (await peer.request("tools/list"))["result"]["tools"]


@pytest.mark.slow
async def test_a_server_that_is_away_is_a_condition() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        telling.is_down = True
        await telling.cut()
        message = (await peer.other("notifications/message"))["params"]
        assert message == {
            "level": "warning",
            "logger": "small",
            "data": "the server small is not available: it ended the connection",
        }
        assert len(running.conditions.standing) == 1
        telling.is_down = False
        await until(lambda: not running.conditions.standing)


async def test_what_has_no_other_place_passes_as_it_came() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        await one.call("whisper", method="notifications/elicitation/complete", params={"elicitationId": "7"})
        assert (await one.other("notifications/elicitation/complete"))["params"] == {"elicitationId": "7"}
        await other.request("ping")
        assert other.others == []


@pytest.mark.parametrize("params", [{}, {"level": "loud", "data": 1}, {"level": 7, "data": 1}])
async def test_a_log_message_without_a_level_is_none(params: dict[str, Any]) -> None:
    async with Telling("handshake").app.open() as running, talking(running, NEWEST_HANDSHAKE) as peer:
        await peer.request("ping")
        (link,) = running.changes._listeners
        told(link, Notified("notifications/message", params))
        told(link, Notified("notifications/message", {"level": "error", "data": "one"}))
        assert (await peer.other("notifications/message"))["params"]["data"] == "one"


async def test_a_client_that_is_behind_is_told_of_lists_only() -> None:
    async with Telling("handshake").app.open() as running, talking(running) as peer:
        await peer.request("ping")
        (link,) = running.changes._listeners
        for number in range(2_000):
            told(link, Notified("notifications/message", {"level": "error", "data": number}))
        assert len(link.session.waiting) <= running.limits.waiting_messages + 1
        told(link, Notified("notifications/tools/list_changed", {}))
        await peer.other("notifications/tools/list_changed")


async def test_what_a_client_says_of_its_own_accord_reaches_its_session() -> None:
    """How far it is with a question of the server's, for one."""
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        await other.call("add", a=1, b=2)
        await one.call("ears")
        await one.notify("notifications/tasks/status", taskId="1", status="working")
        await one.notify("notifications/progress", progressToken="t", progress=1)
        await one.notify("notifications/org.example/own", a=1)
        await until(lambda: len(telling.told) == 2)
        assert telling.told == [
            Told("notifications/progress", {"progressToken": "t", "progress": 1}),
            Told("notifications/org.example/own", {"a": 1}),
        ]


async def test_what_a_client_says_is_not_said_for_all_that_share_a_session() -> None:
    telling = Telling("handshake", shared=True)
    async with telling.bridged() as running, talking(running) as peer:
        await peer.call("ears")
        await peer.notify("notifications/progress", progressToken="t", progress=1)
        await peer.call("add", a=1, b=2)
        assert telling.told == []
