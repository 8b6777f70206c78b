"""`logging/setLevel` over a bridge: the levels that the server gets, and the messages that its client gets."""

from typing import Any

import pytest

from shared.protocol.identity import Peer as Known
from tests.servers.gateway.bridge.telling import MODES, Telling, until
from tests.shared.server.peer import Peer, talking


def levels(telling: Telling) -> list[str | None]:
    """The level of each session at the server, in the order of their handshakes."""
    peers: list[Known] = [link.session.peer for link in telling.links() if link.session.peer is not None]
    return [peer.log_level for peer in peers]


async def logged(peer: Peer) -> Any:
    """The text of the next log message."""
    return (await peer.other("notifications/message"))["params"]["data"]


async def test_each_own_session_gets_the_level_of_its_client() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as one, talking(running) as other:
        assert (await one.request("logging/setLevel", {"level": "error"}))["result"] == {}
        await other.request("logging/setLevel", {"level": "debug"})
        assert sorted(map(str, levels(telling))) == ["debug", "error", "info"]


async def test_the_server_chooses_the_level_until_a_client_sets_one() -> None:
    telling = Telling("handshake")
    telling.app.log_level = "debug"
    async with telling.bridged() as running, talking(running) as peer:
        await peer.call("say", level="debug", text="a detail")
        assert await logged(peer) == "a detail"
        await peer.request("logging/setLevel", {"level": "error"})
        await peer.call("say", level="debug", text="another")
        await peer.call("say", level="error", text="a fault")
        assert await logged(peer) == "a fault"


async def test_a_reopened_session_gets_the_level() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "critical"})
        await telling.cut(1)
        await until(lambda: "critical" not in levels(telling))
        await peer.call("add", a=1, b=2)
        await until(lambda: "critical" in levels(telling))


async def test_a_stateless_server_gets_the_level_with_each_request() -> None:
    telling = Telling("stateless")
    async with telling.bridged() as running, talking(running) as peer:
        await peer.call("count", to=1)
        assert await logged(peer) == "counted"
        await peer.request("logging/setLevel", {"level": "error"})
        await peer.call("count", to=1)
        await peer.request("logging/setLevel", {"level": "warning"})
        assert [message for message in peer.others if message["method"] == "notifications/message"] == []
        await peer.call("count", to=1)
        assert await logged(peer) == "counted"


async def test_a_shared_session_has_the_lowest_level_of_all_clients() -> None:
    telling = Telling("handshake", shared=True)
    async with telling.bridged() as running, talking(running) as one:
        async with talking(running) as other:
            await one.request("logging/setLevel", {"level": "error"})
            assert levels(telling) == ["error"]
            await other.request("logging/setLevel", {"level": "debug"})
            assert levels(telling) == ["debug"]
            await one.request("logging/setLevel", {"level": "critical"})
            assert levels(telling) == ["debug"]
        await until(lambda: len(running.changes._listeners) == 1)  # the other has left
        await one.request("logging/setLevel", {"level": "alert"})
        assert levels(telling) == ["alert"]


async def test_the_shared_level_is_set_again_after_a_reconnection() -> None:
    telling = Telling("handshake", shared=True)
    async with telling.bridged() as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "error"})
        await telling.cut()
        await until(lambda: levels(telling) == [])
        await until(lambda: levels(telling) == ["error"])


@pytest.mark.parametrize("mode", MODES)
async def test_setting_a_level_reports_the_current_condition(mode: str) -> None:
    telling = Telling(mode)
    telling.is_away = True
    async with telling.bridged() as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "debug"})
        assert await logged(peer) == "the server small is not available: nobody answers at http://…"


async def test_an_unknown_level_is_refused() -> None:
    async with Telling("handshake").bridged() as running, talking(running) as peer:
        assert (await peer.request("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


async def test_no_level_is_sent_to_a_server_without_logging() -> None:
    telling = Telling("handshake")
    telling.app.capabilities.clear()
    async with telling.bridged() as running, talking(running) as peer:
        assert (await peer.request("logging/setLevel", {"level": "debug"}))["result"] == {}
