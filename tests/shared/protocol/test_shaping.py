"""Results fitted to each version, held against the official schema of every one."""

from copy import deepcopy
from typing import Any

import pytest

from shared.protocol.methods import REQUESTS
from shared.protocol.shaping import SERVER_INFO, CachedResult, is_well_formed, shape, shape_question
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

# Each result with everything that the newest version allows in it.
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


def fits(method, result, version):
    schemas.check({"jsonrpc": "2.0", "id": 1, "result": result}, version.date, method=method)


@schemas.requires_spec
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_full_results_fit_every_version_and_stay_what_they_were(version):
    before = deepcopy(FULL)
    for method, result in FULL.items():
        fits(method, shaped(method, result, version), version)
    if version.stateless:
        method, said = "server/discover", {"supportedVersions": [version.date]}
    else:
        method, said = "initialize", {"protocolVersion": version.date, "serverInfo": SERVER, "instructions": "I"}
    fits(method, shaped(method, {**said, "capabilities": CAPABILITIES}, version), version)
    assert before == FULL


def test_a_lasting_result_is_shaped_as_any_other_and_once():
    result = {"tools": [TOOL], "ttlMs": 1, "cacheScope": "public"}
    cached = CachedResult(result)
    for version in VERSIONS:
        made = shaped("tools/list", cached, version)
        assert made == shaped("tools/list", result, version)
        assert shaped("tools/list", cached, version) is made
    assert cached == result


def test_the_newest_version_loses_nothing():
    result = shaped("tools/call", FULL["tools/call"], V2026_07_28)
    assert {name: result[name] for name in FULL["tools/call"]} == FULL["tools/call"]


@pytest.mark.parametrize("version", [V2024_11_05, V2025_03_26], ids=str)
def test_what_hosts_of_apps_look_for_alone_stays_in_meta_before_that_came(version):
    link = {"ui": {"resourceUri": "ui://a/b"}, "ui/resourceUri": "ui://a/b"}
    tools = shaped("tools/list", {"tools": [{**TOOL, "_meta": {**META, **link}}, TOOL]}, version)["tools"]
    assert (tools[0]["_meta"], "_meta" in tools[1]) == (link, False)
    page = {"uri": "ui://a/b", "text": "t", "_meta": {**META, "ui": {"csp": {}}}}
    contents = shaped("resources/read", {"contents": [page, {**page, "_meta": META}]}, version)["contents"]
    assert (contents[0]["_meta"], "_meta" in contents[1]) == ({"ui": {"csp": {}}}, False)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_a_tools_own_arguments_and_data_survive_whatever_they_are_called(version):
    tool = shaped("tools/list", FULL["tools/list"], version)["tools"][0]
    assert tool["inputSchema"] == TOOL["inputSchema"]
    assert tool.get("outputSchema", TOOL["outputSchema"]) == TOOL["outputSchema"]
    known = version.order >= V2025_06_18.order
    result = shaped("tools/call", FULL["tools/call"], version)
    assert result.get("structuredContent") == ({"title": 1} if known else None)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_before_the_newest_version_structured_content_is_an_object_and_so_is_its_schema(version):
    for data in ([1], 5, "a", None, True):
        result = shaped("tools/call", {"content": [TEXT], "structuredContent": data}, version)
        assert ("structuredContent" in result) is version.stateless
        assert result.get("structuredContent", data) == data
        assert len(result["content"]) == 1
    for schema in ({"type": "array"}, {"anyOf": []}, {"$ref": "#/$defs/A"}, {"type": ["object", "null"]}, {}):
        tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
        listed = shaped("tools/list", {"tools": [tool]}, version)["tools"][0]
        assert ("outputSchema" in listed) is version.stateless


def test_audio_and_links_are_put_into_words_where_they_do_not_exist():
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


def test_every_result_of_the_newest_version_says_what_it_is_and_who_sent_it():
    for method, full in FULL.items():
        result = shaped(method, full, V2026_07_28)
        assert (result["resultType"], result["_meta"][SERVER_INFO]) == ("complete", INFO), method
        hints = ("ttlMs" in (bare := shaped(method, {}, V2026_07_28)), "cacheScope" in bare)
        assert hints == (METHODS[method].cacheable,) * 2, method
    assert shaped("resources/list", FULL["resources/list"], V2026_07_28)["_meta"] == {**META, SERVER_INFO: INFO}


def test_without_a_hint_nothing_is_cached():
    result = shaped("resources/read", {"contents": []}, V2026_07_28)
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_a_question_is_not_cacheable():
    asked = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}, "requestState": "s"}
    result = shaped("resources/read", asked, V2026_07_28)
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


def asked(method, params, version):
    sent = shape_question(method, params, version)
    schemas.check({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}, version.date)
    return sent


@schemas.requires_spec
@pytest.mark.parametrize("version", [V2025_06_18, V2025_11_25], ids=str)
def test_a_form_fits_the_versions_that_have_forms(version):
    fields = asked("elicitation/create", FORM, version)["requestedSchema"]["properties"]
    assert fields.keys() == FORM["requestedSchema"]["properties"].keys()
    assert fields["yes"]["default"] is True


def test_the_first_forms_have_no_mode_and_few_defaults_and_name_choices_in_two_lists():
    sent = shape_question("elicitation/create", FORM, V2025_06_18)
    fields = sent["requestedSchema"]["properties"]
    assert "mode" not in sent
    assert [name for name, field in fields.items() if "default" in field] == ["yes"]
    assert fields["titled"] == {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}


@schemas.requires_spec
def test_sampling_and_progress_fit_every_version():
    params = {"progressToken": 1, "progress": 0.5, "total": 1, "message": "half"}
    for version in VERSIONS:
        if not version.stateless:
            asked("sampling/createMessage", SAMPLING, version)
        sent = shape_question("notifications/progress", params, version)
        schemas.check({"jsonrpc": "2.0", "method": "notifications/progress", "params": sent}, version.date)
        assert ("message" in sent) is (version is not V2024_11_05)


def test_the_newest_version_has_no_elicitation_id():
    params = {"mode": "url", "message": "?", "url": "https://example.org", "elicitationId": "x"}
    assert "elicitationId" not in shape_question("elicitation/create", params, V2026_07_28)
    assert shape_question("elicitation/create", params, V2025_11_25) == params


def test_what_another_server_gives_may_be_in_any_shape_below_its_lists():
    strange = {"content": [5, None, {"type": ["text"]}, {"type": "audio"}, {"type": "resource_link"}], "_meta": 5}
    for version in VERSIONS:
        assert shape(METHODS["tools/call"], strange, version, {})["content"][:2] == [5, None]
        assert shape(METHODS["tools/list"], {"tools": [5, {"outputSchema": 5}]}, version, {})["tools"][0] == 5


def test_a_result_without_lists_where_they_must_be_is_not_shapely():
    assert is_well_formed("tools/call", {"content": [5]})
    assert is_well_formed("tools/call", {})
    assert not is_well_formed("tools/call", {"content": 5})


def test_a_choice_without_a_value_stays_what_it_is():
    field = {"type": "string", "oneOf": [{"title": "One"}]}
    asked = {"message": "?", "requestedSchema": {"type": "object", "properties": {"one": field}}}
    shaped = shape_question("elicitation/create", asked, V2025_06_18)
    assert shaped["requestedSchema"]["properties"]["one"] == field
