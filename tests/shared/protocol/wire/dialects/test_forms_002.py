"""Document 002: its params in the form of the specification, and results and errors in its own forms."""

from typing import Any

import pytest

from shared.errors import InvalidParams, RpcError, UnknownTool
from shared.protocol.wire.dialects.forms_002 import (
    MAX_BRACES,
    MAX_TEMPLATE,
    VERSIONS,
    choose_version,
    convert_error,
    prompt_params,
    prompt_result,
    read_params,
    read_result,
    tool_params,
    tool_result,
)
from shared.protocol.wire.jsonrpc import Failure, failure

# Versions


def test_the_highest_common_version_is_chosen():
    chosen: list[tuple[dict[str, Any], str]] = [
        ({}, "0.7.0"),
        ({"version": "0.3.0"}, "0.3.0"),
        ({"version": "0.3.7"}, "0.3.0"),
        ({"protocolVersion": "0.12.0"}, "0.7.0"),
        ({"minVersion": "0.2.0"}, "0.7.0"),
        ({"minVersion": "0.2.0", "maxVersion": "0.4.9"}, "0.4.0"),
        ({"minVersion": "0.5.0", "maxVersion": "1.4.0"}, "0.7.0"),
        ({"version": "0.1.0", "maxVersion": "0.6.0"}, "0.6.0"),
    ]
    assert [(params, choose_version(params)["version"]) for params, _ in chosen] == chosen


def test_errors_without_a_common_version_list_the_supported_versions():
    for params in ({"version": "1.0.0"}, {"maxVersion": "0.0.9"}, {"minVersion": "0.8.0"}):
        with pytest.raises(RpcError) as refused:
            choose_version(params)
        assert refused.value.code == 1001
        assert refused.value.data == {"supported": list(VERSIONS), "requested": params}


def test_invalid_versions_are_refused():
    for version in ("2025-06-18", "0.7", "0.7.0-rc1", "", 7, None, "0.1.9999999999"):
        with pytest.raises(InvalidParams, match=r"MAJOR\.MINOR\.PATCH"):
            choose_version({"version": version})


# Resources


def test_arguments_fill_the_template_and_the_query_of_a_uri():
    filled: list[tuple[str, dict[str, Any], str]] = [
        ("data://users/123", {}, "data://users/123"),
        ("data://users/123", {"include_details": True}, "data://users/123?include_details=true"),
        ("data://users/123", {"include_details": None}, "data://users/123"),
        ("data://users/{id}/profile", {"id": 7}, "data://users/7/profile"),
        ("data://{a}/{b}", {"a": "1/2", "b": "ü", "c": "x y"}, "data://1%2F2/%C3%BC?c=x%20y"),
        ("file:///{+path}{?offset,length}", {"path": "a/b c", "offset": 2, "c": 3}, "file:///a/b%20c?offset=2&c=3"),
        ("data://a?b=1", {"c": [1, "&"]}, "data://a?b=1&c=%5B1%2C%22%26%22%5D"),
        ("data://{a}", {"a": "{b}"}, "data://%7Bb%7D"),
    ]
    meant = [(uri, given, read_params({"uri": uri, "arguments": given})["uri"]) for uri, given, _ in filled]
    assert meant == filled


def test_unfilled_and_too_large_templates_are_format_errors():
    unfilled = ("data://users/{id}", "data://users/{a}{b}", "data://users/{+a}/{+b}")
    messages = dict.fromkeys(unfilled, "data://users/")
    too_much = ("a:{b}" + "c" * MAX_TEMPLATE, "a:" + "{b}/" * (MAX_BRACES + 1))
    messages |= dict.fromkeys(too_much, "a URI with braces may have at most")
    for uri, message in messages.items():
        with pytest.raises(RpcError, match=message) as refused:
            read_params({"uri": uri, "arguments": {"ID": 7, "a": 1, "b": 2}})
        assert refused.value.code == 5001


