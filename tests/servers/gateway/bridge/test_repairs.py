"""Results of other servers that strict hosts would refuse."""

from typing import Any

import pytest

from servers.gateway.bridge.repairs import ToolSchemas, repair, repair_log

SCHEMA = {"type": "object", "properties": {"at": {"default": None}}}
OBJECT = {"type": "object", "properties": {}}
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "tools/list",
        {
            "tools": [{"name": "a", "title": None, "annotations": {"title": None}, "inputSchema": SCHEMA}],
            "nextCursor": None,
        },
        {"tools": [{"name": "a", "annotations": {}, "inputSchema": SCHEMA}]},
    ),
    (
        "tools/list",
        {"tools": [{"name": "a", "inputSchema": {"properties": None, "required": None}}, 1, {"name": "b"}]},
        {"tools": [{"name": "a", "inputSchema": OBJECT}, 1, {"name": "b", "inputSchema": OBJECT}]},
    ),
    *(
        (
            "tools/list",
            {"tools": [{"name": "a", "inputSchema": schema}]},
            {"tools": [{"name": "a", "inputSchema": fixed}]},
        )
        for schema, fixed in (
            ([], OBJECT),
            (None, OBJECT),
            ({"type": ["object", "null"]}, OBJECT),
            ({"type": "array"}, {"type": "array", "items": {}}),
            ({"type": "object", "properties": []}, OBJECT),
            (
                {"properties": {"a": {"type": "array"}, "b": {"anyOf": [{"type": ["array", "null"]}]}}},
                {
                    "type": "object",
                    "properties": {
                        "a": {"type": "array", "items": {}},
                        "b": {"anyOf": [{"type": ["array", "null"], "items": {}}]},
                    },
                },
            ),
            (
                {"properties": {"type": {"enum": ["array"]}, "properties": {"type": "array", "items": True}}},
                {
                    "type": "object",
                    "properties": {"type": {"enum": ["array"]}, "properties": {"type": "array", "items": True}},
                },
            ),
            (
                {"properties": {"a": {"type": "string"}, "required": ["a"]}},
                {"type": "object", "properties": {"a": {"type": "string"}}},
            ),
            (
                {"properties": {"a": {"properties": [], "default": {"properties": []}, "required": []}}},
                {
                    "type": "object",
                    "properties": {"a": {"properties": {}, "default": {"properties": []}, "required": []}},
                },
            ),
        )
    ),
    ("tools/list", {"tools": "none"}, {"tools": "none"}),
    (  # only in content is the type a kind that decides about the other fields
        "tools/list",
        {"tools": [{"type": "function", "name": "a", "annotations": None, "inputSchema": SCHEMA}]},
        {"tools": [{"type": "function", "name": "a", "inputSchema": SCHEMA}]},
    ),
    (
        "prompts/get",
        {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "", "annotations": None}},
                {"content": "a"},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": ""}},
                {"content": {"type": "text", "text": "a"}},
            ]
        },
    ),
    (
        "tools/call",
        {
            "content": [{"type": "text", "text": "hi", "annotations": None}, {"type": "chart", "data": None}],
            "isError": None,
            "structuredContent": {"a": None},
            "_meta": {"a": None},
        },
        {
            "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": '{"type":"chart","data":null}'}],
            "structuredContent": {"a": None},
            "_meta": {"a": None},
        },
    ),
    (
        "tools/call",
        {"structuredContent": {"a": 1}},
        {"structuredContent": {"a": 1}, "content": [{"type": "text", "text": '{"a":1}'}]},
    ),
    (
        "tools/call",
        {
            "content": [
                {"type": "text"},
                {"type": "text", "text": {"a": None}},
                "b",
                {"type": "text", "text": None},
                1,
                {"text": "c"},
                {"uri": "d"},
            ]
        },
        {
            "content": [
                {"type": "text", "text": text} for text in ("", '{"a":null}', "b", "", "1", "c", '{"uri":"d"}')
            ]
        },
    ),
    ("tools/call", {"content": None, "isError": None}, {"content": []}),
    ("tools/call", {"content": [], "structuredContent": None}, {"content": [], "structuredContent": None}),
    ("tools/call", {"content": "a"}, {"content": [{"type": "text", "text": "a"}]}),
    ("tools/call", {"content": {"type": "text", "text": "a"}}, {"content": [{"type": "text", "text": "a"}]}),
    ("tools/call", {"content": 5}, {"content": 5}),
    ("tools/call", {}, {"content": []}),
    ("tools/call", {"isError": "true"}, {"isError": True, "content": []}),
    ("tools/call", {"resultType": "other"}, {"resultType": "other"}),
    *(
        ("tools/call", {"content": [{"type": "image", **given}]}, {"content": [{"type": "image", **fixed}]})
        for given, fixed in (
            ({"data": "iVBORw0KGgo="}, {"data": "iVBORw0KGgo=", "mimeType": "image/png"}),
            ({"data": "data:image/gif;base64,R0lGOD"}, {"data": "R0lGOD", "mimeType": "image/gif"}),
            ({"data": "data:;a=b;base64,AA==", "mimeType": "a/b"}, {"data": "AA==", "mimeType": "a/b"}),
            ({"data": "AAAA"}, {"data": "AAAA"}),
            ({"data": 5}, {"data": 5}),
        )
    ),
    ("resources/list", {"resources": None}, {"resources": []}),
    ("completion/complete", {"completion": {"values": None}}, {"completion": {"values": []}}),
    ("tools/call", {"task": {"taskId": "1", "ttl": None}}, {"task": {"taskId": "1", "ttl": None}}),
    (
        "resources/read",
        {"contents": [{"uri": "a:b", "mimeType": None, "text": ""}]},
        {"contents": [{"uri": "a:b", "text": ""}]},
    ),
    (
        "prompts/list",
        {"prompts": [{"name": "a", "arguments": [{"name": "x", "required": None}], "icons": None}]},
        {"prompts": [{"name": "a", "arguments": [{"name": "x"}]}]},
    ),
    ("org.example/own", {"a": None}, {"a": None}),
]


