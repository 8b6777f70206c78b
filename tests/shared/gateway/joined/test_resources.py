"""The resources of several servers: their URIs stay what they are, and find their owner."""

from typing import Any

import anyio
import pytest

from shared import Resource, ResourceNotFound, RpcError, Server
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.gateway.joined.test_lists import ODD
from tests.shared.server.peer import ERAS, Peer, talking

both_eras = pytest.mark.parametrize("version", ERAS)


def with_resources(name: str, *uris: str) -> Door:
    """A member with these resources; those of a template take one variable, `id`."""
    return Door(name, serving(name, *uris))


def serving(name: str, *uris: str) -> Server[Any]:
    server = small(name)
    for uri in uris:
        if "{" in uri:

            @server.resource(uri, name=f"{name} {uri}")
            async def read_one(id: str) -> str:
                """Read one of many."""
                return f"{name} {id}"

        else:

            @server.resource(uri, name=f"{name} {uri}")
            async def read() -> str:
                """Read it."""
                return name

    return server


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


@both_eras
async def test_lists_follow_one_another(version: str) -> None:
    many = [f"a://{number}" for number in range(130)]
    more = [uri.replace("a", "b") for uri in many]
    a, b = with_resources("a", *many), with_resources("b", *more)
    async with joined(a, small_door("none"), b) as running, talking(running, version) as peer:
        assert await uris(peer) == many + more


@both_eras
async def test_a_member_that_can_not_list_leaves_the_others_theirs(version: str) -> None:
    a, b = with_resources("a", "a://1"), with_resources("b", "b://1")
    async with joined(a, b) as running, talking(running, version) as peer:
        assert a.running is not None
        assert b.running is not None
        a.running.handlers["resources/list"] = refuse
        assert await uris(peer) == ["b://1"]
        b.running.handlers["resources/list"] = refuse
        assert (await peer.request("resources/list"))["error"]["message"] == "no idea"


async def refuse(*_: Any) -> dict[str, Any]:
    """Answers as servers of others may, in words of their own."""
    raise RpcError("no idea", code=0)


