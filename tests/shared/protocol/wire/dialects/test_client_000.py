"""Document 000 as a client speaks it: requests and results as its section 5.2 has them."""

from typing import Any

import pytest

from shared.protocol.types.base import SERVER_INFO
from shared.protocol.wire.jsonrpc import Notification
from tests.shared.protocol.wire.dialects.test_client_dialect import Json, answered, client, read, written

READ: Json = {"uri": "notes:///a"}


@pytest.mark.parametrize(
    ("method", "params", "sent"),
    [
        ("tools/list", {"cursor": "a"}, {"method": "mcp/listTools", "params": {}}),
        ("resources/list", {}, {"method": "mcp/listResources", "params": {}}),
        ("resources/templates/list", {}, {"method": "mcp/listResources", "params": {}}),
        (
            "tools/call",
            {"name": "filesystem/readFile", "arguments": {"path": "a"}},
            {"method": "mcp/tool/execute", "params": {"toolId": "filesystem/readFile", "inputs": {"path": "a"}}},
        ),
        ("resources/read", READ, {"method": "mcp/resource/read", "params": {"resourceId": "notes:///a"}}),
        ("prompts/get", {"name": "greet"}, {"method": "mcp/prompts/get", "params": {"name": "greet"}}),
    ],
)
def test_requests(method: str, params: Json, sent: Json) -> None:
    assert written(client("000"), method, params) == sent


def test_initialize_says_who_the_client_is() -> None:
    sent = written(client("000"), "server/discover", {})
    assert (sent["method"], sent["params"]["clientInfo"]) == ("mcp/initialize", {"name": "test", "version": "1"})


def test_a_token_of_progress_goes_along() -> None:
    sent = written(client("000"), "tools/call", {"name": "a"}, progressToken=7)
    assert sent["params"] == {"toolId": "a", "inputs": {}, "_meta": {"progressToken": 7}}


def test_what_a_server_tells_has_no_prefix() -> None:
    told = {"jsonrpc": "2.0", "method": "mcp/notifications/progress", "params": {"progress": 1}}
    assert read(client("000"), told) == Notification("notifications/progress", {"progress": 1})


@pytest.mark.parametrize(
    ("result", "capabilities"),
    [
        ({"name": "small", "version": "2"}, {"tools", "resources"}),
        ({"name": "small", "version": "2", "methods": ["mcp/prompts/list"]}, {"tools", "resources", "prompts"}),
    ],
)
def test_what_a_server_is(result: Json, capabilities: set[str]) -> None:
    told = answered("000", "server/discover", {}, result)
    assert set(told["capabilities"]) == capabilities
    assert told["_meta"] == {SERVER_INFO: {"name": "small", "version": "2"}}


def test_a_tool_is_known_by_its_id() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    listed = [{"toolId": "files/read", "description": "Read.", "inputSchema": schema}, {"toolId": "stop"}]
    assert answered("000", "tools/list", {}, listed)["tools"] == [
        {"name": "files/read", "description": "Read.", "inputSchema": schema},
        {"name": "stop", "inputSchema": {"type": "object"}},
    ]


def test_what_has_braces_is_a_template() -> None:
    listed = [{"resourceId": "a:b", "querySchema": {}}, {"resourceId": "a:{name}", "name": "one"}]
    assert answered("000", "resources/list", {}, listed)["resources"] == [{"uri": "a:b", "name": "a:b"}]
    templates = answered("000", "resources/templates/list", {}, listed)["resourceTemplates"]
    assert templates == [{"uriTemplate": "a:{name}", "name": "one"}]


def text(text: str) -> Json:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("result", "content", "data"),
    [
        ("done", [text("done")], None),
        (7, [text("7")], None),
        (None, [text("null")], None),
        ([1, 2], [text("[1,2]")], None),
        ({"sum": 3}, [text('{"sum":3}')], {"sum": 3}),
        ([text("a"), text("b")], [text("a"), text("b")], None),
        ({"content": [text("a")], "structuredContent": {"a": 1}}, [text("a")], {"a": 1}),
    ],
)
def test_what_a_tool_gives(result: Any, content: list[Json], data: Json | None) -> None:
    told = answered("000", "tools/call", {"name": "a"}, result)
    assert (told["content"], told.get("structuredContent"), told["resultType"]) == (content, data, "complete")


@pytest.mark.parametrize(
    ("result", "contents"),
    [
        ("a note", [{**READ, "text": "a note"}]),
        ([{"uri": "b:c", "blob": "AA=="}], [{"uri": "b:c", "blob": "AA=="}]),
        ({"rows": 3}, [{**READ, "text": '{"rows":3}'}]),
    ],
)
def test_what_a_resource_holds(result: Any, contents: list[Json]) -> None:
    assert answered("000", "resources/read", READ, result)["contents"] == contents
