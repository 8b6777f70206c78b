"""Results in the form of each version, checked with its official schema."""

from copy import deepcopy
from typing import Any

import pytest

from shared.protocol.methods import REQUESTS
from shared.protocol.shaping import SERVER_INFO, CachedResult, is_well_formed, shape, shape_request
from shared.protocol.versions import (
    HANDSHAKE_VERSIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    VERSIONS,
)
from tests import schemas

INFO = {"name": "server", "version": "1", "title": "Server"}
METHODS = {row.name: row for row in REQUESTS}
ICONS = [{"src": "data:,", "mimeType": "image/png", "sizes": ["any"]}]
NOTES = {"audience": ["user"], "priority": 1, "lastModified": "2025-01-01T00:00:00Z"}
META = {"org.example/a": 1}
DESCRIBED = {"name": "n", "title": "T", "description": "D", "icons": ICONS, "_meta": META}
ARGUMENTS = {"title": {"type": "string"}, "_meta": {"type": "object"}, "icons": {}}
ARGUMENTS |= {"annotations": {}, "outputSchema": {}}
LINK = {"type": "resource_link", "uri": "a:b", **DESCRIBED, "size": 1, "mimeType": "a/b", "annotations": NOTES}
AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "annotations": NOTES, "_meta": META}
TEXT = {"type": "text", "text": "hello", "annotations": NOTES, "_meta": META}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
EMBEDDED = {"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": META}, "_meta": META}
EMBEDDED["annotations"] = NOTES
TOOL = {
    **DESCRIBED,
    "inputSchema": {"type": "object", "properties": ARGUMENTS},
    "outputSchema": {"type": "object", "properties": ARGUMENTS},
    "annotations": {"title": "T", "readOnlyHint": True},
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "completions": {},
    "logging": {},
    "experimental": {"x": {}},
    "extensions": {"org.example/x": {}},
}
SERVER = {**INFO, "description": "D", "websiteUrl": "https://example.org", "icons": ICONS}
RESOURCE = {"uri": "a:b", "size": 1, "mimeType": "a/b", "annotations": NOTES, **DESCRIBED}
TEMPLATE = {"uriTemplate": "a:{b}", "mimeType": "a/b", "annotations": NOTES, **DESCRIBED}
PROMPT = {**DESCRIBED, "arguments": [{"name": "a", "title": "T", "description": "D", "required": True}]}

# Each result with every field that the newest version allows.
FULL: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": [TOOL], "nextCursor": "c", "ttlMs": 5, "cacheScope": "public"},
    "tools/call": {
        "content": [TEXT, IMAGE, AUDIO, LINK, EMBEDDED],
        "structuredContent": {"title": 1},
        "isError": False,
    },
    "resources/list": {"resources": [RESOURCE], "_meta": META},
    "resources/templates/list": {"resourceTemplates": [TEMPLATE]},
    "resources/read": {"contents": [{"uri": "a:b", "text": "t", "_meta": META}, {"uri": "a:c", "blob": "AA=="}]},
    "prompts/list": {"prompts": [PROMPT]},
    "prompts/get": {
        "description": "D",
        "messages": [{"role": "user", "content": one} for one in (TEXT, AUDIO, LINK)],
    },
    "completion/complete": {"completion": {"values": ["a"], "total": 1, "hasMore": False}},
}


def shaped(method, result, version):
    return shape(METHODS[method], result, version, INFO)


def check_result(method, result, version):
    schemas.check({"jsonrpc": "2.0", "id": 1, "result": result}, version.date, method=method)


@schemas.requires_spec
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_shaped_results_match_the_schema_of_each_version(version):
    before = deepcopy(FULL)
    for method, result in FULL.items():
        check_result(method, shaped(method, result, version), version)
    if version.stateless:
        method, opening = "server/discover", {"supportedVersions": [version.date]}
    else:
        method, opening = "initialize", {"protocolVersion": version.date, "serverInfo": SERVER, "instructions": "I"}
    check_result(method, shaped(method, {**opening, "capabilities": CAPABILITIES}, version), version)
    assert before == FULL


