"""Pages of several joined servers: each is found at its server, whatever others call theirs."""

from typing import Any

from servers.gateway.bridge import bridge
from servers.gateway.joined.apps import page_of
from shared import Resource
from tests.servers.gateway.apps import HOST, PAGE, linked, notes, shown, title
from tests.servers.gateway.bridge.upstreams import EVERY_PAIR, Behind
from tests.servers.gateway.joined.members import Door, joined, opened, small
from tests.shared.server.peer import talking

OTHER = "ui://others/list"


async def test_pages_with_one_uri_have_the_names_of_their_servers() -> None:
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


async def test_clients_see_what_they_declared_whoever_asks_first() -> None:
    async with joined(Door("a", notes("of a")), Door("b", notes("of b", page=OTHER))) as running:
        for capabilities, count in ((HOST, 2), ({}, 0), (HOST, 2)):
            async with talking(running, capabilities=capabilities) as peer:
                assert len(await linked(peer)) == count
                assert (await shown(peer, "a__read_notes") is not None) is bool(count)


async def test_a_host_is_told_of_servers_that_come_and_go() -> None:
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
async def test_pages_behind_bridges_are_found_as_well(version: str, mode: str) -> None:
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


def test_a_tool_names_its_page_in_either_form() -> None:
    odd = (None, 5, {}, {"ui": None}, {"ui": []}, {"ui": {"resourceUri": 5}}, {"ui": {"resourceUri": "https://a/b"}})
    assert [page_of({"name": "a", "_meta": meta}) for meta in odd] == [None] * len(odd)
    assert page_of({"name": "a", "_meta": {"ui/resourceUri": PAGE}}) == PAGE


async def test_a_page_that_another_server_lists_as_well_is_that_of_the_tool_that_names_it() -> None:
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


async def test_a_page_with_the_name_of_another_server_gets_that_of_its_own_as_well() -> None:
    doors = Door("a", notes("of a")), Door("b", notes("of b", page="ui://a__notes/list"))
    async with joined(*doors) as running, talking(running, capabilities=HOST) as peer:
        links = await linked(peer)
        assert links == {"a__read_notes": PAGE, "b__read_notes": "ui://b__a__notes/list"}
        assert [await title(peer, uri) for uri in links.values()] == ["of a", "of b"]