@both_eras
async def test_an_owner_that_was_found_is_asked_first_from_then_on(version: str) -> None:
    a, b = with_resources("a", "a://1"), with_resources("b", "b://1")
    asked = []

    async def fail(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
        asked.append(params.uri)
        raise ResourceNotFound(params.uri)

    async def give(_running: Any, _context: Any, params: Any) -> dict[str, Any]:
        return {"contents": [{"uri": params.uri, "text": "b"}]}

    async with joined(a, b) as running, talking(running, version) as peer:
        assert a.running is not None
        assert b.running is not None
        a.running.handlers["resources/read"] = fail
        b.running.handlers["resources/read"] = give
        for _ in range(3):
            assert await text(peer, "b://hidden") == "b"
        assert asked == ["b://hidden"]


@both_eras
async def test_an_error_that_says_more_than_not_found_is_told_where_nobody_has_it(version: str) -> None:
    a, b = with_resources("a", "a://1"), with_resources("b", "b://1")
    async with joined(a, b) as running, talking(running, version) as peer:
        assert a.running is not None
        a.running.handlers["resources/read"] = refuse
        assert (await peer.request("resources/read", {"uri": "z://1"}))["error"]["message"] == "no idea"


def small_door(name: str) -> Door:
    return Door(name, small(name))


@both_eras
async def test_a_page_of_a_member_that_has_closed_is_followed_by_the_next_one(version: str) -> None:
    a = with_resources("a", *(f"a://{number}" for number in range(130)))
    async with joined(a, with_resources("b", "b://1")) as running, talking(running, version) as peer:
        first = (await peer.request("resources/list"))["result"]
        await a.close()
        second = (await peer.request("resources/list", {"cursor": first["nextCursor"]}))["result"]
        assert [one["uri"] for one in second["resources"]] == ["b://1"]


@both_eras
async def test_what_is_declared_comes_before_a_template_that_fits(version: str) -> None:
    a, b = with_resources("a", "x://{id}"), with_resources("b", "x://one")
    async with joined(a, b) as running, talking(running, version) as peer:
        assert [await text(peer, "x://one"), await text(peer, "x://two")] == ["b", "a two"]


@both_eras
async def test_templates_are_listed_as_they_are(version: str) -> None:
    a, b = with_resources("a", "x://{id}"), with_resources("b", "y://{id}")
    async with joined(a, b) as running, talking(running, version) as peer:
        result = (await peer.request("resources/templates/list"))["result"]
        assert [one["uriTemplate"] for one in result["resourceTemplates"]] == ["x://{id}", "y://{id}"]


@both_eras
async def test_what_nobody_has_is_not_found(version: str) -> None:
    a, b = with_resources("a", "x://{id}"), with_resources("b", "b://1")
    async with joined(a, b) as running, talking(running, version) as peer:
        error = (await peer.request("resources/read", {"uri": "z://1"}))["error"]
        assert (error["message"], error["data"]) == ("resource not found", {"uri": "z://1"})


@both_eras
async def test_what_a_member_lists_is_its_own_though_others_refuse_it_in_their_way(version: str) -> None:
    """Servers of others answer with any error for what they do not know."""
    a, b = serving("a", "a://1"), small("b")

    @b.lists_resources
    async def listed(_ctx: Any) -> list[Resource]:
        return [Resource(uri="b://listed", name="listed")]

    async def give(*_: Any) -> dict[str, Any]:
        return {"contents": [{"uri": "b://listed", "text": "b"}]}

    first, second = Door("a", a), Door("b", b)
    async with joined(first, second) as running, talking(running, version) as peer:
        assert first.running is not None
        assert second.running is not None
        first.running.handlers["resources/read"] = refuse
        second.running.handlers["resources/read"] = give
        assert await text(peer, "b://listed") == "b"
        error = (await peer.request("resources/read", {"uri": "a://1"}))["error"]
        assert error["message"] == "no idea"


@both_eras
async def test_a_template_is_completed_by_its_owner(version: str) -> None:
    a, b = serving("a", "x://{id}"), serving("b", "y://{id}")

    @b.completes("resource", "y://{id}", "id")
    async def complete(_ctx: Any, typed: str, _settled: Any) -> list[str]:
        return [f"{typed}!"]

    async with joined(Door("a", a), Door("b", b)) as running, talking(running, version) as peer:
        ref = {"type": "ref/resource", "uri": "y://{id}"}
        params = {"ref": ref, "argument": {"name": "id", "value": "o"}}
        result = (await peer.request("completion/complete", params))["result"]
        assert result["completion"]["values"] == ["o!"]


# Subscriptions


class Watching:
    """What a member with one resource is told of its subscriptions."""

    def __init__(self) -> None:
        self.server = serving("a", "a://1", "a://{id}")
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.refuses = False
        self.server.on_subscribe(self._begin)
        self.server.on_unsubscribe(self._end)

    async def _begin(self, _ctx: Any, uri: str) -> str:
        self.begun.append(uri)
        if self.refuses:
            raise ResourceNotFound(uri)
        return uri.casefold()

    async def _end(self, _running: Any, key: str) -> None:
        self.ended.append(key)


async def subscribe(peer: Peer, uri: str) -> Any:
    """Begins a subscription in the words of the peer's version; the id of the request that has it."""
    if peer.version == ERAS[0]:
        return (await peer.request("resources/subscribe", {"uri": uri}))["id"]
    id_ = await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    await peer.other("notifications/subscriptions/acknowledged")
    return id_


@both_eras
async def test_a_subscriber_hears_of_changes_under_the_name_it_has_used(version: str) -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running, version) as peer:
        await subscribe(peer, "A://1")
        assert door.running is not None
        door.running.changes.resource("a://1")
        assert (await peer.other("notifications/resources/updated"))["params"]["uri"] == "A://1"


@both_eras
async def test_many_clients_have_one_subscription_at_the_owner(version: str) -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running:
        async with talking(running, version) as first:
            await subscribe(first, "a://1")
            for _ in range(20):
                async with talking(running, version) as peer:
                    await subscribe(peer, "a://1")
                    assert door.running is not None
                    assert door.running.changes.held == 1
            assert watching.ended == []
        assert watching.ended == ["a://1"]
        assert door.running.changes.held == 0


