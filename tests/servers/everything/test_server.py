"""The bench server through its front door: every version, every message checked by the official schemas."""

import base64
from typing import Any

import anyio
import pytest

from servers.everything.features.schemas import CONTACT_SCHEMA
from tests.servers.everything.peer import HANDSHAKES, STATELESS, VERSIONS, Peer, bench

pytestmark = pytest.mark.slow
MIDDLE = ("2025-03-26", "2025-06-18")
"""Versions that are left to the full run: what they have is in the oldest or in the newest as well."""
every_version = pytest.mark.parametrize(
    "version", [pytest.param(one, marks=pytest.mark.slow) if one in MIDDLE else one for one in VERSIONS]
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"text": "a"},
    "greet": {"name": "a"},
    "long_call": {"seconds": 0.01, "steps": 2},
    "slow_compute": {"seconds": 0},
    "confirm_delete": {"filename": "a"},
}
NOT_IN = {  # the version that a question is older than
    "elicit_every_field": "2025-11-25",
    "elicit_visit": "2025-11-25",
    "sample_with_tools": "2025-11-25",
    "test_elicitation": "2025-06-18",
    "test_elicitation_sep1034_defaults": "2025-06-18",
    "test_elicitation_sep1330_enums": "2025-11-25",
    "test_input_required_result_capabilities": "2025-06-18",
    "test_input_required_result_elicitation": "2025-06-18",
    "test_input_required_result_multi_round": "2025-06-18",
    "test_input_required_result_multiple_inputs": "2025-06-18",
    "test_input_required_result_prompt": "2025-06-18",
    "test_input_required_result_request_state": "2025-06-18",
    "test_input_required_result_tampered_state": "2025-06-18",
    "test_streaming_elicitation": "2025-06-18",
    "test_tool_with_task": "2025-06-18",
}
TASKS_ONLY = ("confirm_delete", "failing_job", "multi_input", "protocol_error_job")
REFUSED = {"2025-11-25": -32601, "2026-07-28": -32021}
"""How a client is refused that asks for no task, or has none; older ones by -32600."""


def known(name: str, version: str) -> bool:
    return version >= NOT_IN.get(name, "")


async def next_notification(peer: Peer, method: str) -> dict[str, Any]:
    while not any(one["method"] == method for one in peer.wire.notifications):
        await peer.wire._keep(await peer.wire.receive())
    return next(one for one in peer.wire.notifications if one["method"] == method)


@every_version
async def test_every_tool_answers(version: str) -> None:
    """With a result, but for tools that fail, run as tasks only, or ask what the version has no question for."""
    async with bench(version) as peer:
        failed = {}
        for tool in await peer.listed("tools"):
            answer = await peer.call(tool["name"], ARGUMENTS.get(tool["name"]))
            if "error" in answer:
                failed[tool["name"]] = answer["error"]["code"]
            elif answer["result"].get("isError"):
                failed[tool["name"]] = "isError"
    expected = {name: -32600 for name in NOT_IN if not known(name, version) and "prompt" not in name}
    expected |= dict.fromkeys(TASKS_ONLY, REFUSED.get(version, -32600))
    assert failed == {**expected, "fail": -31000, "test_error_handling": "isError"}


@every_version
async def test_every_prompt_and_resource_answers(version: str) -> None:
    async with bench(version) as peer:
        for prompt in await peer.listed("prompts"):
            arguments = {argument["name"]: "a:b" for argument in prompt.get("arguments", [])}
            answer = await peer.settle("prompts/get", {"name": prompt["name"], "arguments": arguments})
            assert ("result" in answer) is known(prompt["name"], version), answer
        for resource in await peer.listed("resources"):
            answer = await peer.request("resources/read", {"uri": resource["uri"]})
            assert answer["result"]["contents"], resource
        answer = await peer.request("resources/read", {"uri": "test://template/123/data"})
    assert answer["result"]["contents"][0]["text"] == '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'


@every_version
async def test_the_first_tool_takes_nothing_and_succeeds(version: str) -> None:
    async with bench(version) as peer:
        first = (await peer.listed("tools"))[0]["name"]
        assert await peer.text(first) == "This is a simple text response for testing."


