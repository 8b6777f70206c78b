"""The resources of joined servers: their URIs are unchanged and lead to their owner."""

from typing import Any

import pytest

from shared import Context, Resource, ResourceLink, ResourceNotFound, RpcError, Server
from shared.errors import InsufficientScope
from tests.servers.gateway.changes import subscribed, updated
from tests.servers.gateway.joined.members import Door, both_eras, joined, opened, serving, small, with_resources
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


async def test_resource_lists_of_members_are_concatenated() -> None:
    many = [f"a://{number}" for number in range(5)]
    more = [uri.replace("a", "b") for uri in many]
    a, b = with_resources("a", *many), with_resources("b", *more)
    async with joined(a, Door("none", small("none")), b) as running:
        for member in (a, b):
            opened(member).server.page_size = 3
        async with talking(running) as peer:
            assert await uris(peer) == many + more


async def test_a_member_that_fails_to_list_does_not_affect_others() -> None:
    a, b = with_resources("a", "a://1"), with_resources("b", "b://1")
    async with joined(a, b) as running, talking(running) as peer:
        opened(a).handlers["resources/list"] = refuse
        assert await uris(peer) == ["b://1"]
        opened(b).handlers["resources/list"] = refuse
        assert (await peer.request("resources/list"))["error"]["message"] == "no idea"


async def refuse(*_: Any) -> dict[str, Any]:
    """Refuses with an error of its own, as third-party servers may."""
    raise RpcError("no idea", code=0)


async def test_a_known_owner_is_asked_first() -> None:
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


async def test_a_cursor_of_a_closed_member_continues_with_the_next_member() -> None:
    a = with_resources("a", *(f"a://{number}" for number in range(5)))
    async with joined(a, with_resources("b", "b://1")) as running, talking(running) as peer:
        opened(a).server.page_size = 3
        first = (await peer.request("resources/list"))["result"]
        await a.close()
        second = (await peer.request("resources/list", {"cursor": first["nextCursor"]}))["result"]
        assert [one["uri"] for one in second["resources"]] == ["b://1"]


async def test_a_declared_resource_precedes_a_matching_template() -> None:
    a, b = with_resources("a", "x://{id}"), with_resources("b", "x://one")
    async with joined(a, b) as running, talking(running) as peer:
        assert [await text(peer, "x://one"), await text(peer, "x://two")] == ["b", "a two"]
        error = (await peer.request("resources/read", {"uri": "z://1"}))["error"]
        assert (error["message"], error["data"]) == ("resource not found", {"uri": "z://1"})
        # An error that says more is told where nobody has it.
        opened(a).handlers["resources/read"] = refuse
        assert (await peer.request("resources/read", {"uri": "z://1"}))["error"]["message"] == "no idea"


async def test_a_listed_resource_is_read_despite_unusual_errors_of_other_members() -> None:
    """Third-party servers answer with any error for an unknown resource."""
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


async def test_templates_are_completed_and_listed_by_a_late_owner() -> None:
    server = serving("b", "y://{id}")

    @server.completes("resource", "y://{id}", "id")
    async def complete(_ctx: Any, typed: str, _settled: Any) -> list[str]:
        return [f"{typed}!"]

    late = Door("b", server)
    async with joined(with_resources("a", "x://{id}"), closed=(late,)) as running, talking(running) as peer:
        ref = {"type": "ref/resource", "uri": "y://{id}"}
        params = {"ref": ref, "argument": {"name": "id", "value": "o"}}
        error = (await peer.request("completion/complete", params))["error"]
        assert error["message"] == "unknown resource or template: y://{id}; not available at the moment: b"
        await late.open()
        completed = (await peer.request("completion/complete", params))["result"]["completion"]
        assert completed["values"] == ["o!"]
        listed = (await peer.request("resources/templates/list"))["result"]["resourceTemplates"]
        assert [one["uriTemplate"] for one in listed] == ["x://{id}", "y://{id}"]
        assert await text(peer, "y://1") == "b 1"


