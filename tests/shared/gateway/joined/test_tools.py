"""The tools of several servers as those of one."""

from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from shared import Context, ToolError
from shared.auth.policy import Policy
from shared.errors import McpError, UnknownTool
from shared.extensions.access import access
from shared.extensions.dialects import DIALECTS
from shared.gateway.joined.gateway import gateway
from shared.protocol.identity import Principal
from shared.testing import connected
from tests.shared.extensions.dialects.test_document_000 import Talk
from tests.shared.gateway.joined.members import Door, joined, small
from tests.shared.server.peer import ERAS, PATIENCE, Peer, talking
from tests.wire import STATELESS

both_eras = pytest.mark.parametrize("version", ERAS)


class Name(BaseModel):
    name: str


def with_tools(name: str, *tools: str) -> Door:
    """A member whose tools say whose they are."""
    server = small(name)
    for tool in tools:

        async def say(of: str = f"{name} {tool}") -> str:
            """Say whose it is."""
            return of

        server.tool(name=tool)(say)
    return Door(name, server)


async def names(peer: Peer, what: str = "tools") -> list[str]:
    listed = (await peer.request(f"{what}/list"))["result"][what]
    return [one["name"] for one in listed]


@both_eras
async def test_only_what_several_have_is_prefixed(version: str) -> None:
    a, b = with_tools("a", "read", "search"), with_tools("b", "load", "search")
    async with joined(a, b) as running, talking(running, version) as peer:
        assert await names(peer) == ["read", "a__search", "load", "b__search"]
        assert [await peer.text(name) for name in ("read", "b__search")] == ["a read", "b search"]


@pytest.mark.parametrize("principal", [None, Principal("a", scopes=frozenset({"a:read"}))], ids=["nobody", "reader"])
async def test_a_call_in_a_dialect_is_one_call_of_the_tool_by_its_rules(principal: Principal | None) -> None:
    calls: list[str] = []
    server = small("a", extensions=[DIALECTS, access(Policy("a"))])

    @server.tool()
    async def change(what: str) -> str:
        """Change something."""
        calls.append(what)
        return what

    door = Door("a", server)
    await door.open()
    try:
        async with (
            gateway([door]).open(extensions=[DIALECTS]) as running,
            connected(running, principal=principal, dialects=True) as end,
        ):
            answer = await Talk(end).ask("mcp/tool/execute", {"toolId": "change", "inputs": {"what": "x"}})
    finally:
        await door.close()
    if principal is None:
        assert (answer, calls) == ("x", ["x"])
    else:
        assert (answer["data"], calls) == ({"scopes": ["a:write"]}, [])


async def test_everything_is_prefixed_where_the_operator_wants_it() -> None:
    async with joined(with_tools("a", "read"), prefix="always") as running, talking(running) as peer:
        assert await names(peer) == ["a__read"]
        assert await peer.text("a__read") == "a read"


async def test_a_name_that_looks_like_a_full_one_takes_nobodys_place() -> None:
    a, b, c = with_tools("a", "x"), with_tools("b", "x"), with_tools("c", "a__x")
    async with joined(a, b, c) as running, talking(running) as peer:
        assert await names(peer) == ["a__x", "b__x", "c__a__x"]
        assert [await peer.text(name) for name in await names(peer)] == ["a x", "b x", "c a__x"]


async def test_a_full_name_is_always_understood() -> None:
    async with joined(with_tools("a", "read")) as running, talking(running) as peer:
        assert await peer.text("a__read") == "a read"


@both_eras
async def test_an_unknown_tool_is_refused(version: str) -> None:
    async with joined(with_tools("a", "read")) as running, talking(running, version) as peer:
        assert (await peer.call("write"))["error"]["message"] == "unknown tool: write"


@both_eras
async def test_lists_have_pages_of_our_own(version: str) -> None:
    tools = [f"tool_{number}" for number in range(130)]
    a, b = with_tools("a", *tools[:101]), with_tools("b", *tools[101:])
    async with joined(a, b) as running, talking(running, version) as peer:
        first = (await peer.request("tools/list"))["result"]
        second = (await peer.request("tools/list", {"cursor": first["nextCursor"]}))["result"]
        assert [one["name"] for one in first["tools"] + second["tools"]] == tools
        assert "nextCursor" not in second


@both_eras
async def test_progress_reaches_who_called(version: str) -> None:
    server = small("a")

    @server.tool()
    async def work(ctx: Context[Any]) -> str:
        """Work."""
        await ctx.progress(1, 2, "half")
        return "done"

    async with joined(Door("a", server)) as running, talking(running, version) as peer:
        id_ = await peer.begin("tools/call", {"name": "work"}, progressToken="mine")
        assert (await peer.other("notifications/progress"))["params"]["progressToken"] == "mine"
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"


