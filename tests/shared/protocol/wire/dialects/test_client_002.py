"""The client of document 002: requests, and results in the forms of the specification."""

import pytest

from shared.protocol.types.base import SERVER_INFO
from shared.protocol.wire.jsonrpc import Notification
from tests.shared.protocol.wire.dialects.test_client_dialect import Json, answered, client, written

INITIALIZE: Json = {"method": "initialize", "params": {"version": "0.7.0", "minVersion": "0.1.0"}}
SCHEMA: Json = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Whom."}, "mood": {"type": "string"}},
    "required": ["name"],
}
INTRODUCTION: Json = {
    "version": "0.7.0",
    "tools": [{"name": "add", "description": "Add.", "arguments": SCHEMA}, {"name": "stop"}],
    "prompts": [{"name": "greet", "arguments": SCHEMA}],
}


@pytest.mark.parametrize(
    ("method", "params", "sent"),
    [
        ("server/discover", {}, INITIALIZE),
        ("tools/list", {}, INITIALIZE),
        ("prompts/list", {}, INITIALIZE),
        ("tools/call", {"name": "a"}, {"method": "call_tool", "params": {"name": "a", "arguments": {}}}),
        ("resources/read", {"uri": "a:b"}, {"method": "read_resource", "params": {"uri": "a:b"}}),
        (
            "prompts/get",
            {"name": "a", "arguments": {"b": "c"}},
            {"method": "render_prompt", "params": {"name": "a", "arguments": {"b": "c"}}},
        ),
        ("resources/list", {}, {"method": "resources/list", "params": {}}),
    ],
)
def test_requests_are_written_in_the_form_of_document_002(method: str, params: Json, sent: Json) -> None:
    assert written(client("002"), method, params, progressToken=7) == sent


def test_notifications_are_not_sent_to_the_server() -> None:
    assert client("002").encode(Notification("notifications/cancelled", {"requestId": 1})) == b""


def test_initialize_gives_capabilities_and_server_info() -> None:
    discovered = answered("002", "server/discover", {}, INTRODUCTION)
    assert set(discovered["capabilities"]) == {"tools", "prompts", "resources"}
    assert discovered["_meta"] == {SERVER_INFO: {"name": "unknown", "version": "0.7.0"}}


def test_initialize_gives_tools_prompts_and_resources() -> None:
    assert answered("002", "tools/list", {}, INTRODUCTION)["tools"] == [
        {"name": "add", "description": "Add.", "inputSchema": SCHEMA},
        {"name": "stop", "inputSchema": {"type": "object"}},
    ]
    arguments = [
        {"name": "name", "required": True, "description": "Whom."},
        {"name": "mood", "required": False},
    ]
    prompts = answered("002", "prompts/list", {}, INTRODUCTION)["prompts"]
    assert prompts == [{"name": "greet", "arguments": arguments}]


def test_json_blocks_of_tools_become_text_and_structured_content() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "json", "json": {"sum": 3}}]
    output = answered("002", "tools/call", {"name": "a"}, {"content": content, "isError": True})
    assert output["content"] == [content[0], {"type": "text", "text": '{"sum":3}'}]
    assert (output["structuredContent"], output["isError"]) == ({"sum": 3}, True)


def test_content_of_resources_becomes_contents() -> None:
    content = [{"type": "text", "text": "a", "mimeType": "text/plain"}, {"type": "blob", "blob": "AA=="}]
    assert answered("002", "resources/read", {"uri": "a:b"}, {"content": content})["contents"] == [
        {"uri": "a:b", "text": "a", "mimeType": "text/plain"},
        {"uri": "a:b", "blob": "AA=="},
    ]


def test_prompts_become_one_user_message() -> None:
    prompt = answered("002", "prompts/get", {"name": "a"}, {"content": "Hello"})
    assert prompt["messages"] == [{"role": "user", "content": {"type": "text", "text": "Hello"}}]
