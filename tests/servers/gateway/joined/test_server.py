"""A call that is forwarded to a member: its questions, notifications and errors, also if the member closes."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from servers.gateway.joined.gateway import gateway
from shared import Context, ToolError
from shared.auth.policy import Policy
from shared.errors import McpError
from shared.extensions.access import access
from shared.extensions.dialects import DIALECTS
from shared.protocol.identity import Principal
from shared.telemetry.logs import server_name
from shared.testing import connected
from tests.servers.gateway.joined.members import Door, both_eras, joined, names, opened, small, with_tools
from tests.shared.extensions.dialects.test_document_000 import Talk
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, Json, Peer, talking
from tests.wire import STATELESS


class Name(BaseModel):
    name: str


class Broken(Exception):
    pass


async def ask_twice(ctx: Context[Any]) -> str:
    """Ask two questions, one after the other."""
    first = await ctx.ask("first", "Who?", Name)
    second = await ctx.ask("second", "And who?", Name)
    return f"{first.data} {second.data}"


async def memo(ctx: Context[Any], name: str) -> str:
    """Ask for whom it is."""
    return f"{name} for {(await ctx.ask('who', 'Who?', Name)).data}"


class Worker:
    """A member whose tools wait for the test, ask, or fail."""

    def __init__(self) -> None:
        server = small("a", capabilities={"logging": {}})
        self.door = Door("a", server)
        self.begun, self.go_on, self.ended = anyio.Event(), anyio.Event(), anyio.Event()

        @server.tool()
        async def work(ctx: Context[Any]) -> str:
            """Work."""
            await ctx.progress(1, 2, "half")
            await ctx.log("debug", "too mild")
            await ctx.log("error", "grave")
            self.begun.set()
            try:
                await self.go_on.wait()
            finally:
                self.ended.set()
            return "done"

        @server.tool()
        async def fail() -> str:
            """Fail."""
            raise Broken("no disk")

        @server.error(Broken)
        def explain(error: Broken) -> McpError:
            return ToolError(f"explained: {error}")

        server.tool()(ask_twice)
        server.resource("memo://{name}")(memo)


@asynccontextmanager
async def working(
    version: str = NEWEST_HANDSHAKE, capabilities: Json | None = None
) -> AsyncIterator[tuple[Worker, Door, Peer]]:
    """A worker, another member with a tool, and a client of both."""
    worker, other = Worker(), with_tools("b", "say")
    with anyio.fail_after(3 * PATIENCE):
        async with joined(worker.door, other) as running, talking(running, version, capabilities) as peer:
            yield worker, other, peer


@both_eras
async def test_progress_and_logs_reach_the_caller_at_its_level(version: str) -> None:
    async with working(version) as (worker, _, peer):
        meta = {"io.modelcontextprotocol/logLevel": "info"} if version == STATELESS else {}
        if version == NEWEST_HANDSHAKE:
            await peer.request("logging/setLevel", {"level": "info"})
        worker.go_on.set()
        answer = await peer.request("tools/call", {"name": "work"}, progressToken="mine", **meta)
        assert answer["result"]["content"][0]["text"] == "done"
        told = [one["params"].get("progressToken") or one["params"]["data"] for one in peer.others]
        assert told == ["mine", "grave"]


async def test_a_hanging_call_blocks_no_other_and_can_be_cancelled() -> None:
    async with working() as (worker, _, peer):
        id_ = await peer.start("work")
        await worker.begun.wait()
        assert await peer.text("say") == "b say"
        await peer.cancel(id_)
        await worker.ended.wait()


async def test_a_tool_removed_during_its_call_does_not_end_the_call() -> None:
    async with working() as (worker, _, peer):
        id_ = await peer.start("work")
        await worker.begun.wait()
        opened(worker.door).features.tools.remove("work")
        opened(worker.door).changes.tools()
        worker.go_on.set()
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "done"
        assert (await peer.call("work"))["error"]["message"] == "unknown tool: work"


async def test_closing_a_member_fails_its_calls() -> None:
    async with working() as (worker, _, peer):
        assert await names(peer) == ["work", "fail", "ask_twice", "say"]
        id_ = await peer.start("work")
        await worker.begun.wait()
        await worker.door.close()
        for answer in (await peer.answer(id_), await peer.call("work")):
            result = answer["result"]
            text = "the server a is not available: it was closed"
            assert (result["isError"], result["content"][0]["text"]) == (True, text)
        assert await names(peer) == ["say"]


async def test_errors_of_a_member_are_forwarded_unchanged() -> None:
    async with working() as (_, _other, peer):
        assert await peer.text("fail") == "explained: no disk"


async def test_log_lines_name_the_member_of_the_call() -> None:
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


@pytest.mark.parametrize("principal", [None, Principal("a", scopes=frozenset({"a:read"}))], ids=["nobody", "reader"])
async def test_a_call_in_a_dialect_is_one_call_under_the_rules_of_the_tool(principal: Principal | None) -> None:
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


# Questions


async def test_questions_are_asked_in_the_handshake_era() -> None:
    async with working(capabilities={"elicitation": {}}) as (_, _other, peer):
        id_ = await peer.start("ask_twice")
        for name in ("Ann", "Bob"):
            asked = await peer.other("elicitation/create")
            await peer.reply(asked["id"], {"action": "accept", "content": {"name": name}})
        assert (await peer.answer(id_))["result"]["content"][0]["text"] == "name='Ann' name='Bob'"


async def test_stateless_rounds_keep_their_answers() -> None:
    async with working(STATELESS, {"elicitation": {}}) as (_, _other, peer):
        call: Json = {"name": "ask_twice", "arguments": {}}
        for key, name in (("first", "Ann"), ("second", "Bob")):
            asked = (await peer.request("tools/call", call))["result"]
            assert list(asked["inputRequests"]) == [key]
            brought = {key: {"action": "accept", "content": {"name": name}}}
            call = {**call, "requestState": asked["requestState"], "inputResponses": brought}
        answer = await peer.request("tools/call", call)
        assert answer["result"]["content"][0]["text"] == "name='Ann' name='Bob'"


@pytest.mark.parametrize("uri", ["memo://x", "memo://a__x"])
async def test_a_resource_asks_in_rounds_by_either_of_its_uris(uri: str) -> None:
    async with working(STATELESS, {"elicitation": {}}) as (_, _other, peer):
        asked = (await peer.request("resources/read", {"uri": uri}))["result"]
        brought = {"who": {"action": "accept", "content": {"name": "Ann"}}}
        again = {"uri": uri, "requestState": asked["requestState"], "inputResponses": brought}
        assert (await peer.request("resources/read", again))["result"]["contents"][0]["text"] == "x for name='Ann'"


async def test_answers_reach_only_the_member_that_asked() -> None:
    heard = []

    async def listen(ctx: Context[Any]) -> str:
        """Take what comes."""
        heard.append(ctx.call.round)
        return "mine"

    async with working(STATELESS, {"elicitation": {}}) as (worker, other, peer):
        asked = (await peer.call("ask_twice"))["result"]
        # What was the tool of one server is by now that of another.
        opened(worker.door).features.tools.remove("ask_twice")
        opened(worker.door).changes.tools()
        opened(other).features.tool(name="ask_twice")(listen)
        opened(other).changes.tools()
        assert await names(peer) == ["work", "fail", "say", "ask_twice"]
        brought = {"first": {"action": "accept", "content": {"name": "Ann"}}}
        again = {
            "name": "ask_twice",
            "arguments": {},
            "requestState": asked["requestState"],
            "inputResponses": brought,
        }
        assert (await peer.request("tools/call", again))["error"]["code"] == -32602
        assert heard == []