@both_eras
async def test_a_cancelled_call_ends_at_the_member(version: str) -> None:
    server, begun, ended = small("a"), anyio.Event(), anyio.Event()

    @server.tool()
    async def work() -> str:
        """Work."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return "done"

    async with joined(Door("a", server)) as running, talking(running, version) as peer:
        id_ = await peer.start("work")
        with anyio.fail_after(PATIENCE):
            await begun.wait()
            await peer.cancel(id_)
            await ended.wait()


async def ask_twice(ctx: Context[Any]) -> str:
    """Ask two questions, one after the other."""
    first = await ctx.ask("first", "Who?", Name)
    second = await ctx.ask("second", "And who?", Name)
    return f"{first.data} {second.data}"


async def test_questions_are_asked_in_the_handshake_era() -> None:
    server = small("a")
    server.tool()(ask_twice)
    async with (
        joined(Door("a", server)) as running,
        talking(running, capabilities={"elicitation": {}}) as peer,
    ):
        id_ = await peer.start("ask_twice")
        for name in ("Ann", "Bob"):
            asked = await peer.other("elicitation/create")
            await peer.reply(asked["id"], {"action": "accept", "content": {"name": name}})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "name='Ann' name='Bob'"


async def test_rounds_keep_their_answers_without_a_handshake() -> None:
    server = small("a")
    server.tool()(ask_twice)
    async with (
        joined(Door("a", server)) as running,
        talking(running, STATELESS, {"elicitation": {}}) as peer,
    ):
        call: dict[str, Any] = {"name": "ask_twice", "arguments": {}}
        for key, name in (("first", "Ann"), ("second", "Bob")):
            asked = (await peer.request("tools/call", call))["result"]
            assert list(asked["inputRequests"]) == [key]
            brought = {key: {"action": "accept", "content": {"name": name}}}
            call = {**call, "requestState": asked["requestState"], "inputResponses": brought}
        assert (await peer.request("tools/call", call))["result"]["content"][0]["text"] == "name='Ann' name='Bob'"


async def test_answers_go_to_nobody_but_who_asked() -> None:
    server, other, heard = small("a"), with_tools("b", "load"), []

    async def listen(ctx: Context[Any]) -> str:
        """Take what comes."""
        heard.append(ctx.call.round)
        return "mine"

    server.tool(name="say")(ask_twice)
    door = Door("a", server)
    async with joined(door, other) as running, talking(running, STATELESS, {"elicitation": {}}) as peer:
        asked = (await peer.call("say"))["result"]
        # What was the tool of one server is by now that of another.
        assert door.running is not None
        assert other.running is not None
        door.running.features.tools.remove("say")
        door.running.changes.tools()
        other.running.features.tool(name="say")(listen)
        other.running.changes.tools()
        assert await names(peer) == ["load", "say"]
        brought = {"first": {"action": "accept", "content": {"name": "Ann"}}}
        again = {"name": "say", "arguments": {}, "requestState": asked["requestState"], "inputResponses": brought}
        assert (await peer.request("tools/call", again))["error"]["code"] == -32602
        assert heard == []


class Broken(Exception):
    pass


@both_eras
async def test_errors_are_told_as_the_member_tells_them(version: str) -> None:
    server = small("a")

    @server.tool()
    async def fail() -> str:
        """Fail."""
        raise Broken("no disk")

    @server.error(Broken)
    def explain(error: Broken) -> McpError:
        return ToolError(f"explained: {error}")

    async with joined(Door("a", server)) as running, talking(running, version) as peer:
        assert await peer.text("fail") == "explained: no disk"


@both_eras
async def test_a_tool_of_a_member_that_is_closed_says_so(version: str) -> None:
    a, b = with_tools("a", "read"), with_tools("b", "load")
    async with joined(a, b) as running, talking(running, version) as peer:
        assert await names(peer) == ["read", "load"]
        await b.close()
        assert await names(peer) == ["read"]
        result = (await peer.call("load"))["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"] == "the server b is not available: it was closed"


@both_eras
async def test_a_member_that_closes_ends_its_calls_with_an_error(version: str) -> None:
    server, begun = small("a"), anyio.Event()

    @server.tool()
    async def work() -> str:
        """Work."""
        begun.set()
        await anyio.sleep_forever()
        return "done"

    door = Door("a", server)
    async with joined(door) as running, talking(running, version) as peer:
        id_ = await peer.start("work")
        with anyio.fail_after(PATIENCE):
            await begun.wait()
        await door.close()
        result = (await peer.answer(id_))["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"] == "the server a is not available: it was closed"


async def test_a_tool_that_has_moved_is_found_where_it_is() -> None:
    a, b = with_tools("a", "read"), with_tools("b", "load")
    async with joined(a, b) as running, talking(running) as peer:
        assert await names(peer) == ["read", "load"]
        assert a.running is not None
        assert b.running is not None
        a.running.features.tools.remove("read")
        a.running.changes.tools()

        @b.running.features.tool()
        async def read() -> str:
            """Read."""
            return "b read"

        b.running.changes.tools()
        assert await peer.text("read") == "b read"


async def test_a_member_that_can_not_list_leaves_the_others_theirs() -> None:
    a, b = with_tools("a", "read"), with_tools("b", "load")

    async def fail(*_: Any) -> dict[str, Any]:
        raise UnknownTool("no list today")

    async with joined(a, b) as running, talking(running) as peer:
        assert b.running is not None
        b.running.handlers["tools/list"] = fail
        assert await names(peer) == ["read"]