async def test_invalid_entries_and_page_fields_affect_no_other_list() -> None:
    a, b, c = (with_resources(name, f"{name}://1") for name in "abc")
    odd = ["b://1", None, {"uri": 5, "name": "x"}, {"uri": "b://2"}]
    async with joined(a, b, c) as running, talking(running) as peer:
        for said in ODD:

            async def listed(*_: Any, said: dict[str, Any] = said) -> dict[str, Any]:
                return {"resources": [*odd, {"uri": "b://1", "name": "one"}], **said}

            opened(b).handlers["resources/list"] = listed
            assert await uris(peer) == ["a://1", "b://1", "c://1"], said


def library(name: str, *own: str) -> Server[Any]:
    """A server that lists prompts, as libraries do, and has a template for them."""
    server = small(name)
    texts = {f"prompt://{one}": f"{name} {one}" for one in ("a", *own)}

    @server.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri=uri, name=uri) for uri in texts]

    @server.resource("prompt://{name}", name="prompt")
    async def read_one(name: str) -> str:
        """Read one of many."""
        if f"prompt://{name}" not in texts:
            raise ResourceNotFound(f"prompt://{name}")
        return texts[f"prompt://{name}"]

    @server.completes("resource", "prompt://{name}", "name")
    async def complete(_ctx: Any, typed: str, _settled: Any) -> list[str]:
        return [f"{typed} of {name}"]

    @server.on_subscribe
    async def subscribe(_ctx: Context[Any], uri: str) -> str:
        return uri

    @server.tool(name=f"link_{name}")
    async def link() -> ResourceLink:
        """Link one."""
        return ResourceLink(uri="prompt://a", name="a")

    return server


async def completed(peer: Peer, uri: str) -> list[str]:
    params = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "name", "value": "x"}}
    values: list[str] = (await peer.request("completion/complete", params))["result"]["completion"]["values"]
    return values


async def linked(peer: Peer, tool: str) -> str:
    uri: str = (await peer.call(tool))["result"]["content"][0]["uri"]
    return uri


async def test_two_prompt_libraries_are_distinguished_everywhere() -> None:
    async with joined(Door("a", library("a")), Door("b", library("b", "own"))) as running, talking(running) as peer:
        listed = (await peer.request("resources/templates/list"))["result"]["resourceTemplates"]
        assert [one["uriTemplate"] for one in listed] == ["prompt://{name}", "prompt://b__{name}"]
        assert await uris(peer) == ["prompt://a", "prompt://b__a", "prompt://b__own"]
        assert [await text(peer, uri) for uri in await uris(peer)] == ["a a", "b a", "b own"]
        read = (await peer.request("resources/read", {"uri": "prompt://b__a"}))["result"]["contents"][0]
        assert read["uri"] == "prompt://b__a"
        assert await completed(peer, "prompt://{name}") == ["x of a"]
        assert await completed(peer, "prompt://b__{name}") == ["x of b"]
        assert [await linked(peer, f"link_{name}") for name in "ab"] == ["prompt://a", "prompt://b__a"]
        # What only one of them has is found by its own URI as well.
        assert await text(peer, "prompt://own") == "b own"


@both_eras
async def test_a_change_in_either_library_is_reported_with_its_own_uri(version: str) -> None:
    doors = Door("a", library("a")), Door("b", library("b"))
    both = ["prompt://a", "prompt://b__a"]
    async with joined(*doors) as running, talking(running, version) as peer:
        await uris(peer)
        await subscribed(peer, *both)
        for door, uri in zip(doors, both, strict=True):
            opened(door).changes.resource("prompt://a")
            assert await updated(peer) == uri