async def test_a_list_is_the_same_each_time() -> None:
    async with bench(STATELESS) as peer:
        assert await peer.listed("tools") == await peer.listed("tools") == await peer.listed("tools")


# Answers


async def test_every_kind_of_content_is_there() -> None:
    async with bench() as peer:
        content = (await peer.call("all_content"))["result"]["content"]
    assert {block["type"] for block in content} == {"text", "image", "audio", "resource", "resource_link"}
    (image,) = (block for block in content if block["type"] == "image")
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")


async def test_data_and_text_say_the_same() -> None:
    async with bench() as peer:
        result = (await peer.call("structured_answer", {"city": "Oslo"}))["result"]
    assert result["structuredContent"] == {"city": "Oslo", "degrees": 21.5, "conditions": ["sunny", "calm"]}
    assert result["content"][0]["text"] == "Oslo: 21.5 degrees, sunny and calm"


@pytest.mark.parametrize("size", [0, 1, 16, 17, 500_000])
async def test_an_answer_has_the_size_asked_for(size: int) -> None:
    async with bench() as peer:
        assert len(await peer.text("large_answer", {"size": size})) == size


async def test_an_answer_over_the_operators_limit_is_an_error() -> None:
    async with bench("2025-11-25", "--max-result", "2000") as peer:
        result = (await peer.call("large_answer", {"size": 2_000}))["result"]
    assert result["isError"]
    assert "limit of 2,000" in result["content"][0]["text"]


async def test_an_input_schema_keeps_every_keyword() -> None:
    async with bench() as peer:
        schemas = {tool["name"]: tool["inputSchema"] for tool in await peer.listed("tools")}
    assert schemas["json_schema_2020_12_tool"] == CONTACT_SCHEMA
    assert schemas["test_x_mcp_header"]["properties"]["region"]["x-mcp-header"] == "Region"


@pytest.mark.parametrize(("how", "code"), [("protocol", -31000), ("missing_resource", -32002), ("crash", -32603)])
async def test_a_failure_is_the_one_asked_for(how: str, code: int) -> None:
    async with bench() as peer:
        error = (await peer.call("fail", {"how": how}))["error"]
    assert error["code"] == code
    assert "never sees" not in error["message"]


# Notifications


@every_version
async def test_progress_grows_under_the_callers_token(version: str) -> None:
    async with bench(version) as peer:
        await peer.call("test_tool_with_progress", progressToken="t")
        reports = [one["params"] for one in peer.wire.notifications]
    assert [(one["progressToken"], one["progress"], one["total"]) for one in reports] == [
        ("t", 0, 100),
        ("t", 50, 100),
        ("t", 100, 100),
    ]


@pytest.mark.parametrize("version", HANDSHAKES)
async def test_log_messages_come_from_the_level_that_was_set(version: str) -> None:
    async with bench(version) as peer:
        await peer.request("logging/setLevel", {"level": "error"})
        await peer.call("test_logging_tool")
        levels = [one["params"]["level"] for one in peer.wire.notifications]
    assert levels == ["error", "critical", "alert", "emergency"]


@pytest.mark.parametrize("version", HANDSHAKES)
async def test_who_never_asked_for_log_messages_gets_none(version: str) -> None:
    async with bench(version) as peer:
        await peer.call("test_logging_tool")
        assert not peer.wire.notifications


async def test_log_messages_come_from_the_level_of_the_call() -> None:
    async with bench(STATELESS) as peer:
        await peer.call("test_logging_tool")
        assert not peer.wire.notifications
        await peer.call("test_logging_tool", **{"io.modelcontextprotocol/logLevel": "alert"})
    assert [one["params"]["level"] for one in peer.wire.notifications] == ["alert", "emergency"]


