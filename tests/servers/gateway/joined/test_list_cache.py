"""Slow and failing lists, and lists that differ by client."""

from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from servers.gateway.joined.list_cache import LISTING_SECONDS, valid_entries
from shared import Context, RpcError, Run
from shared.protocol.types.tools import Tool
from tests.clock import forward
from tests.quiet import quiet
from tests.servers.gateway.joined.members import Door, joined, names, opened, small, with_resources, with_tools
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, Peer, talking

ODD: list[dict[str, Any]] = [{"nextCursor": 5}, {"nextCursor": {"a": [1]}}, {"ttlMs": "long"}, {"ttlMs": None}]
"""What no page says of itself."""


def member(name: str, tool: str, state: Any = None) -> Door:
    """A member with one tool and this lifespan state."""
    server = small(name)

    @server.lifespan
    async def open_state(_opening: Any) -> Any:
        yield state

    @server.tool(name=tool)
    async def work() -> str:
        """Work."""
        return name

    return Door(name, server)


class Lists:
    """Counts the tools/list requests of a member, and holds the answers until `may` is set."""

    def __init__(self, door: Door) -> None:
        running = opened(door)
        self.asked = 0
        self.may = anyio.Event()
        self.handler = running.handlers["tools/list"]
        running.handlers["tools/list"] = self.list

    async def list(self, running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        self.asked += 1
        await self.may.wait()
        return await self.handler(running, context, params)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.name == "shared.gateway"]


async def names_in_vain(peer: Peer) -> list[str]:
    """The listed names after the time limit of slow members."""
    id_ = await peer.begin("tools/list")
    await quiet()
    forward(LISTING_SECONDS)
    return [tool["name"] for tool in (await peer.answer(id_))["result"]["tools"]]


def test_a_tool_with_arguments_that_are_no_object_is_omitted() -> None:
    tools = [{"name": kind, "inputSchema": {"type": kind}} for kind in ("array", "object")]
    assert valid_entries(Tool, [*tools, {"name": "none", "inputSchema": {}}, {"name": "no schema"}]) == tools[1:]


def test_invalid_optional_fields_of_an_entry_are_omitted() -> None:
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    odd = {"title": 7, "description": 5, "annotations": {"readOnlyHint": "maybe"}, "icons": "x", "_meta": []}
    assert valid_entries(Tool, [{**tool, **odd, "unknown": 1}, {**tool, "name": 5}]) == [{**tool, "unknown": 1}]


async def test_a_slow_member_is_omitted_until_it_announces_a_change() -> None:
    a, b = member("a", "read"), member("b", "load")
    async with joined(a, b) as running, talking(running) as peer:
        slow = Lists(b)
        assert await names_in_vain(peer) == ["read"]
        assert await names(peer) == ["read"]
        assert slow.asked == 1
        slow.may.set()
        opened(b).changes.tools()
        assert await names(peer) == ["read", "load"]
        # What was listed last stands while a new list does not come, and who calls what is known waits for none.
        slow.may = anyio.Event()
        opened(b).changes.tools()
        assert await peer.text("read") == "a"
        assert slow.asked == 2
        assert await names_in_vain(peer) == ["read", "load"]


async def test_an_invalid_page_or_entry_is_omitted_and_affects_no_other(caplog: pytest.LogCaptureFixture) -> None:
    a, b, c = member("a", "read"), member("b", "load"), member("c", "save")
    load = {"name": "load", "inputSchema": {"type": "object"}}
    odd = ["load", None, {**load, "name": 5}, {"name": "write"}, {"name": "write", "inputSchema": [1]}]
    pages: list[tuple[dict[str, Any], list[str]]] = [
        *(({"tools": [load], **said}, ["read", "load", "save"]) for said in ODD),
        ({"tools": [*odd, load]}, ["read", "load", "save"]),
        ({"tools": "none"}, ["read", "save"]),
    ]
    async with joined(a, b, c) as running, talking(running) as peer:
        for page, expected in pages:

            async def tools(*_: Any, page: dict[str, Any] = page) -> dict[str, Any]:
                return page

            opened(b).handlers["tools/list"] = tools
            opened(b).changes.tools()
            assert await names(peer) == expected, page
    no_text = "b: further tools are not listed: its cursor is not a string"
    no_list = (
        "b: its tools are not listed: the server answered tools/list with a result that is invalid at tools: "
        "is not a list"
    )
    assert warnings(caplog) == [no_text, no_text, no_list]


