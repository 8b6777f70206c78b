"""That the roots of a client are others now, and who is told so."""

import anyio

from shared.gateway.bridge import Upstream, bridge
from tests.shared.gateway.bridge.telling import Telling, until
from tests.shared.gateway.joined.members import Door, joined
from tests.shared.server.peer import PATIENCE, talking

ROOTS = {"roots": {"listChanged": True}}


async def test_the_session_of_the_client_is_told() -> None:
    telling = Telling("handshake")
    async with telling.bridged() as running, talking(running, capabilities=ROOTS) as one, talking(running) as other:
        await other.request("ping")
        await one.call("add", a=1, b=2)
        await one.notify("notifications/roots/list_changed")
        await until(lambda: telling.roots_changed == 1)


async def test_a_server_that_all_share_is_told() -> None:
    telling = Telling("handshake", shared=True)
    async with telling.bridged() as running, talking(running, capabilities=ROOTS) as peer:
        await peer.notify("notifications/roots/list_changed")
        await until(lambda: telling.roots_changed == 1)


async def test_a_server_without_sessions_asks_anew_anyhow() -> None:
    telling = Telling("stateless")
    async with telling.bridged() as running, talking(running, capabilities=ROOTS) as peer:
        await peer.notify("notifications/roots/list_changed")
        id_ = await peer.start("roots")
        asked = await peer.other("roots/list")
        await peer.reply(asked["id"], {"roots": [{"uri": "file:///here"}]})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "file:///here"
        assert telling.roots_changed == 0


async def test_a_server_that_all_share_is_told_by_clients_that_were_there_before() -> None:
    """Which have shaken hands with the gateway before the bridge was opened behind it."""
    telling = Telling("handshake", shared=True)
    door = Door("small", bridge(Upstream("small", telling.connect, shared=True)))
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
