"""Headers that stateless requests repeat from the body: the order of the checks, and each check."""

from base64 import b64encode
from typing import Any

import pytest

from shared.protocol.http.routing_headers import (
    Parameter,
    check_stateless,
    check_stateless_body,
    decode_value,
    parameter_headers,
)
from shared.protocol.http.rules import Headers, Refusal
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import Batch, Message, Notification, Request, Response

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "nested": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "plain": {"type": "string"},
    },
}


def check(method: str, params: dict[str, Any], **headers: str) -> Refusal | None:
    """Checks a request with a valid version and method; `headers` replace them, and "-" omits a header."""
    usual = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
    sent = {name.replace("_", "-"): value for name, value in {**usual, **headers}.items() if value != "-"}
    request = Request(1, method, {"_meta": META, **params})
    return check_stateless(Headers(sent), request, lambda name: parameter_headers(SCHEMA) if name == "routed" else ())


def code(refusal: Refusal | None) -> tuple[int, int] | None:
    return None if refusal is None else (refusal.status, refusal.failure.code)


MISMATCH = (400, -32020)


# Checks in their order: each row passes all earlier checks and would fail every later check as well.

LATER = {"mcp_method": "wrong", "mcp_name": "wrong"}


CONNECTOR = {"mcp_protocol_version": "2025-11-25", "mcp_method": "-"}
"""The headers of Claude's connectors."""
CLAUDE = {**META, "io.modelcontextprotocol/clientInfo": {"name": "Anthropic/ClaudeAI", "version": "1"}}
ROUTED = {"_meta": CLAUDE, "name": "routed", "arguments": {"region": "eu"}}
CHECKS: list[tuple[dict[str, Any], dict[str, str], tuple[int, int] | None]] = [
    ({"_meta": None}, {**LATER, "mcp_protocol_version": "wrong"}, (400, -32602)),
    ({"_meta": {}}, {**LATER, "mcp_protocol_version": "wrong"}, (400, -32602)),
    ({"_meta": {**META, "io.modelcontextprotocol/clientCapabilities": 1}}, LATER, (400, -32602)),
    ({"name": "x"}, {**LATER, "mcp_protocol_version": "-"}, MISMATCH),
    ({"name": "x"}, {**LATER, "mcp_protocol_version": "2025-11-25"}, MISMATCH),
    ({"name": "x"}, {"mcp_method": "TOOLS/CALL", "mcp_name": "wrong"}, MISMATCH),
    ({"name": "x"}, {"mcp_method": "-", "mcp_name": "x"}, MISMATCH),
    ({"name": "x"}, {"mcp_name": "X"}, MISMATCH),
    ({"name": "x"}, {}, MISMATCH),
    ({"name": "x"}, {"mcp_name": "x"}, None),
    (ROUTED, {**CONNECTOR, "mcp_protocol_version": "1999-01-01"}, MISMATCH),
    (ROUTED, {**CONNECTOR, "mcp_method": "tools/list"}, MISMATCH),
    (ROUTED, {**CONNECTOR, "mcp_name": "x"}, MISMATCH),
    (ROUTED, {**CONNECTOR, "mcp_param_region": "us"}, MISMATCH),
    (ROUTED, CONNECTOR, None),
    ({**ROUTED, "_meta": META}, CONNECTOR, MISMATCH),
    ({"name": 5}, {}, None),
    ({}, {}, None),
]


def test_each_check_of_headers_gives_its_status_and_code() -> None:
    assert [row for row in CHECKS if code(check("tools/call", row[0], **row[1])) != row[2]] == []


def test_repeated_headers_are_refused_before_the_other_checks() -> None:
    headers = Headers({"mcp-method": "wrong"}, frozenset({"mcp-method"}))
    refusal = check_stateless(headers, Request(1, "tools/list"), lambda _name: ())
    assert code(refusal) == MISMATCH
    assert refusal is not None
    assert refusal.failure.id == 1


def test_mismatches_are_reported_before_unsupported_versions() -> None:
    params = {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}, "name": "x"}
    assert code(check("tools/call", params, mcp_name="x")) == MISMATCH
    assert code(check("tools/call", params, mcp_protocol_version="2099-01-01", mcp_name="y")) == MISMATCH
    refusal = check("tools/call", params, mcp_protocol_version="2099-01-01", mcp_name="x")
    assert code(refusal) == (400, -32022)
    assert refusal is not None
    assert refusal.failure.data == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


def test_handshake_versions_in_an_envelope_are_unsupported() -> None:
    params = {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}}
    assert code(check("tools/list", params, mcp_protocol_version="2025-11-25")) == (400, -32022)


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "a-b"}, "a-b"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "file:///a%20b"}, "file:///a%20b"),
        ("resources/read", {"uri": "memo://é"}, f"=?base64?{b64encode('memo://é'.encode()).decode()}?="),
    ],
)
def test_mcp_name_must_equal_the_name_in_params(method: str, params: dict[str, Any], name: str) -> None:
    assert check(method, params, mcp_name=name) is None
    assert code(check(method, params, mcp_name=f"{name}x")) == MISMATCH
    assert code(check(method, params)) == MISMATCH