@both_eras
async def test_what_nobody_has_can_not_be_subscribed_to(version: str) -> None:
    async with joined(with_resources("a", "a://1")) as running, talking(running, version) as peer:
        if version == ERAS[0]:
            assert "error" in await peer.request("resources/subscribe", {"uri": "a://1"})
        else:
            await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a://1"]}})
            told = await peer.other("notifications/subscriptions/acknowledged")
            assert told["params"]["notifications"] == {}


@both_eras
async def test_subscriptions_outlive_their_owner(version: str) -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running, version) as peer:
        await subscribe(peer, "a://1")
        await door.close()
        opened = await door.open()
        # It may have changed while nobody looked.
        assert (await peer.other("notifications/resources/updated"))["params"]["uri"] == "a://1"
        assert watching.begun == ["a://1", "a://1"]
        opened.changes.resource("a://1")
        assert (await peer.other("notifications/resources/updated"))["params"]["uri"] == "a://1"


async def test_subscriptions_of_clients_that_leave_at_once_are_released() -> None:
    watching = Watching()
    door = Door("a", watching.server)

    async def come_and_go() -> None:
        async with talking(running, ERAS[0]) as peer:
            await subscribe(peer, "a://1")

    async with joined(door) as running:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(come_and_go)
        assert door.running is not None
        assert door.running.changes.held == 0
        assert watching.ended.count("a://1") == len(watching.ended)


@both_eras
async def test_who_subscribes_anew_brings_the_others_their_subscription_back(version: str) -> None:
    watching = Watching()
    door = Door("a", watching.server)
    async with joined(door) as running, talking(running, version) as first:
        await subscribe(first, "a://1")
        await door.close()
        watching.refuses = True
        opened = await door.open()
        await first.other("notifications/resources/updated")
        assert opened.changes.held == 0
        watching.refuses = False
        async with talking(running, version) as second:
            await subscribe(second, "a://1")
            opened.changes.resource("a://1")
            for peer in (first, second):
                assert (await peer.other("notifications/resources/updated"))["params"]["uri"] == "a://1"
        assert opened.changes.held == 1


@both_eras
async def test_templates_of_a_member_that_comes_later_are_known(version: str) -> None:
    late = with_resources("b", "y://{id}")
    async with joined(with_resources("a", "x://{id}"), closed=(late,)) as running, talking(running, version) as peer:
        ref = {"type": "ref/resource", "uri": "y://{id}"}
        params = {"ref": ref, "argument": {"name": "id", "value": ""}}
        error = (await peer.request("completion/complete", params))["error"]
        assert error["message"] == "unknown resource or template: y://{id}; not available at this time: b"
        await late.open()
        assert "result" in await peer.request("completion/complete", params)
        assert await text(peer, "y://1") == "b 1"


@pytest.mark.parametrize("said", ODD, ids=str)
@both_eras
async def test_what_a_page_says_wrong_of_itself_harms_no_list(version: str, said: dict[str, Any]) -> None:
    a, b, c = (with_resources(name, f"{name}://1") for name in "abc")

    async def listed(*_: Any) -> dict[str, Any]:
        return {"resources": [{"uri": "b://1", "name": "one"}], **said}

    async with joined(a, b, c) as running, talking(running, version) as peer:
        assert b.running is not None
        b.running.handlers["resources/list"] = listed
        assert await uris(peer) == ["a://1", "b://1", "c://1"]


async def test_an_entry_that_is_none_is_left_out() -> None:
    a, b = (with_resources(name, f"{name}://1") for name in "ab")

    async def listed(*_: Any) -> dict[str, Any]:
        return {
            "resources": ["b://1", None, {"uri": 5, "name": "x"}, {"uri": "b://2"}, {"uri": "b://1", "name": "1"}]
        }

    async with joined(a, b) as running, talking(running) as peer:
        assert b.running is not None
        b.running.handlers["resources/list"] = listed
        assert await uris(peer) == ["a://1", "b://1"]