def test_cached_results_are_shaped_once_for_each_version():
    result = {"tools": [TOOL], "ttlMs": 1, "cacheScope": "public"}
    cached = CachedResult(result)
    for version in VERSIONS:
        made = shaped("tools/list", cached, version)
        assert made == shaped("tools/list", result, version)
        assert shaped("tools/list", cached, version) is made
    assert cached == result


def test_the_newest_version_gets_every_field():
    result = shaped("tools/call", FULL["tools/call"], V2026_07_28)
    assert {name: result[name] for name in FULL["tools/call"]} == FULL["tools/call"]


@pytest.mark.parametrize("version", [V2024_11_05, V2025_03_26], ids=str)
def test_old_versions_get_only_the_ui_keys_of_meta(version):
    link = {"ui": {"resourceUri": "ui://a/b"}, "ui/resourceUri": "ui://a/b"}
    tools = shaped("tools/list", {"tools": [{**TOOL, "_meta": {**META, **link}}, TOOL]}, version)["tools"]
    assert (tools[0]["_meta"], "_meta" in tools[1]) == (link, False)
    page = {"uri": "ui://a/b", "text": "t", "_meta": {**META, "ui": {"csp": {}}}}
    contents = shaped("resources/read", {"contents": [page, {**page, "_meta": META}]}, version)["contents"]
    assert (contents[0]["_meta"], "_meta" in contents[1]) == ({"ui": {"csp": {}}}, False)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_schemas_and_structured_content_of_tools_are_not_changed(version):
    tool = shaped("tools/list", FULL["tools/list"], version)["tools"][0]
    assert tool["inputSchema"] == TOOL["inputSchema"]
    assert tool.get("outputSchema", TOOL["outputSchema"]) == TOOL["outputSchema"]
    known = version.order >= V2025_06_18.order
    result = shaped("tools/call", FULL["tools/call"], version)
    assert result.get("structuredContent") == ({"title": 1} if known else None)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_only_the_newest_version_gets_structured_content_other_than_objects(version):
    for data in ([1], 5, "a", None, True):
        result = shaped("tools/call", {"content": [TEXT], "structuredContent": data}, version)
        assert ("structuredContent" in result) is version.stateless
        assert result.get("structuredContent", data) == data
        assert len(result["content"]) == 1
    for schema in ({"type": "array"}, {"anyOf": []}, {"$ref": "#/$defs/A"}, {"type": ["object", "null"]}, {}):
        tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
        listed = shaped("tools/list", {"tools": [tool]}, version)["tools"][0]
        assert ("outputSchema" in listed) is version.stateless


def test_audio_and_resource_links_become_text_in_versions_without_them():
    block = shaped("tools/call", {"content": [AUDIO]}, V2024_11_05)["content"][0]
    assert block == {"type": "text", "text": "[audio/wav left out: this protocol version has no audio]"}
    for version in VERSIONS[:2]:
        block = shaped("tools/call", {"content": [LINK]}, version)["content"][0]
        assert block == {"type": "text", "text": "n: a:b"}


def test_the_handshake_era_has_no_caching_hints():
    for method in (name for name in FULL if METHODS[name].cacheable):
        for version in HANDSHAKE_VERSIONS:
            result = shaped(method, {**FULL[method], "ttlMs": 1, "cacheScope": "public"}, version)
            assert {"ttlMs", "cacheScope"}.isdisjoint(result), (method, version)


def test_results_of_the_newest_version_have_a_result_type_and_server_info():
    for method, full in FULL.items():
        result = shaped(method, full, V2026_07_28)
        assert (result["resultType"], result["_meta"][SERVER_INFO]) == ("complete", INFO), method
        hints = ("ttlMs" in (bare := shaped(method, {}, V2026_07_28)), "cacheScope" in bare)
        assert hints == (METHODS[method].cacheable,) * 2, method
    assert shaped("resources/list", FULL["resources/list"], V2026_07_28)["_meta"] == {**META, SERVER_INFO: INFO}


