"""What several servers are as one, and what becomes of that when they come and go."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from shared import Context, Opening
from shared.gateway.joined.gateway import gateway
from shared.protocol.methods import Method
from shared.protocol.types.tools import InputParams
from shared.server.extension import Extension
from shared.server.server import MAX_INSTRUCTIONS
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, Json, Peer, talking
from tests.wire import CLIENT_INFO

both_eras = pytest.mark.parametrize("version", ERAS)
LISTS = ("tools", "prompts", "resources")


def plain(name: str, **options: Any) -> Door:
    """A member with one tool."""
    server = small(name, **options)

    @server.tool(name=f"{name}_tool")
    async def work() -> str:
        """Work."""
        return name

    return Door(name, server)


async def described(running: Any, version: str) -> Json:
    """What a new client is told."""
    async with talking(running, STATELESS) as peer:
        if version == STATELESS:
            result: Json = (await peer.request("server/discover"))["result"]
            return result
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}
        shaken = Peer(peer.end, version, {})
        told: Json = (await shaken.request("initialize", params))["result"]
        return told


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two servers have the same name: a, a"):
        gateway([plain("a"), plain("a")])


def test_a_name_that_would_not_fit_before_others_is_refused() -> None:
    with pytest.raises(ValueError, match="a_b"):
        gateway([plain("a_b")])


@both_eras
async def test_it_can_what_one_of_them_can(version: str) -> None:
    a, b = plain("a", capabilities={"logging": {}}), small("b", capabilities={"experimental": {"x": {}}})

    @b.resource("b://1")
    async def read() -> str:
        """Read."""
        return "b"

    async with joined(a, Door("b", b)) as running:
        told = (await described(running, version))["capabilities"]
        assert {name for name in told if name != "extensions"} == {"tools", "resources", "logging", "experimental"}
        assert told["tools"] == told["resources"] == {"listChanged": True}


@both_eras
async def test_one_that_is_not_open_may_have_anything(version: str) -> None:
    async with joined(closed=(plain("a"),)) as running:
        told = (await described(running, version))["capabilities"]
        assert told["resources"] == {"subscribe": True, "listChanged": True}
        assert told.keys() == {"tools", "prompts", "resources", "completions", "logging"}


async def test_instructions_stand_below_names() -> None:
    async with joined(plain("a", instructions="Use me."), plain("b"), plain("c", instructions="Or me.")) as running:
        assert (await described(running, STATELESS))["instructions"] == "## a\nUse me.\n\n## c\nOr me."


async def test_long_instructions_are_cut_before_short_ones() -> None:
    doors = [
        plain(name, instructions=text) for name, text in (("a", "long ü " * 250), ("b", "short"), ("c", "x " * 999))
    ]
    async with joined(*doors) as running:
        told = (await described(running, STATELESS))["instructions"]
        assert MAX_INSTRUCTIONS - 20 < len(told.encode()) <= MAX_INSTRUCTIONS
        assert "## b\nshort\n\n## c" in told
        assert told.count(" …") == 2


async def test_without_instructions_nothing_is_said() -> None:
    async with joined(plain("a")) as running:
        assert "instructions" not in await described(running, STATELESS)


async def hear_lists(peer: Peer) -> None:
    """Waits until the peer was told that every list has changed."""
    for name in LISTS:
        await peer.other(f"notifications/{name}/list_changed")


@both_eras
async def test_clients_hear_of_members_that_come_and_go(version: str) -> None:
    late = plain("b")
    async with joined(plain("a"), closed=(late,)) as running, talking(running, version) as peer:
        if version == STATELESS:
            await peer.begin(
                "subscriptions/listen", {"notifications": {f"{name}ListChanged": True for name in LISTS}}
            )
            await peer.other("notifications/subscriptions/acknowledged")

        async def names() -> list[str]:
            return [one["name"] for one in (await peer.request("tools/list"))["result"]["tools"]]

        assert await names() == ["a_tool"]
        await late.open()
        await hear_lists(peer)
        assert await names() == ["a_tool", "b_tool"]
        await late.close()
        await hear_lists(peer)
        assert await names() == ["a_tool"]
        await late.open()
        assert await names() == ["a_tool", "b_tool"]


@pytest.mark.parametrize("what", ["tools", "prompts"])
async def test_a_change_of_one_is_a_change_of_the_whole(what: str) -> None:
    server = small("a")
    server.prompt(name="first")(prompt)
    server.tool(name="first")(prompt)
    door = Door("a", server)
    async with joined(door) as running, talking(running) as peer:
        await peer.request(f"{what}/list")
        assert door.running is not None
        declare = door.running.features.tool if what == "tools" else door.running.features.prompt
        declare(name="second")(prompt)
        getattr(door.running.changes, what)()
        await peer.other(f"notifications/{what}/list_changed")
        listed = (await peer.request(f"{what}/list"))["result"][what]
        assert [one["name"] for one in listed] == ["first", "second"]


async def prompt() -> str:
    """Say something."""
    return "something"


@both_eras
async def test_prompts_are_named_rendered_and_completed_like_tools(version: str) -> None:
    doors = []
    for name in ("a", "b"):
        server = small(name)

        async def greet(who: str, of: str = name) -> str:
            """Greet."""
            return f"{of} greets {who}"

        async def complete(_ctx: Any, typed: str, _settled: Any, of: str = name) -> list[str]:
            return [f"{typed} of {of}"]

        server.prompt(name="greet")(greet)
        server.completes("prompt", "greet", "who")(complete)
        doors.append(Door(name, server))
    async with joined(*doors) as running, talking(running, version) as peer:
        listed = (await peer.request("prompts/list"))["result"]["prompts"]
        assert [one["name"] for one in listed] == ["a__greet", "b__greet"]
        got = await peer.request("prompts/get", {"name": "b__greet", "arguments": {"who": "you"}})
        assert got["result"]["messages"][0]["content"]["text"] == "b greets you"
        ref = {"type": "ref/prompt", "name": "b__greet"}
        params = {"ref": ref, "argument": {"name": "who", "value": "Ann"}}
        result = (await peer.request("completion/complete", params))["result"]
        assert result["completion"]["values"] == ["Ann of b"]


@both_eras
async def test_a_prompt_of_a_member_that_is_closed_is_an_error(version: str) -> None:
    server = small("a")
    server.prompt()(prompt)
    door = Door("a", server)
    async with joined(door) as running, talking(running, version) as peer:
        await peer.request("prompts/list")
        await door.close()
        error = (await peer.request("prompts/get", {"name": "prompt"}))["error"]
        assert (error["code"], error["message"]) == (-32603, "the server a is not available: it was closed")


@both_eras
async def test_what_holds_at_a_member_is_told_to_who_asks_for_a_level(version: str) -> None:
    door = plain("a", capabilities={"logging": {}})
    async with joined(door) as running, talking(running, version) as peer:
        assert door.running is not None
        door.running.conditions.begin("disk", "warning", "the disk is full")
        if version == NEWEST_HANDSHAKE:
            await peer.request("logging/setLevel", {"level": "info"})
        else:
            await peer.request("server/discover", **{"io.modelcontextprotocol/logLevel": "info"})
        assert (await peer.other("notifications/message"))["params"]["data"] == "the disk is full"


async def test_what_begins_to_hold_at_a_member_is_told_to_all_who_want_it() -> None:
    door = plain("a", capabilities={"logging": {}})
    async with joined(door) as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "info"})
        assert door.running is not None
        door.running.conditions.begin("disk", "warning", "the disk is full")
        assert (await peer.other("notifications/message"))["params"]["logger"] == "a"


@both_eras
async def test_logs_of_a_call_come_at_the_level_that_was_asked_for(version: str) -> None:
    server = small("a", capabilities={"logging": {}})

    @server.tool()
    async def work(ctx: Context[Any]) -> str:
        """Work."""
        await ctx.log("debug", "too mild")
        await ctx.log("error", "grave")
        return "done"

    async with joined(Door("a", server)) as running, talking(running, version) as peer:
        meta = {"io.modelcontextprotocol/logLevel": "info"} if version == STATELESS else {}
        if version == NEWEST_HANDSHAKE:
            await peer.request("logging/setLevel", {"level": "info"})
        await peer.request("tools/call", {"name": "work"}, **meta)
        assert [one["params"]["data"] for one in peer.others if "message" in one["method"]] == ["grave"]


# Methods of their own


@both_eras
async def test_a_method_of_one_member_goes_there(version: str) -> None:
    server = small("b")

    @server.method("example/own")
    async def own(_ctx: Context[Any], _params: Any) -> dict[str, Any]:
        return {"own": "b"}

    async with joined(plain("a"), Door("b", server)) as running, talking(running, version) as peer:
        id_ = await peer.begin("example/own")
        peer._methods.pop(id_)
        assert (await peer.answer(id_))["result"]["own"] == "b"
        assert (await peer.request("example/other"))["error"]["code"] == -32601


async def test_a_method_of_a_member_that_comes_later_is_there_for_who_came_before() -> None:
    server = small("b")

    @server.method("example/own")
    async def own(_ctx: Context[Any], _params: Any) -> dict[str, Any]:
        return {"own": "b"}

    late = Door("b", server)
    async with joined(plain("a"), closed=(late,)) as running, talking(running) as peer:
        error = (await peer.request("example/own"))["error"]
        assert error["message"] == "method not found: example/own; not available at this time: b"
        await late.open()
        id_ = await peer.begin("example/own")
        peer._methods.pop(id_)
        assert (await peer.answer(id_))["result"]["own"] == "b"


async def test_members_hear_of_each_client_that_has_shaken_hands() -> None:
    server, met = small("a"), []

    @server.lifespan
    async def open_state(opening: Opening) -> AsyncIterator[None]:
        opening.greet(met.append)
        yield

    async with joined(Door("a", server)) as running, talking(running) as peer:
        await peer.request("ping")
        assert len(met) == 1


async def test_a_method_of_its_own_may_ask_in_rounds() -> None:
    class Name(BaseModel):
        name: str

    async def greet(_running: Any, context: Context[Any], _params: Any) -> dict[str, Any]:
        answer = await context.ask("who", "Who?", Name)
        return {"greets": answer.data.name if answer.data is not None else None}

    row = Method("example/greet", InputParams, multi_round=True)
    door = Door("a", small("a", extensions=[Extension("greet", methods=[row], handlers={row.name: greet})]))
    async with joined(door) as running, talking(running, STATELESS, {"elicitation": {}}) as peer:
        id_ = await peer.begin("example/greet")
        peer._methods.pop(id_)
        state = (await peer.answer(id_))["result"]["requestState"]
        brought = {"who": {"action": "accept", "content": {"name": "Ann"}}}
        id_ = await peer.begin("example/greet", {"inputResponses": brought, "requestState": state})
        peer._methods.pop(id_)
        assert (await peer.answer(id_))["result"]["greets"] == "Ann"