def test_binary_contents_become_blob_content():
    contents = [{"uri": "a:", "text": "hello"}, {"uri": "a:", "blob": "AAE=", "mimeType": "image/png"}]
    assert read_result({"value": {"contents": contents, "meta": {}}}) == {
        "content": [{"type": "text", "text": "hello"}, {"type": "blob", "blob": "AAE=", "mimeType": "image/png"}],
        "isError": False,
        "meta": {},
    }


# Tools


def test_structured_content_replaces_text_with_the_same_json():
    picture = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    content = [{"type": "text", "text": "[2,3]"}, picture]
    assert tool_result({"content": content, "structuredContent": [2, 3]}) == {
        "content": [{"type": "json", "json": [2, 3]}, picture],
        "isError": False,
    }


def test_text_with_another_value_stays_before_structured_content():
    for text, is_error in (("two and three", False), ("[2,3", True), ("3", False), ("", True)):
        content = [{"type": "text", "text": text}]
        assert tool_result({"content": content, "structuredContent": [2, 3], "isError": is_error}) == {
            "content": [*content, {"type": "json", "json": [2, 3]}],
            "isError": is_error,
        }


def test_content_of_any_type_is_unchanged():
    content = [{"type": "custom-type", "data": {}}, {"type": "text", "text": "hello"}]
    assert tool_result({"content": content, "isError": True}) == {"content": content, "isError": True}


# Prompts


def test_prompt_arguments_become_text():
    given = {"text": "a", "number": 7, "share": 0.5, "yes": True, "none": None, "list": ["ü"]}
    assert prompt_params({"name": "p", "arguments": given})["arguments"] == {
        "text": "a",
        "number": "7",
        "share": "0.5",
        "yes": "true",
        "list": '["ü"]',
    }


def test_prompt_messages_become_one_text():
    blocks = [
        {"type": "text", "text": "one"},
        {"type": "resource", "resource": {"uri": "a:", "text": "two"}},
        {"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}},
        {"type": "resource_link", "uri": "a:c", "name": "c"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
    ]
    messages = [{"role": "user", "content": block} for block in blocks]
    assert prompt_result({"messages": messages}) == {
        "content": "one\n\ntwo\n\n[a:b]\n\n[a:c]\n\n[audio]",
        "isError": False,
    }


# Params of every method


def test_params_of_invalid_shape_are_refused():
    faults: list[tuple[dict[str, Any], str]] = [
        ({}, "must be a string"),
        ({"uri": 7, "name": 7}, "must be a string"),
        ({"uri": "a:", "name": "a", "arguments": []}, "must be an object"),
    ]
    for meant in (read_params, tool_params, prompt_params):
        for params, fault in faults:
            with pytest.raises(InvalidParams, match=fault):
                meant(params)


# Errors


def test_error_codes_are_in_the_ranges_of_the_document():
    codes = {
        ("read_resource", -32603): 3002,
        ("read_resource", -32602): -32602,
        ("call_tool", -32602): -32602,
        ("call_tool", -32603): 4002,
        ("render_prompt", -32602): -32602,
        ("render_prompt", -32603): 6001,
        ("call_tool", -32021): -32021,
        ("initialize", -32603): -32603,
        ("", -32700): -32700,
    }
    converted = {(method, code): convert_error(method, Failure(1, code, "why", {"a": 1})) for method, code in codes}
    assert converted == {row: {"code": code, "message": "why", "data": {"a": 1}} for row, code in codes.items()}


def test_unknown_tools_have_code_4001_and_unknown_resources_3001():
    failed = failure(1, UnknownTool("unknown tool: a"))
    assert convert_error("call_tool", failed) == {"code": 4001, "message": "unknown tool: a"}
    failed = Failure(1, -32602, "nobody has that number", {"uri": "data://users/999"})
    assert convert_error("read_resource", failed) == {
        "code": 3001,
        "message": "Resource not found",
        "data": {"uri": "data://users/999", "detail": "nobody has that number"},
    }
