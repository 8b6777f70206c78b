"""A call that is handed on to one of the servers: what it asks, tells and raises, and what a closed server makes of
it."""

import logging
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from shared import Context, ToolError
from shared.auth.policy import Policy
from shared.errors import McpError
from shared.extensions.access import access
from shared.extensions.dialects import DIALECTS
from shared.gateway.joined.gateway import gateway
from shared.ops.logs import server_name
from shared.protocol.identity import Principal
from shared.testing import connected
from tests.shared.extensions.dialects.test_document_000 import Talk
from tests.shared.gateway.joined.members import (
    Door,
    both_eras,
    joined,
    names,
    opened,
    small,
    with_tools,
)
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, talking
from tests.wire import STATELESS


class Name(BaseModel):
    name: str


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


async def test_progress_reaches_who_called() -> None:
    server = small("a")

    @server.tool()
    async def work(ctx: Context[Any]) -> str:
        """Work."""
        await ctx.progress(1, 2, "half")
        return "done"

    async with joined(Door("a", server)) as running, talking(running) as peer:
        id_ = await peer.begin("tools/call", {"name": "work"}, progressToken="mine")
        assert (await peer.other("notifications/progress"))["params"]["progressToken"] == "mine"
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"


async def test_a_call_that_hangs_keeps_nobody_from_others_and_ends_at_the_member_when_it_is_cancelled() -> None:
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

    async with joined(Door("a", server), with_tools("b", "say")) as running, talking(running) as peer:
        id_ = await peer.start("work")
        with anyio.fail_after(PATIENCE):
            await begun.wait()
            assert await peer.text("say") == "b say"
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
        opened(door).features.tools.remove("say")
        opened(door).changes.tools()
        opened(other).features.tool(name="say")(listen)
        opened(other).changes.tools()
        assert await names(peer) == ["load", "say"]
        brought = {"first": {"action": "accept", "content": {"name": "Ann"}}}
        again = {"name": "say", "arguments": {}, "requestState": asked["requestState"], "inputResponses": brought}
        assert (await peer.request("tools/call", again))["error"]["code"] == -32602
        assert heard == []


class Broken(Exception):
    pass


async def test_errors_are_told_as_the_member_tells_them() -> None:
    server = small("a")

    @server.tool()
    async def fail() -> str:
        """Fail."""
        raise Broken("no disk")

    @server.error(Broken)
    def explain(error: Broken) -> McpError:
        return ToolError(f"explained: {error}")

    async with joined(Door("a", server)) as running, talking(running) as peer:
        assert await peer.text("fail") == "explained: no disk"


async def test_a_tool_of_a_member_that_is_closed_says_so() -> None:
    a, b = with_tools("a", "read"), with_tools("b", "load")
    async with joined(a, b) as running, talking(running) as peer:
        assert await names(peer) == ["read", "load"]
        await b.close()
        assert await names(peer) == ["read"]
        result = (await peer.call("load"))["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"] == "the server b is not available: it was closed"


async def test_a_member_that_closes_ends_its_calls_with_an_error() -> None:
    server, begun = small("a"), anyio.Event()

    @server.tool()
    async def work() -> str:
        """Work."""
        begun.set()
        await anyio.sleep_forever()
        return "done"

    door = Door("a", server)
    async with joined(door) as running, talking(running) as peer:
        id_ = await peer.start("work")
        with anyio.fail_after(PATIENCE):
            await begun.wait()
        await door.close()
        result = (await peer.answer(id_))["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"] == "the server a is not available: it was closed"


async def test_they_name_the_server_that_a_call_went_to() -> None:
    named = list[tuple[str, str | None]]()

    class Names(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            named.append((record.getMessage(), server_name.get()))

    doors = []
    for name in ("a", "b"):
        server = small(name)

        @server.tool(name=f"fail_{name}")
        async def fail() -> str:
            """Fail."""
            raise RuntimeError("a secret detail")

        doors.append(Door(name, server))
    handler = Names()
    logging.getLogger("shared.server").addHandler(handler)
    try:
        async with joined(*doors) as running, talking(running) as peer:
            for name in ("fail_a", "fail_b"):
                assert (await peer.call(name))["error"]["message"] == "internal error"
    finally:
        logging.getLogger("shared.server").removeHandler(handler)
    assert named == [("a handler failed", "a"), ("a handler failed", "b")]
    assert server_name.get() is None


async def test_tools_that_change_in_mid_call_leave_the_call() -> None:
    server, begun, go_on = small("a"), anyio.Event(), anyio.Event()

    @server.tool()
    async def work() -> str:
        """Work."""
        begun.set()
        await go_on.wait()
        return "done"

    door = Door("a", server)
    async with joined(door) as running, talking(running) as peer:
        id_ = await peer.start("work")
        with anyio.fail_after(PATIENCE):
            await begun.wait()
        opened(door).features.tools.remove("work")
        opened(door).changes.tools()
        go_on.set()
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"
        assert (await peer.call("work"))["error"]["message"] == "unknown tool: work"


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