@pytest.mark.parametrize(("method", "result", "expected"), CASES)
def test_results_that_strict_hosts_refuse_are_repaired(
    method: str, result: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert repair(method, result) == expected


def test_a_log_message_keeps_data_that_is_null() -> None:
    assert repair_log({"level": "info", "logger": None, "data": None}) == {"level": "info", "data": None}


def test_text_that_is_not_a_string_is_not_read_as_structured_content():
    schemas = ToolSchemas()
    schemas.learn({"tools": [{"name": "a", "outputSchema": {}}]})
    result = {"content": [{"type": "other", "text": 5}]}
    assert schemas.repair_result("server", "a", result) == result


@pytest.mark.parametrize(
    ("text", "expected"),
    [("no such branch", ["no such branch", '{"code":5}']), ('{ "code": 5 }', ['{ "code": 5 }'])],
)
def test_structured_content_of_an_error_becomes_text_if_a_schema_describes_results(
    text: str, expected: list[str]
) -> None:
    schemas = ToolSchemas()
    schemas.learn({"tools": [{"name": "a", "outputSchema": {}}]})
    error = {"isError": True, "content": [{"type": "text", "text": text}], "structuredContent": {"code": 5}}
    content = [{"type": "text", "text": part} for part in expected]
    assert schemas.repair_result("server", "a", error) == {"isError": True, "content": content}
    assert schemas.repair_result("server", "b", error) == error


ARGUMENTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"list": "[1, 2]", "object": '{"a": 1}'}, {"list": [1, 2], "object": {"a": 1}}),
    ({"flag": "true", "count": "7", "size": "1.5"}, {"flag": True, "count": 7, "size": 1.5}),
    (
        {"flag": "yes", "count": "7.5", "list": '{"a": 1}', "text": "[1]"},
        {"flag": "yes", "count": "7.5", "list": '{"a": 1}', "text": "[1]"},
    ),
    (
        {"flag": None, "text": None, "list": None, "maybe": None, "other": None},
        {"list": None, "maybe": None, "other": None},
    ),
    ({"either": "[1]", "other": "[1]"}, {"either": "[1]", "other": "[1]"}),
]


@pytest.mark.parametrize(("arguments", "expected"), ARGUMENTS)
def test_arguments_that_hosts_send_in_another_form_are_repaired(
    arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    types = {
        "list": "array",
        "object": "object",
        "flag": "boolean",
        "count": "integer",
        "size": "number",
        "text": "string",
        "maybe": ["integer", "null"],
        "either": ["string", "array"],
    }
    properties = {name: {"type": kind} for name, kind in types.items()}
    schemas = ToolSchemas()
    schemas.learn({"tools": [{"name": "a", "inputSchema": {"properties": properties, "required": ["list"]}}]})
    assert schemas.repair_arguments("a", arguments) == expected
    assert schemas.repair_arguments("b", arguments) == arguments
