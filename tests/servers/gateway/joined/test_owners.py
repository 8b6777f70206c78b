"""The resources of several servers: their URIs stay what they are, and find their owner."""

from typing import Any

from shared import Resource, ResourceNotFound, RpcError
from tests.servers.gateway.joined.members import (
    Door,
    joined,
    opened,
    serving,
    small,
    with_resources,
)
from tests.servers.gateway.joined.test_list_cache import ODD
from tests.shared.server.peer import Peer, talking


async def uris(peer: Peer) -> list[str]:
    """The URIs on all pages."""
    found: list[str] = []
    params: dict[str, Any] = {}
    while True:
        result = (await peer.request("resources/list", params))["result"]
        found += [one["uri"] for one in result["resources"]]
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


async def text(peer: Peer, uri: str) -> str:
    read: str = (await peer.request("resources/read", {"uri": uri}))["result"]["contents"][0]["text"]
    return read


async def test_lists_follow_one_another() -> None:
    many = [f"a://{number}" for number in range(5)]
    more = [uri.replace("a", "b") for uri in many]
    a, b = with_resources("a", *many), with_resources("b", *more)
    async with joined(a, Door("none", small("none")), b) as running:
        for member in (a, b):
            opened(member).server.page_size = 3
        async with talking(running) as peer:
            assert await uris(peer) == many + more


async def test_a_member_that_can_not_list_leaves_the_others_theirs() -> None:
    a, b = with_resources("a", "a://1"), with_resources("b", "b://1")
    async with joined(a, b) as running, talking(running) as peer:
        opened(a).handlers["resources/list"] = refuse
        assert await uris(peer) == ["b://1"]
        opened(b).handlers["resources/list"] = refuse
        assert (await peer.request("resources/list"))["error"]["message"] == "no idea"


async def refuse(*_: Any) -> dict[str, Any]:
    """Answers as servers of others may, in words of their own."""
    raise RpcError("no idea", code=0)


async def test_an_owner_that_was_found_is_asked_first_from_then_on() -> None:
    a, b = with_resources("a", "a://1"), with_resources("b", "b://1")
    asked = []

    async def fail(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
        asked.append(params.uri)
        raise ResourceNotFound(params.uri)

    async def give(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
        return {"contents": [{"uri": params.uri, "text": "b"}]}

    async with joined(a, b) as running, talking(running) as peer:
        opened(a).handlers["resources/read"] = fail
        opened(b).handlers["resources/read"] = give
        for _ in range(3):
            assert await text(peer, "b://hidden") == "b"
        assert asked == ["b://hidden"]


async def test_a_page_of_a_member_that_has_closed_is_followed_by_the_next_one() -> None:
    a = with_resources("a", *(f"a://{number}" for number in range(5)))
    async with joined(a, with_resources("b", "b://1")) as running, talking(running) as peer:
        opened(a).server.page_size = 3
        first = (await peer.request("resources/list"))["result"]
        await a.close()
        second = (await peer.request("resources/list", {"cursor": first["nextCursor"]}))["result"]
        assert [one["uri"] for one in second["resources"]] == ["b://1"]


async def test_what_is_declared_comes_before_a_template_that_fits() -> None:
    a, b = with_resources("a", "x://{id}"), with_resources("b", "x://one")
    async with joined(a, b) as running, talking(running) as peer:
        assert [await text(peer, "x://one"), await text(peer, "x://two")] == ["b", "a two"]
        error = (await peer.request("resources/read", {"uri": "z://1"}))["error"]
        assert (error["message"], error["data"]) == ("resource not found", {"uri": "z://1"})
        # An error that says more is told where nobody has it.
        opened(a).handlers["resources/read"] = refuse
        assert (await peer.request("resources/read", {"uri": "z://1"}))["error"]["message"] == "no idea"


async def test_what_a_member_lists_is_its_own_though_others_refuse_it_in_their_way() -> None:
    """Servers of others answer with any error for what they do not know."""
    a, b = serving("a", "a://1"), small("b")

    @b.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri="b://listed", name="listed")]

    async def give(*_: Any) -> dict[str, Any]:
        return {"contents": [{"uri": "b://listed", "text": "b"}]}

    first, second = Door("a", a), Door("b", b)
    async with joined(first, second) as running, talking(running) as peer:
        opened(first).handlers["resources/read"] = refuse
        opened(second).handlers["resources/read"] = give
        assert await text(peer, "b://listed") == "b"
        error = (await peer.request("resources/read", {"uri": "a://1"}))["error"]
        assert error["message"] == "no idea"


async def test_templates_are_completed_and_listed_by_their_owner_which_may_come_later() -> None:
    server = serving("b", "y://{id}")

    @server.completes("resource", "y://{id}", "id")
    async def complete(_ctx: Any, typed: str, _settled: Any) -> list[str]:
        return [f"{typed}!"]

    late = Door("b", server)
    async with joined(with_resources("a", "x://{id}"), closed=(late,)) as running, talking(running) as peer:
        ref = {"type": "ref/resource", "uri": "y://{id}"}
        params = {"ref": ref, "argument": {"name": "id", "value": "o"}}
        error = (await peer.request("completion/complete", params))["error"]
        assert error["message"] == "unknown resource or template: y://{id}; not available at this time: b"
        await late.open()
        completed = (await peer.request("completion/complete", params))["result"]["completion"]
        assert completed["values"] == ["o!"]
        listed = (await peer.request("resources/templates/list"))["result"]["resourceTemplates"]
        assert [one["uriTemplate"] for one in listed] == ["x://{id}", "y://{id}"]
        assert await text(peer, "y://1") == "b 1"


async def test_what_is_no_entry_is_left_out_and_what_a_page_says_wrong_of_itself_harms_no_list() -> None:
    a, b, c = (with_resources(name, f"{name}://1") for name in "abc")
    odd = ["b://1", None, {"uri": 5, "name": "x"}, {"uri": "b://2"}]
    async with joined(a, b, c) as running, talking(running) as peer:
        for said in ODD:

            async def listed(*_: Any, said: dict[str, Any] = said) -> dict[str, Any]:
                return {"resources": [*odd, {"uri": "b://1", "name": "one"}], **said}

            opened(b).handlers["resources/list"] = listed
            assert await uris(peer) == ["a://1", "b://1", "c://1"], said