@pytest.mark.parametrize(
    ("tool", "what", "name"),
    [
        ("test_trigger_tool_change", "tools", "extra_tool"),
        ("test_trigger_prompt_change", "prompts", "extra_prompt"),
        ("trigger_resource_change", "resources", "extra_resource"),
    ],
)
async def test_a_list_changes_and_changes_back(tool: str, what: str, name: str) -> None:
    async with bench() as peer:
        before = await peer.listed(what)
        await peer.call(tool)
        await next_notification(peer, f"notifications/{what}/list_changed")
        changed = await peer.listed(what)
        assert [one for one in changed if one["name"] != name] == before
        assert len(changed) == len(before) + 1
        await peer.call(tool)
        assert await peer.listed(what) == before


async def test_the_watched_resource_tells_its_subscribers() -> None:
    uri = {"uri": "test://watched-resource"}
    async with bench() as peer:
        await peer.request("resources/subscribe", uri)
        before = await peer.request("resources/read", uri)
        await peer.call("trigger_resource_update")
        assert (await next_notification(peer, "notifications/resources/updated"))["params"] == uri
        assert await peer.request("resources/read", uri) != before
        answer = await peer.request("resources/subscribe", {"uri": "test://static-text"})
    assert answer["error"]["code"] == -32002


# Questions


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
async def test_a_form_comes_back_filled_in(version: str) -> None:
    async with bench(version) as peer:
        told = await peer.text("test_elicitation_sep1034_defaults")
        chosen = await peer.text("test_elicitation_sep1330_enums")
    assert 'action=accept, content={"name":"John Doe","age":30,"score":95.5' in told
    assert '"untitledSingle":"option1","titledSingle":"value1","legacyEnum":"opt1"' in chosen


async def test_a_page_to_visit_has_an_id_of_its_own_each_time() -> None:
    async with bench() as peer:
        assert await peer.text("elicit_visit") == await peer.text("elicit_visit") == "The user has opened the page."
        ids = {asked["params"]["elicitationId"] for asked in peer.wire.server_requests}
    assert len(ids) == 2


async def test_only_what_the_client_can_do_is_asked() -> None:
    call = {"name": "test_input_required_result_capabilities"}
    async with bench(STATELESS) as peer:
        nothing = await peer.wire.stateless("tools/call", call)
        sampling = await peer.wire.stateless("tools/call", call, capabilities={"sampling": {}})
    assert nothing["result"]["resultType"] == "complete"
    assert [one["method"] for one in sampling["result"]["inputRequests"].values()] == ["sampling/createMessage"]


async def test_a_state_that_was_changed_is_refused() -> None:
    call = {"name": "test_input_required_result_tampered_state", "arguments": {}}
    async with bench(STATELESS) as peer:
        asked = (await peer.request("tools/call", call))["result"]
        confirmed = {"confirm": {"action": "accept", "content": {"ok": True}}}
        state = f"{asked['requestState']}-TAMPERED"
        answer = await peer.request("tools/call", {**call, "inputResponses": confirmed, "requestState": state})
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
async def test_a_missing_capability_is_named(version: str) -> None:
    call = {"name": "test_missing_capability"}
    async with bench(version) as peer:
        if version == STATELESS:
            answer = await peer.wire.stateless("tools/call", call)
            assert answer["error"]["code"] == -32021
            assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
        assert (await peer.request("tools/call", call))["result"]["content"][0]["text"] == "The client can sample."


async def test_arguments_of_prompts_and_templates_are_completed() -> None:
    prompt = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    template = {"type": "ref/resource", "uri": "test://template/{id}/data"}
    async with bench() as peer:
        tests = await peer.request(
            "completion/complete", {"ref": prompt, "argument": {"name": "arg1", "value": "test"}}
        )
        ids = await peer.request("completion/complete", {"ref": template, "argument": {"name": "id", "value": "4"}})
    assert tests["result"]["completion"]["values"] == ["test1", "test2", "testing"]
    assert ids["result"]["completion"]["values"] == ["456"]


async def test_a_long_call_can_be_cancelled() -> None:
    async with bench() as peer:
        call = {"name": "long_call", "arguments": {"seconds": 1000, "steps": 1000}}
        await peer.wire.send({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": call})
        await peer.wire.notify("notifications/cancelled", {"requestId": "long"})
        with anyio.fail_after(30):
            assert await peer.text("test_simple_text")
    assert "long" not in peer.wire.responses
