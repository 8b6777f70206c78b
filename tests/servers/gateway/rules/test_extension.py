"""Tools that a server with rules lists, calls and refuses."""

import anyio

from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules
from shared.server.handlers.core import CORE
from tests.clock import forward
from tests.quiet import quiet
from tests.servers.gateway.bridge.upstreams import Behind, bridged
from tests.shared.server.peer import STATELESS, server, talking


def app_with(*names, page_size=100, **given):
    """A server with rules whose tools return their own names."""
    app = server(extensions=[rules(Rules(**given))])
    app.page_size = page_size
    for name in names:
        add_tool(app, name)

    @app.resource("a:large")
    async def large() -> str:
        """Is large."""
        return "x" * 1000

    return app


def add_tool(app, name):
    @app.tool(name=name, title=f"Title of {name}")
    async def said(times: int = 1) -> str:
        """Says its name."""
        return name * times


async def names_of(peer, **params):
    result = (await peer.request("tools/list", params))["result"]
    return [tool["name"] for tool in result["tools"]]


async def test_the_list_has_the_allowed_tools_under_their_new_names():
    app = app_with("a", "b", "c", deny=("b",), rename={"c": "x"}, describe={"c": "Other words."})
    for _ in range(2):  # the rules hold in each run of the server
        async with talking(app) as peer:
            tools = (await peer.request("tools/list"))["result"]["tools"]
            assert await peer.text("x", times=2) == "cc"
    assert [(one["name"], one["title"], one["description"]) for one in tools] == [
        ("a", "Title of a", "Says its name."),
        ("x", "Title of c", "Other words."),
    ]


async def test_a_denied_tool_is_unknown():
    async with talking(app_with("a", "b", deny=("b",), rename={"a": "x"})) as peer, talking(app_with("z")) as other:
        for name in ("b", "a", "none"):
            assert (await peer.call(name))["error"] == (await other.call(name))["error"]


async def test_empty_pages_are_skipped():
    async with talking(app_with("a", "b", "c", "d", page_size=1, allow=("c",))) as peer:
        result = (await peer.request("tools/list"))["result"]
        assert [tool["name"] for tool in result["tools"]] == ["c"]
        last = (await peer.request("tools/list", {"cursor": result["nextCursor"]}))["result"]
    assert last["tools"] == []
    assert "nextCursor" not in last


async def test_after_many_empty_pages_the_client_gets_a_cursor():
    async with talking(app_with(*(f"a{number}" for number in range(50)), "b", page_size=1, allow=("b",))) as peer:
        result = (await peer.request("tools/list"))["result"]
        assert result["tools"] == []
        while "nextCursor" in result and not result["tools"]:
            result = (await peer.request("tools/list", {"cursor": result["nextCursor"]}))["result"]
    assert [tool["name"] for tool in result["tools"]] == ["b"]


async def test_without_rules_for_tools_the_list_is_unchanged():
    app = app_with("a", seconds=5)
    async with app.open() as running, talking(running) as peer:
        assert await names_of(peer) == ["a"]
        # The pages of the server are kept, which nothing else tells.
        assert len(running.opened[CORE.name]._pages) == 1


async def test_a_result_over_the_limit_is_an_error_of_the_tool():
    async with talking(app_with("a", result_bytes=500)) as peer:
        assert await peer.text("a", times=100) == "a" * 100
        result = (await peer.call("a", times=1000))["result"]
    assert result["isError"]
    assert "exceeds the limit of 500 per call; request a part of it" in result["content"][0]["text"]


async def test_a_resource_over_the_limit_is_an_error():
    async with talking(app_with("a", result_bytes=500)) as peer:
        error = (await peer.request("resources/read", {"uri": "a:large"}))["error"]
    assert error["code"] == -32603
    assert "exceeds the limit of 500" in error["message"]


async def test_a_call_over_its_time_limit_fails_with_the_limit():
    app = app_with("a", seconds=20)

    @app.tool()
    async def wait() -> str:
        """Waits for ever."""
        await anyio.sleep_forever()
        return ""

    async with talking(app) as peer:
        id_ = await peer.start("wait")
        await quiet()
        forward(20)
        result = (await peer.answer(id_))["result"]
    assert "stopped after 20 s, the operator's limit" in result["content"][0]["text"]


async def test_a_tool_hidden_by_a_renamed_one_is_logged_once(caplog):
    async with talking(app_with("a", "b", rename={"a": "b"})) as peer:
        assert await names_of(peer) == await names_of(peer) == ["b"]
        assert await peer.text("b") == "a"
    assert [one.getMessage() for one in caplog.records if one.name == "shared.gateway"] == [
        "server: its tool b is withheld: another tool was renamed to that"
    ]


async def test_errors_behind_a_bridge_name_no_hidden_tool():
    behind = Behind(app_with("delete_file", "write_file", rename={}))
    hidden = rules(Rules(deny=("delete_*",), rename={"write_file": "save"}))
    async with bridged(behind, STATELESS, extensions=[hidden]) as peer:
        messages = [(await peer.call(name))["error"]["message"] for name in ("delet_file", "writ_file", "sav")]
    assert messages == [
        "unknown tool: delet_file",
        "unknown tool: writ_file",
        "unknown tool: sav; did you mean 'save'?",
    ]
