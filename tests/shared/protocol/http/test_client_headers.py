"""Headers that a client sends: routing, session, and annotated arguments."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.protocol.http.client_headers import MAX_TOOLS, ClientHeaders, encode_value, usable_tools
from shared.protocol.http.routing_headers import decode_value
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def test_header_values_other_than_plain_ascii_are_encoded_in_base64() -> None:
    plain = ["", "tools/call", "a b", "=?base64?x", "x?="]
    assert [encode_value(text) for text in plain] == plain
    other = [" a", "a ", "a\tb", "a\nb", "é", "\x7f", "=?base64?YQ==?="]
    assert [text for text in other if not encode_value(text).startswith("=?base64?")] == []


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8")))
def test_encoded_header_values_decode_to_the_same_text(text: str) -> None:
    encoded = encode_value(text)
    assert encoded.isascii()
    assert decode_value(encoded) == text


def test_stateless_requests_have_routing_headers() -> None:
    for method, params, name in (
        ("tools/call", {"name": "x"}, "x"),
        ("resources/read", {"uri": "a:b"}, "a:b"),
        ("tools/list", {"name": "x"}, None),
    ):
        headers = ClientHeaders().post_headers(Request(1, method, {**params, **META}))
        assert (headers["mcp-method"], headers.get("mcp-name")) == (method, name)
        assert headers["mcp-protocol-version"] == "2026-07-28"
        assert headers["accept"] == "application/json, text/event-stream"


def test_session_headers_follow_a_successful_initialize() -> None:
    headers, initialize = ClientHeaders(), Request(1, "initialize")
    assert headers.session_headers() == {}
    headers.learn(initialize, Failure(1, -32602, "no"), "s-1")
    assert headers.session_headers() == {}
    headers.learn(initialize, Response(1, {"protocolVersion": "2025-06-18"}), "s-1")
    expected = {"mcp-session-id": "s-1", "mcp-protocol-version": "2025-06-18"}
    assert headers.session_headers() == expected
    assert headers.post_headers(Notification("notifications/initialized")).items() >= expected.items()


def test_invalid_session_ids_are_not_sent() -> None:
    for session_id in (None, "", "a b", "é", "a\r\nx: y"):
        headers = ClientHeaders()
        headers.learn(Request(1, "initialize"), Response(1, {"protocolVersion": "é"}), session_id)
        assert headers.session_headers() == {}, session_id


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
    },
}


def argument_headers(headers: ClientHeaders, method: str, arguments: Any, name: str = "x") -> dict[str, str]:
    """Returns the headers of a request for its arguments, by name without the prefix."""
    sent = headers.post_headers(Request(2, method, {"name": name, "arguments": arguments, **META}))
    return {key[10:]: value for key, value in sent.items() if key.startswith("mcp-param-")}


def headers_with_tools(*tools: Any, headers: ClientHeaders | None = None) -> ClientHeaders:
    headers = headers or ClientHeaders()
    headers.learn(Request(1, "tools/list"), Response(1, {"tools": list(tools)}), None)
    return headers


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"region": "é", "deep": {"count": 42}, "dry": True},
            {"region": "=?base64?w6k=?=", "count": "42", "dry": "true"},
        ),
        ({"region": None, "deep": 3}, {}),
        ({"deep": {"count": 42.0}}, {"count": "42"}),
        ({"deep": {"count": -(10**5_000)}}, {"count": "-1" + "0" * 5_000}),
        ({"region": ""}, {"region": ""}),
        (None, {}),
    ],
)
def test_annotated_arguments_are_sent_as_headers(arguments: Any, expected: dict[str, str]) -> None:
    headers = headers_with_tools({"name": "x", "inputSchema": SCHEMA}, {"name": 1}, 2)
    assert argument_headers(headers, "tools/call", arguments) == expected


def test_only_calls_of_annotated_tools_send_argument_headers() -> None:
    headers = headers_with_tools({"name": "x", "inputSchema": SCHEMA})
    assert argument_headers(headers, "prompts/get", {"region": "eu"}) == {}
    headers_with_tools({"name": "x", "inputSchema": {"type": "object"}}, headers=headers)
    assert argument_headers(headers, "tools/call", {"region": "eu"}) == {}


def test_tools_with_invalid_annotations_are_left_out_and_reported() -> None:
    wrong = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    tools = [{"name": "x", "inputSchema": SCHEMA}, {"name": "y", "inputSchema": wrong}, {"name": "z"}, 3]
    answer, faults = usable_tools(Response(1, {"tools": tools, "nextCursor": "2"}))
    assert answer == Response(1, {"tools": [tools[0], tools[2], tools[3]], "nextCursor": "2"})
    assert faults == [
        "the tool 'y' was skipped: its x-mcp-header at /properties/a is not on a string, integer or boolean"
    ]


def test_lists_without_invalid_annotations_are_unchanged() -> None:
    for result in ({}, {"tools": "many"}, {"tools": [{"name": "x", "inputSchema": SCHEMA}]}):
        assert usable_tools(Response(1, result)) == (Response(1, result), [])


def test_annotations_of_the_oldest_tools_are_evicted() -> None:
    schema = {"properties": {"region": SCHEMA["properties"]["region"]}}
    headers = headers_with_tools(
        *({"name": name, "inputSchema": schema} for name in ("x", *map(str, range(MAX_TOOLS))))
    )
    assert argument_headers(headers, "tools/call", {"region": "eu"}, "x") == {}
    assert argument_headers(headers, "tools/call", {"region": "eu"}, "0") == {"region": "eu"}
