"""Pages of several joined servers: each is read from its own server, even if another has the same URI."""

from typing import Any

from servers.gateway.bridge import bridge
from servers.gateway.joined.apps import ui_uri_of
from shared import Resource
from tests.servers.gateway.apps import HOST, PAGE, linked, notes, shown, title
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, Behind
from tests.servers.gateway.joined.members import Door, joined, opened, small
from tests.shared.server.peer import talking

OTHER = "ui://others/list"


async def test_pages_with_the_same_uri_get_the_prefix_of_their_server() -> None:
    doors = Door("a", notes("of a")), Door("b", notes("of b")), Door("c", notes("of c", page=OTHER))
    async with joined(*doors) as running, talking(running, capabilities=HOST) as peer:
        links = await linked(peer)
        assert links == {
            "a__read_notes": "ui://a__notes/list",
            "b__read_notes": "ui://b__notes/list",
            "c__read_notes": OTHER,
        }
        for tool, uri in links.items():
            assert await title(peer, uri) == f"of {tool[0]}"
            assert await shown(peer, tool) == {"notes": [f"of {tool[0]}"]}


async def test_each_client_sees_pages_only_if_it_declared_them() -> None:
    async with joined(Door("a", notes("of a")), Door("b", notes("of b", page=OTHER))) as running:
        for capabilities, count in ((HOST, 2), ({}, 0), (HOST, 2)):
            async with talking(running, capabilities=capabilities) as peer:
                assert len(await linked(peer)) == count
                assert (await shown(peer, "a__read_notes") is not None) is bool(count)


async def test_a_host_hears_of_members_that_open_and_close() -> None:
    late = Door("b", notes("of b"))
    async with (
        joined(Door("a", notes("of a")), closed=(late,)) as running,
        talking(running, capabilities=HOST) as peer,
    ):
        # Where it is the only one it stays what it is.
        assert (await linked(peer), await title(peer, PAGE)) == ({"read_notes": PAGE}, "of a")
        assert await shown(peer) == {"notes": ["of a"]}
        await late.open()
        assert await linked(peer) == {"a__read_notes": "ui://a__notes/list", "b__read_notes": "ui://b__notes/list"}
        # What it has is nobody else's while it is gone.
        await late.close()
        assert await linked(peer) == {"a__read_notes": "ui://a__notes/list"}


@EVERY_PAIR
async def test_pages_behind_bridges_are_listed(version: str, mode: str) -> None:
    behind = Behind(notes("of theirs"), mode)
    async with behind.serving() as way:
        doors = Door("ours", notes("of ours")), Door("theirs", bridge(way))
        async with joined(*doors) as running:
            for capabilities, count in (({}, 0), (HOST, 2), ({}, 0)):
                async with talking(running, version, capabilities) as peer:
                    links = await linked(peer)
                    assert len(links) == count
                    for tool, uri in links.items():
                        name = tool.partition("__")[0]
                        assert await title(peer, uri) == f"of {name}"
                        assert await shown(peer, tool) == {"notes": [f"of {name}"]}


def test_the_page_of_a_tool_is_read_from_either_form() -> None:
    odd = (None, 5, {}, {"ui": None}, {"ui": []}, {"ui": {"resourceUri": 5}}, {"ui": {"resourceUri": "https://a/b"}})
    assert [ui_uri_of({"name": "a", "_meta": meta}) for meta in odd] == [None] * len(odd)
    assert ui_uri_of({"name": "a", "_meta": {"ui/resourceUri": PAGE}}) == PAGE


async def test_a_page_listed_by_two_servers_belongs_to_the_one_with_its_tool() -> None:
    ours, theirs = notes("of ours"), small("theirs")

    @theirs.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri=PAGE, name="list")]

    async def give(*_: Any) -> dict[str, Any]:
        return {"contents": [{"uri": PAGE, "text": "<title>of theirs</title>"}]}

    first, second = Door("theirs", theirs), Door("ours", ours)
    async with joined(first, second) as running, talking(running, capabilities=HOST) as peer:
        opened(first).handlers["resources/read"] = give
        await peer.request("resources/list")
        assert await linked(peer) == {"read_notes": PAGE}
        assert await title(peer, PAGE) == "of ours"


async def test_a_page_with_the_prefix_of_another_server_gets_its_own_prefix_too() -> None:
    doors = Door("a", notes("of a")), Door("b", notes("of b", page="ui://a__notes/list"))
    async with joined(*doors) as running, talking(running, capabilities=HOST) as peer:
        links = await linked(peer)
        assert links == {"a__read_notes": PAGE, "b__read_notes": "ui://b__a__notes/list"}
        assert [await title(peer, uri) for uri in links.values()] == ["of a", "of b"]