async def test_a_declared_resource_belongs_to_its_server_despite_its_matching_template() -> None:
    declaring, listing = small("declaring"), small("listing")

    @declaring.resource("memo://one")
    async def one() -> str:
        """The one."""
        return "declared"

    @declaring.resource("memo://{id}")
    async def any_of_them(id: str) -> str:
        """Any."""
        return id

    @listing.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri="memo://one", name="x")]

    async def give(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
        return {"contents": [{"uri": params.uri, "text": "listed"}]}

    first = Door("listing", listing)
    async with joined(first, Door("declaring", declaring)) as running, talking(running) as peer:
        opened(first).handlers["resources/read"] = give
        await uris(peer)
        assert await text(peer, "memo://one") == "declared"


async def test_a_foreign_listing_can_not_take_over_resources_of_our_servers() -> None:
    files, other = serving("files", "file:///{+id}"), small("other")

    @other.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri=uri, name="x") for uri in ("file:///a", "file://files__/b")]

    async def give(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
        return {"contents": [{"uri": params.uri, "text": "theirs"}]}

    theirs, ours = Door("other", other), Door("files", files)
    async with joined(theirs, ours, third_party_names=["other"]) as running, talking(running) as peer:
        opened(theirs).handlers["resources/read"] = give
        assert await uris(peer) == ["file:///a", "file://other__files__/b"]
        assert await text(peer, "file:///a") == "files a"
        assert await text(peer, "file://files__/b") == "files b"
        assert await text(peer, "file://other__files__/b") == "theirs"
        # Nor while ours is not there.
        await ours.close()
        for uri in ("file:///a", "file://files__/b"):
            error = (await peer.request("resources/read", {"uri": uri}))["error"]
            assert error["message"] == "the server files is not available: it was closed"


async def test_a_listed_resource_precedes_a_template_for_any_uri() -> None:
    greedy, listing = serving("greedy", "x:{+id}"), small("listing")

    @listing.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri="x://1", name="x")]

    async def give(*_: Any) -> dict[str, Any]:
        return {"contents": [{"uri": "x://1", "text": "listed"}]}

    door = Door("listing", listing)
    async with (
        joined(Door("greedy", greedy), door, third_party_names=["greedy", "listing"]) as running,
        talking(running) as peer,
    ):
        opened(door).handlers["resources/read"] = give
        assert await uris(peer) == ["x://1"]
        assert await text(peer, "x://1") == "listed"


async def test_a_resource_that_its_owner_no_longer_lists_belongs_to_the_next_server() -> None:
    first, second, listed = small("first"), small("second"), [Resource(uri="x://1", name="x")]

    @first.lists_resources
    async def changing(_ctx: Any) -> list[Resource]:
        return listed

    @second.lists_resources
    async def constant(_ctx: Any) -> list[Resource]:
        return [Resource(uri="x://1", name="x")]

    door = Door("first", first)
    async with joined(door, Door("second", second)) as running, talking(running) as peer:
        assert await uris(peer) == ["x://1", "x://second__1"]
        listed.clear()
        opened(door).changes.resources()
        await peer.other("notifications/resources/list_changed")
        assert await uris(peer) == ["x://1"]


@pytest.mark.parametrize("knows", [True, False])
async def test_a_missing_scope_of_a_guessed_owner_is_not_reported(*, knows: bool) -> None:
    async def refuse_scope(*_: Any) -> dict[str, Any]:
        raise InsufficientScope(["b:read"])

    a, b = with_resources("a", "x://{id}" if knows else "y://1"), with_resources("b", "z://1")
    async with joined(a, b) as running, talking(running) as peer:
        opened(b).handlers["resources/read"] = refuse_scope
        opened(a).handlers["resources/read"] = missing
        error = (await peer.request("resources/read", {"uri": "x://absent"}))["error"]
        assert (error["message"], error["data"]) == ("resource not found", {"uri": "x://absent"})
        error = (await peer.request("resources/read", {"uri": "z://1"}))["error"]
        assert "b:read" in error["message"]


async def missing(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
    """Answer that there is nothing."""
    raise ResourceNotFound(params.uri)
