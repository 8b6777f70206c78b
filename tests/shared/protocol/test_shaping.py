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
ARGUMENTS = {
    "title": {"type": "string"},
    "_meta": {"type": "object"},
    "icons": {},
    "annotations": {},
    "outputSchema": {},
}
LINK = {"type": "resource_link", "uri": "a:b", **DESCRIBED, "size": 1, "mimeType": "a/b", "annotations": NOTES}
AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "annotations": NOTES, "_meta": META}
TEXT = {"type": "text", "text": "hello", "annotations": NOTES, "_meta": META}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
EMBEDDED = {
    "type": "resource",
    "resource": {"uri": "a:b", "text": "t", "_meta": META},
    "annotations": NOTES,
    "_meta": META,
}
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
@pytest.mark.parametrize("method", FULL)
def test_a_full_result_fits_every_version(method, version):
    fits(method, shaped(method, FULL[method], version), version)


@schemas.requires_spec
@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
def test_the_answer_to_initialize_fits_every_version(version):
    result = {
        "protocolVersion": version.date,
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": "I",
    }
    fits("initialize", shaped("initialize", result, version), version)


@schemas.requires_spec
def test_the_answer_to_discover_fits():
    result = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
    fits("server/discover", shaped("server/discover", result, V2026_07_28), V2026_07_28)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("method", FULL)
def test_the_result_that_came_in_is_not_changed(method, version):
    before = deepcopy(FULL[method])
    shaped(method, FULL[method], version)
    assert before == FULL[method]


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_a_lasting_result_is_shaped_as_any_other_and_once(version):
    result = {"tools": [TOOL], "ttlMs": 1, "cacheScope": "public"}
    cached = CachedResult(result)
    shaped = shape(METHODS["tools/list"], cached, version, INFO)
    assert shaped == shape(METHODS["tools/list"], result, version, INFO)
    assert shape(METHODS["tools/list"], cached, version, INFO) is shaped
    assert cached == result


def test_the_newest_version_loses_nothing():
    result = shaped("tools/call", FULL["tools/call"], V2026_07_28)
    assert {name: result[name] for name in FULL["tools/call"]} == FULL["tools/call"]


@pytest.mark.parametrize("version", [V2024_11_05, V2025_03_26], ids=str)
def test_what_hosts_of_apps_look_for_stays_in_meta_before_that_came(version):
    link = {"ui": {"resourceUri": "ui://a/b"}, "ui/resourceUri": "ui://a/b"}
    tools = shaped("tools/list", {"tools": [{**TOOL, "_meta": {**META, **link}}]}, version)["tools"]
    assert tools[0]["_meta"] == link
    content = {"uri": "ui://a/b", "text": "t", "_meta": {**META, "ui": {"csp": {}}}}
    assert shaped("resources/read", {"contents": [content]}, version)["contents"][0]["_meta"] == {"ui": {"csp": {}}}


@pytest.mark.parametrize("version", [V2024_11_05, V2025_03_26], ids=str)
def test_nothing_else_stays_in_meta_before_that_came(version):
    assert "_meta" not in shaped("tools/list", FULL["tools/list"], version)["tools"][0]
    assert "_meta" not in shaped("resources/read", FULL["resources/read"], version)["contents"][0]


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_a_tools_own_arguments_survive_whatever_they_are_called(version):
    tool = shaped("tools/list", FULL["tools/list"], version)["tools"][0]
    assert tool["inputSchema"] == TOOL["inputSchema"]
    assert tool.get("outputSchema", TOOL["outputSchema"]) == TOOL["outputSchema"]


@pytest.mark.parametrize(("version", "known"), [(one, one.order >= V2025_06_18.order) for one in VERSIONS], ids=str)
def test_structured_content_is_kept_as_it_is_where_it_exists(version, known):
    result = shaped("tools/call", FULL["tools/call"], version)
    assert result.get("structuredContent") == ({"title": 1} if known else None)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
@pytest.mark.parametrize("data", [[1], 5, "a", None, True], ids=repr)
def test_before_the_newest_version_structured_content_is_an_object(data, version):
    result = shaped("tools/call", {"content": [TEXT], "structuredContent": data}, version)
    assert "structuredContent" not in result
    assert len(result["content"]) == 1


@pytest.mark.parametrize("data", [[1], 5, "a", None, True], ids=repr)
def test_the_newest_version_takes_any_structured_content(data):
    result = shaped("tools/call", {"content": [], "structuredContent": data}, V2026_07_28)
    assert result["structuredContent"] == data


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
@pytest.mark.parametrize(
    "schema", [{"type": "array"}, {"anyOf": []}, {"$ref": "#/$defs/A"}, {"type": ["object", "null"]}, {}]
)
def test_before_the_newest_version_an_output_schema_is_of_an_object(schema, version):
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    assert "outputSchema" not in shaped("tools/list", {"tools": [tool]}, version)["tools"][0]


def test_audio_is_put_into_words_where_it_does_not_exist():
    block = shaped("tools/call", {"content": [AUDIO]}, V2024_11_05)["content"][0]
    assert block == {"type": "text", "text": "[audio/wav left out: this protocol version has no audio]"}


@pytest.mark.parametrize("version", VERSIONS[:2], ids=str)
def test_a_link_is_put_into_words_where_it_does_not_exist(version):
    block = shaped("tools/call", {"content": [LINK]}, version)["content"][0]
    assert block == {"type": "text", "text": "n: a:b"}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
@pytest.mark.parametrize("method", [name for name in FULL if METHODS[name].cacheable])
def test_the_handshake_era_has_no_caching_hints(method, version):
    result = shaped(method, {**FULL[method], "ttlMs": 1, "cacheScope": "public"}, version)
    assert {"ttlMs", "cacheScope"}.isdisjoint(result)


@pytest.mark.parametrize("method", FULL)
def test_every_result_of_the_newest_version_says_what_it_is_and_who_sent_it(method):
    result = shaped(method, FULL[method], V2026_07_28)
    assert result["resultType"] == "complete"
    assert result["_meta"][SERVER_INFO] == INFO


def test_what_stood_in_meta_stays_there():
    assert shaped("resources/list", FULL["resources/list"], V2026_07_28)["_meta"] == {**META, SERVER_INFO: INFO}


@pytest.mark.parametrize("method", FULL)
def test_only_what_is_cacheable_says_how_long(method):
    result = shaped(method, {}, V2026_07_28)
    assert ("ttlMs" in result, "cacheScope" in result) == (METHODS[method].cacheable,) * 2


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


def test_the_first_forms_have_no_mode_and_few_defaults():
    sent = shape_question("elicitation/create", FORM, V2025_06_18)
    fields = sent["requestedSchema"]["properties"]
    assert "mode" not in sent
    assert [name for name, field in fields.items() if "default" in field] == ["yes"]


def test_the_first_forms_name_choices_in_two_lists():
    field = shape_question("elicitation/create", FORM, V2025_06_18)["requestedSchema"]["properties"]["titled"]
    assert field == {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}


@schemas.requires_spec
@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
def test_sampling_fits_every_version(version):
    asked("sampling/createMessage", SAMPLING, version)


@schemas.requires_spec
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_progress_fits_every_version(version):
    params = {"progressToken": 1, "progress": 0.5, "total": 1, "message": "half"}
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