def test_mcp_name_is_optional_for_tasks_and_ignored_for_other_methods() -> None:
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert check(method, {"taskId": "a"}) is None
        assert check(method, {"taskId": "a"}, mcp_name="a") is None
        assert code(check(method, {"taskId": "a"}, mcp_name="b")) == MISMATCH
    for method in ("tools/list", "tasks/result", "nonsense"):
        assert check(method, {"name": "x"}, mcp_name="whatever") is None


def test_base64_sentinels_in_header_values_are_decoded() -> None:
    plain = ("plain", "", "=?BASE64?SGVsbG8=?=", "=?base64?SGVsbG8=", "SGVsbG8=?=")
    invalid = ("SGVsbG8", "SGVs!G8=", "SGVsbG9=", "/w==", "é")
    meant = {**{text: text for text in plain}, "=?base64?SGVsbG8=?=": "Hello", "=?base64??=": ""}
    meant |= {f"=?base64?{text}?=": None for text in invalid}
    assert {text: decode_value(text) for text in meant} == meant


# Parameters


PARAMETERS: list[tuple[Any, dict[str, str], bool]] = [
    ({}, {}, True),
    ({"plain": "x"}, {}, True),
    ({"region": None}, {}, True),
    ({"region": "eu"}, {"region": "eu"}, True),
    ({"region": "eu"}, {"region": "EU"}, False),
    ({"region": "eu"}, {}, False),
    ({}, {"region": "eu"}, False),
    ({"region": ""}, {"region": ""}, True),
    ({"region": "é"}, {"region": "=?base64?w6k=?="}, True),
    ({"region": "é"}, {"region": "=?base64?w6k?="}, False),
    ({"region": "=?base64?SGVsbG8="}, {"region": "=?base64?SGVsbG8="}, True),
    *(({"count": 42}, {"count": text}, True) for text in ("42", "42.0")),
    ({"count": 42.0}, {"count": "42"}, True),
    *(({"count": 42}, {"count": text}, False) for text in ("43", "0x2a", "42 ")),
    ({"count": 0}, {"count": "9e999"}, False),
    ({"dry": True}, {"dry": "true"}, True),
    ({"dry": False}, {"dry": "false"}, True),
    ({"dry": True}, {"dry": "1"}, False),
    ({"nested": {"zone": "a"}}, {"zone": "a"}, True),
    ({"nested": {"zone": "a"}}, {"zone": "b"}, False),
    ({"nested": {"zone": "a"}}, {}, False),
    ({"nested": "a"}, {}, True),
    ({"region": ["eu"]}, {"region": "eu"}, True),
    ({}, {"unknown": "x"}, True),
    ("no object", {}, True),
]
"""Arguments, their headers, and whether the two agree."""


def test_parameter_headers_must_equal_the_arguments() -> None:
    def check_arguments(arguments: Any, headers: dict[str, str]) -> tuple[int, int] | None:
        sent = {f"mcp_param_{name}": value for name, value in headers.items()}
        return code(check("tools/call", {"name": "routed", "arguments": arguments}, mcp_name="routed", **sent))

    assert [row for row in PARAMETERS if check_arguments(row[0], row[1]) != (None if row[2] else MISMATCH)] == []


def test_unknown_tools_have_no_parameter_headers() -> None:
    assert check("tools/call", {"name": "other", "arguments": {"region": "x"}}, mcp_name="other") is None


def test_invalid_annotations_give_no_parameter_headers() -> None:
    schemas: list[dict[str, Any]] = [
        {},
        {"properties": 5},
        {"properties": {"a": True}},
        *({"properties": {"a": {"type": kind, "x-mcp-header": "A"}}} for kind in ("number", ["string", "null"])),
        *({"properties": {"a": {"type": "string", "x-mcp-header": mark}}} for mark in ("", "a b", 5)),
        {"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}},
        {"$defs": {"a": {"properties": {"b": {"type": "string", "x-mcp-header": "A"}}}}},
        {"anyOf": [{"properties": {"b": {"type": "string", "x-mcp-header": "A"}}}]},
    ]
    assert [schema for schema in schemas if list(parameter_headers(schema))] == []


def test_annotations_of_nested_properties_give_parameter_headers() -> None:
    parameters = list(parameter_headers(SCHEMA))
    assert Parameter("mcp-param-zone", ("nested", "zone")) in parameters
    assert len(parameters) == 4


# Bodies


def test_only_single_valid_messages_are_accepted_as_bodies() -> None:
    codes: list[tuple[Message, int | None]] = [
        (Request(1, "x"), None),
        (Notification("x"), None),
        (Response(1, {}), -32600),
        (Batch((Request(1, "x"),)), -32600),
        (decode(b"nonsense"), -32700),
        (decode(b"[]"), -32600),
        (decode(b'{"jsonrpc": "2.0", "id": null, "method": "x"}'), -32600),
    ]
    refusals = [(message, check_stateless_body(message)) for message, _ in codes]
    assert [(message, refusal and refusal.failure.code) for message, refusal in refusals] == codes
