"""The client of document 000: requests and results in the forms of its section 5.2."""

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
def test_requests_are_written_in_the_form_of_document_000(method: str, params: Json, sent: Json) -> None:
    assert written(client("000"), method, params) == sent


def test_initialize_has_client_info() -> None:
    sent = written(client("000"), "server/discover", {})
    assert (sent["method"], sent["params"]["clientInfo"]) == ("mcp/initialize", {"name": "test", "version": "1"})


def test_progress_tokens_are_sent_in_meta() -> None:
    sent = written(client("000"), "tools/call", {"name": "a"}, progressToken=7)
    assert sent["params"] == {"toolId": "a", "inputs": {}, "_meta": {"progressToken": 7}}


def test_notifications_are_read_without_the_prefix() -> None:
    notification = {"jsonrpc": "2.0", "method": "mcp/notifications/progress", "params": {"progress": 1}}
    assert read(client("000"), notification) == Notification("notifications/progress", {"progress": 1})


@pytest.mark.parametrize(
    ("result", "capabilities"),
    [
        ({"name": "small", "version": "2"}, {"tools", "resources"}),
        ({"name": "small", "version": "2", "methods": ["mcp/prompts/list"]}, {"tools", "resources", "prompts"}),
    ],
)
def test_initialize_gives_capabilities_and_server_info(result: Json, capabilities: set[str]) -> None:
    discovered = answered("000", "server/discover", {}, result)
    assert set(discovered["capabilities"]) == capabilities
    assert discovered["_meta"] == {SERVER_INFO: {"name": "small", "version": "2"}}


def test_tools_have_their_id_as_name() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    listed = [{"toolId": "files/read", "description": "Read.", "inputSchema": schema}, {"toolId": "stop"}]
    assert answered("000", "tools/list", {}, listed)["tools"] == [
        {"name": "files/read", "description": "Read.", "inputSchema": schema},
        {"name": "stop", "inputSchema": {"type": "object"}},
    ]


def test_resource_ids_with_braces_are_templates() -> None:
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
def test_outputs_of_tools_become_content(result: Any, content: list[Json], data: Json | None) -> None:
    output = answered("000", "tools/call", {"name": "a"}, result)
    assert (output["content"], output.get("structuredContent"), output["resultType"]) == (content, data, "complete")


@pytest.mark.parametrize(
    ("result", "contents"),
    [
        ("a note", [{**READ, "text": "a note"}]),
        ([{"uri": "b:c", "blob": "AA=="}], [{"uri": "b:c", "blob": "AA=="}]),
        ({"rows": 3}, [{**READ, "text": '{"rows":3}'}]),
    ],
)
def test_data_of_resources_becomes_contents(result: Any, contents: list[Json]) -> None:
    assert answered("000", "resources/read", READ, result)["contents"] == contents
