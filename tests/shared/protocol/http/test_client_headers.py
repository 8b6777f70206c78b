"""What a client's headers say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.protocol.http.client_headers import MAX_TOOLS, ClientHeaders, encode_value, usable_tools
from shared.protocol.http.routing_headers import decode_value
from shared.protocol.wire.jsonrpc import Failure, Notification, Request, Response

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


@pytest.mark.parametrize("text", ["", "tools/call", "a b", "=?base64?x", "x?="])
def test_plain_text_stands_for_itself(text: str) -> None:
    assert encode_value(text) == text


@pytest.mark.parametrize("text", [" a", "a ", "a\tb", "a\nb", "é", "\x7f", "=?base64?YQ==?="])
def test_other_text_is_marked(text: str) -> None:
    assert encode_value(text).startswith("=?base64?")


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_encoded_can_be_decoded(text: str) -> None:
    encoded = encode_value(text)
    assert encoded.isascii()
    assert decode_value(encoded) == text


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "x"}, "x"),
        ("resources/read", {"uri": "a:b"}, "a:b"),
        ("tools/list", {"name": "x"}, None),
    ],
)
def test_routing_headers(method: str, params: dict[str, Any], name: str | None) -> None:
    headers = ClientHeaders().of_post(Request(1, method, {**params, **META}))
    assert headers["mcp-method"] == method
    assert headers.get("mcp-name") == name
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["accept"] == "application/json, text/event-stream"


def test_a_session_is_named_once_it_is_known() -> None:
    headers, initialize = ClientHeaders(), Request(1, "initialize")
    assert headers.of_session() == {}
    headers.learn(initialize, Failure(1, -32602, "no"), "s-1")
    assert headers.of_session() == {}
    headers.learn(initialize, Response(1, {"protocolVersion": "2025-06-18"}), "s-1")
    expected = {"mcp-session-id": "s-1", "mcp-protocol-version": "2025-06-18"}
    assert headers.of_session() == expected
    assert headers.of_post(Notification("notifications/initialized")).items() >= expected.items()


@pytest.mark.parametrize("session_id", [None, "", "a b", "é", "a\r\nx: y"])
def test_a_session_id_that_can_not_be_sent_is_none(session_id: str | None) -> None:
    headers = ClientHeaders()
    headers.learn(Request(1, "initialize"), Response(1, {"protocolVersion": "é"}), session_id)
    assert headers.of_session() == {}


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
    },
}


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
def test_marked_arguments_are_repeated(arguments: Any, expected: dict[str, str]) -> None:
    headers = ClientHeaders()
    listed = Response(1, {"tools": [{"name": "x", "inputSchema": SCHEMA}, {"name": 1}, 2]})
    headers.learn(Request(1, "tools/list"), listed, None)
    sent = headers.of_post(Request(2, "tools/call", {"name": "x", "arguments": arguments, **META}))
    assert {key[10:]: value for key, value in sent.items() if key.startswith("mcp-param-")} == expected


def test_a_tool_that_is_marked_no_longer_is_no_longer_repeated() -> None:
    headers = ClientHeaders()
    for schema in (SCHEMA, {"type": "object"}):
        headers.learn(Request(1, "tools/list"), Response(1, {"tools": [{"name": "x", "inputSchema": schema}]}), None)
    sent = headers.of_post(Request(2, "tools/call", {"name": "x", "arguments": {"region": "eu"}, **META}))
    assert not [key for key in sent if key.startswith("mcp-param-")]


def test_a_prompt_of_the_name_of_a_tool_has_no_arguments_in_headers() -> None:
    headers = ClientHeaders()
    headers.learn(Request(1, "tools/list"), Response(1, {"tools": [{"name": "x", "inputSchema": SCHEMA}]}), None)
    sent = headers.of_post(Request(2, "prompts/get", {"name": "x", "arguments": {"region": "eu"}, **META}))
    assert not [key for key in sent if key.startswith("mcp-param-")]


def test_tools_with_wrong_marks_are_left_out_and_named() -> None:
    wrong = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    tools = [{"name": "x", "inputSchema": SCHEMA}, {"name": "y", "inputSchema": wrong}, {"name": "z"}, 3]
    answer, faults = usable_tools(Response(1, {"tools": tools, "nextCursor": "2"}))
    assert answer == Response(1, {"tools": [tools[0], tools[2], tools[3]], "nextCursor": "2"})
    assert faults == [
        "the tool 'y' is left out: its x-mcp-header at /properties/a stands on what is no string, integer or boolean"
    ]


@pytest.mark.parametrize("result", [{}, {"tools": "many"}, {"tools": [{"name": "x", "inputSchema": SCHEMA}]}])
def test_a_list_without_wrong_marks_stays_as_it_is(result: dict[str, Any]) -> None:
    answer = Response(1, result)
    assert usable_tools(answer) == (answer, [])


def test_old_tools_are_forgotten() -> None:
    headers = ClientHeaders()
    names = ["x", *map(str, range(MAX_TOOLS))]
    listed = Response(1, {"tools": [{"name": name, "inputSchema": SCHEMA} for name in names]})
    headers.learn(Request(1, "tools/list"), listed, None)
    for name, is_known in (("x", False), ("0", True)):
        sent = headers.of_post(Request(2, "tools/call", {"name": name, "arguments": {"region": "eu"}, **META}))
        assert ("mcp-param-region" in sent) is is_known