async def test_concurrent_clients_share_one_listing() -> None:
    door = member("a", "read")
    async with joined(door) as running, talking(running) as peer:
        lists = Lists(door)
        ids = [await peer.begin("tools/list") for _ in range(10)]
        lists.may.set()
        for id_ in ids:
            assert (await peer.answer(id_))["result"]["tools"][0]["name"] == "read"
        assert lists.asked == 1


async def test_a_list_that_changes_during_the_listing_is_fetched_again() -> None:
    door = member("a", "read")
    async with joined(door) as running, talking(running) as peer:
        lists = Lists(door)
        handler, again = lists.handler, []

        async def change(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            told = await handler(running, context, params)
            if not again:
                again.append(told)
                running.changes.tools()
            return told

        lists.handler = change
        lists.may.set()
        await names(peer)
        await names(peer)
        await names(peer)
        assert lists.asked == 2


async def test_an_older_list_that_arrives_late_does_not_replace_a_newer_one() -> None:
    door = member("a", "read", SimpleNamespace(needs_fresh_lists=True))
    async with joined(door) as running, talking(running, STATELESS) as peer:
        asked, may = list[str](), anyio.Event()

        async def listed(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            asked.append(name := "newer" if asked else "older")
            if name == "older":
                await may.wait()
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}}]}

        async def call(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": params.name}]}

        opened(door).handlers.update({"tools/list": listed, "tools/call": call})
        older = await peer.begin("tools/list")
        await quiet()
        opened(door).changes.tools()
        assert await names(peer) == ["newer"]
        may.set()
        await peer.answer(older)
        assert await peer.text("newer") == "newer"
        assert asked == ["older", "newer"]  # it was known, and not looked up


async def test_lists_that_differ_by_client_are_not_shared() -> None:
    door = member("a", "read", SimpleNamespace(needs_fresh_lists=True))
    async with (
        joined(door) as running,
        talking(running, NEWEST_HANDSHAKE, {"roots": {}}) as first,
        talking(running, NEWEST_HANDSHAKE) as second,
        talking(running, STATELESS, {"roots": {}}) as third,
    ):
        asked = []

        async def listed(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            asked.append(context.call.raw)
            name = "with_roots" if context.peer.can("roots") else "without"
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}}]}

        async def call(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": params.name}]}

        opened(door).handlers.update({"tools/list": listed, "tools/call": call})
        for peer, name in ((first, "with_roots"), (second, "without"), (third, "with_roots")):
            assert await names(peer) == [name]
        # And they stay so, whoever has listed last.
        for peer, name in ((first, "with_roots"), (second, "without")):
            assert await peer.text(name) == name
        assert len(asked) == 3


async def test_a_failed_list_disappears_and_returns_with_a_notification_and_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    a, b = member("a", "read"), member("b", "load")

    async def fail(*_: Any) -> dict[str, Any]:
        raise RpcError("the server b is not available: it is gone")

    async with joined(a, b) as running, talking(running) as peer:
        assert await names(peer) == ["read", "load"]
        handlers = opened(b).handlers
        listed, called = handlers["tools/list"], handlers["tools/call"]
        handlers.update({"tools/list": fail, "tools/call": fail})
        opened(b).changes.tools()
        await peer.other("notifications/tools/list_changed")
        assert await names(peer) == ["read"]
        assert (await peer.call("load"))["error"]["message"] == "the server b is not available: it is gone"
        assert await names(peer) == ["read"]
        assert warnings(caplog) == ["b: its tools are not listed: the server b is not available: it is gone"]
        handlers.update({"tools/list": listed, "tools/call": called})
        assert await names(peer) == ["read", "load"]
        await peer.other("notifications/tools/list_changed")


async def test_a_list_that_differs_by_client_is_fetched_once_for_all_its_pages() -> None:
    door, asked = member("a", "read", SimpleNamespace(needs_fresh_lists=True)), []
    shown = [{"name": f"tool_{number:03}", "inputSchema": {"type": "object"}} for number in range(250)]

    async def listed(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        asked.append(params.cursor)
        return {"tools": shown}

    async def fail(*_: Any) -> dict[str, Any]:
        raise RpcError("not now")

    failing = member("b", "load")
    async with joined(door, failing) as running, talking(running, NEWEST_HANDSHAKE) as peer:
        opened(door).handlers["tools/list"] = listed
        opened(failing).handlers["tools/list"] = fail
        pages = [(await peer.request("tools/list"))["result"]]
        while "nextCursor" in pages[-1]:
            pages.append((await peer.request("tools/list", {"cursor": pages[-1]["nextCursor"]}))["result"])
        assert [one["name"] for page in pages for one in page["tools"]] == [one["name"] for one in shown]
        assert len(asked) == 1
        await names(peer)
        assert len(asked) == 2


async def test_a_client_of_a_slow_member_never_sees_the_list_of_another_client() -> None:
    door = member("a", "read", SimpleNamespace(needs_fresh_lists=True))
    async with joined(door) as running, talking(running) as first, talking(running) as second:
        assert await names(first) == ["read"]
        slow = Lists(door)
        for _ in range(2):
            assert await names_in_vain(second) == []
        assert slow.asked == 1
        # What it knows from elsewhere it can call.
        assert await second.text("read") == "a"
        # That one client has to wait is nothing to the other.
        slow.may.set()
        assert await names(first) == ["read"]
        # And a change ends its wait.
        assert await names(second) == []
        opened(door).changes.tools()
        assert await names(second) == ["read"]


@pytest.mark.parametrize("private", [0, 1])
async def test_a_list_is_public_only_if_all_its_pages_are(private: int) -> None:
    door = member("a", "read")

    async def listed(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        page = 0 if params.cursor is None else 1
        tools = [{"name": f"read{page}", "inputSchema": {"type": "object"}}]
        further = {} if page else {"nextCursor": ""}  # a cursor like any other since 2026-07-28
        return {"tools": tools, "cacheScope": "private" if page == private else "public", "ttlMs": 1, **further}

    async with joined(door) as running, talking(running, STATELESS) as peer:
        opened(door).handlers["tools/list"] = listed
        result = (await peer.request("tools/list"))["result"]
        assert [tool["name"] for tool in result["tools"]] == ["read0", "read1"]
        assert result["cacheScope"] == "private"


@pytest.mark.parametrize("private", ["a", "b"])
async def test_resources_are_public_only_if_those_of_all_members_are(private: str) -> None:
    doors = [with_resources(name, f"{name}://1") for name in ("a", "b")]

    async def listed(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        name = running.server.implementation.name
        entry = {"uri": f"{name}://1", "name": name}
        return {"resources": [entry], "ttlMs": 1, "cacheScope": "private" if name == private else "public"}

    async with joined(*doors) as running, talking(running, STATELESS) as peer:
        for door in doors:
            opened(door).handlers["resources/list"] = listed
        result = (await peer.request("resources/list"))["result"]
        assert len(result["resources"]) == 2
        assert result["cacheScope"] == "private"


async def test_a_listing_during_a_call_has_no_token_and_ends_at_a_repeated_cursor() -> None:
    """The progress token belongs to the call, and a list without `ttlMs` must not be cached."""
    door, heard = member("a", "read"), []

    async def listed(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        heard.append((context.call.method.name, context.call.token, params.cursor))
        assert "progressToken" not in context.call.raw.get("_meta", {})
        return {"tools": [{"name": "read", "inputSchema": {"type": "object"}}], "nextCursor": "again"}

    async with joined(door) as running, talking(running, STATELESS) as peer:
        opened(door).handlers["tools/list"] = listed
        assert "result" in await peer.request("tools/call", {"name": "read"}, progressToken="token")
        assert heard == [("tools/list", None, None), ("tools/list", None, "again")]
        result = (await peer.request("tools/list"))["result"]
        assert [tool["name"] for tool in result["tools"]] == ["read"]
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


async def test_a_slow_member_that_keeps_announcing_changes_delays_one_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("servers.gateway.joined.list_cache.LISTING_SECONDS", 0.01)
    door, asked = with_tools("a", "a_tool"), []

    async def hang(*_: Any) -> None:
        asked.append(None)
        await anyio.sleep_forever()

    async with joined(with_tools("b", "b_tool"), door) as running, talking(running) as peer:
        opened(door).handlers["tools/list"] = hang
        for _ in range(5):
            opened(door).changes.tools()
            assert await names(peer) == ["b_tool"]
        assert len(asked) == 2