def test_results_without_caching_hints_are_not_cached():
    result = shaped("resources/read", {"contents": []}, V2026_07_28)
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_input_required_results_have_no_caching_hints():
    check_question = {
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "roots/list"}},
        "requestState": "s",
    }
    result = shaped("resources/read", check_question, V2026_07_28)
    assert {"ttlMs", "cacheScope"}.isdisjoint(result)


FORM = {
    "mode": "form",
    "message": "?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "default": "a", "minLength": 1, "title": "T"},
            "number": {"type": "integer", "default": 1, "minimum": 0},
            "yes": {"type": "boolean", "default": True},
            "plain": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        },
        "required": ["text"],
    },
}
SAMPLING = {"messages": [{"role": "user", "content": one} for one in (TEXT, AUDIO)], "maxTokens": 5, "temperature": 1}


def check_question(method, params, version):
    sent = shape_request(method, params, version)
    schemas.check({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}, version.date)
    return sent


@schemas.requires_spec
@pytest.mark.parametrize("version", [V2025_06_18, V2025_11_25], ids=str)
def test_forms_match_the_schema_of_each_version_with_forms(version):
    fields = check_question("elicitation/create", FORM, version)["requestedSchema"]["properties"]
    assert fields.keys() == FORM["requestedSchema"]["properties"].keys()
    assert fields["yes"]["default"] is True


def test_forms_of_the_first_version_have_no_mode_and_use_enum_names():
    sent = shape_request("elicitation/create", FORM, V2025_06_18)
    fields = sent["requestedSchema"]["properties"]
    assert "mode" not in sent
    assert [name for name, field in fields.items() if "default" in field] == ["yes"]
    assert fields["titled"] == {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}


@schemas.requires_spec
def test_sampling_and_progress_match_the_schema_of_each_version():
    params = {"progressToken": 1, "progress": 0.5, "total": 1, "message": "half"}
    for version in VERSIONS:
        if not version.stateless:
            check_question("sampling/createMessage", SAMPLING, version)
        sent = shape_request("notifications/progress", params, version)
        schemas.check({"jsonrpc": "2.0", "method": "notifications/progress", "params": sent}, version.date)
        assert ("message" in sent) is (version is not V2024_11_05)


def test_the_newest_version_has_no_elicitation_id():
    params = {"mode": "url", "message": "?", "url": "https://example.org", "elicitationId": "x"}
    assert "elicitationId" not in shape_request("elicitation/create", params, V2026_07_28)
    assert shape_request("elicitation/create", params, V2025_11_25) == params


def test_list_entries_of_invalid_shape_pass_unchanged():
    strange = {"content": [5, None, {"type": ["text"]}, {"type": "audio"}, {"type": "resource_link"}], "_meta": 5}
    for version in VERSIONS:
        assert shape(METHODS["tools/call"], strange, version, {})["content"][:2] == [5, None]
        assert shape(METHODS["tools/list"], {"tools": [5, {"outputSchema": 5}]}, version, {})["tools"][0] == 5


def test_results_with_another_type_in_place_of_a_list_are_malformed():
    assert is_well_formed("tools/call", {"content": [5]})
    assert is_well_formed("tools/call", {})
    assert not is_well_formed("tools/call", {"content": 5})


def test_choices_without_a_value_are_unchanged():
    field = {"type": "string", "oneOf": [{"title": "One"}]}
    check_question = {"message": "?", "requestedSchema": {"type": "object", "properties": {"one": field}}}
    shaped = shape_request("elicitation/create", check_question, V2025_06_18)
    assert shaped["requestedSchema"]["properties"]["one"] == field
