"""The bench server through its public interface: every version, every message checked by the official schemas."""

import base64
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.everything.features.schemas import CONTACT_SCHEMA
from tests.servers.everything.peer import HANDSHAKES, VERSIONS, bench, called, listed, settled, text
from tests.wire import STATELESS, Wire

README = (Path(__file__).resolve().parents[3] / "servers" / "everything" / "README.md").read_text()
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")
"""Versions that are left to the full run: what they have is in a newer one as well."""
every_version = pytest.mark.parametrize(
    "version", [pytest.param(one, marks=pytest.mark.slow) if one in OLDER else one for one in VERSIONS]
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"text": "a"},
    "greet": {"name": "a"},
    "long_call": {"seconds": 0.01, "steps": 2},
    "slow_compute": {"seconds": 0},
    "confirm_delete": {"filename": "a"},
}
NOT_IN = {  # the first version with that question
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


@every_version
async def test_every_tool_answers(version: str) -> None:
    """Except tools that fail, run only as tasks, or ask a question that the version does not have."""
    async with bench(version) as peer:
        tools, failed = await listed(peer, "tools"), {}
        assert await text(peer, tools[0]["name"]) == "This is a simple text response for testing."
        for tool in tools:
            answer = await called(peer, tool["name"], ARGUMENTS.get(tool["name"]))
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
        for prompt in await listed(peer, "prompts"):
            arguments = {argument["name"]: "a:b" for argument in prompt.get("arguments", [])}
            answer = await settled(peer, "prompts/get", {"name": prompt["name"], "arguments": arguments})
            assert ("result" in answer) is known(prompt["name"], version), answer
        for resource in await listed(peer, "resources"):
            answer = await peer.request("resources/read", {"uri": resource["uri"]})
            assert answer["result"]["contents"], resource
        answer = await peer.request("resources/read", {"uri": "test://template/123/data"})
    assert answer["result"]["contents"][0]["text"] == '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'


async def test_the_server_process_enforces_the_result_limit() -> None:
    async with Wire([sys.executable, "-m", "servers.everything", "--max-result", "2000"]) as wire:
        await wire.initialize()
        call = {"name": "large_answer", "arguments": {"size": 2_000}}
        result = (await wire.request("tools/call", call))["result"]
    assert result["isError"]
    assert "limit of 2,000" in result["content"][0]["text"]


# The README


def rows(heading: str) -> list[list[str]]:
    """Returns the cells of all tables under a heading."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


async def test_the_readme_lists_all_features() -> None:
    async with bench(STATELESS) as peer:
        tools, prompts, skills = [await listed(peer, what) for what in ("tools", "prompts", "skills")]
        resources = [*await listed(peer, "resources"), *await listed(peer, "resourceTemplates")]
        assert tools == await listed(peer, "tools")
    assert rows("Tools") == [[f"`{tool['name']}`", tool["description"]] for tool in tools]
    named = [", ".join(f"`{argument['name']}`" for argument in prompt.get("arguments", [])) for prompt in prompts]
    assert rows("Prompts") == [
        [f"`{prompt['name']}`", arguments, prompt["description"]]
        for prompt, arguments in zip(prompts, named, strict=True)
    ]
    assert rows("Resources") == [
        [f"`{one.get('uri') or one['uriTemplate']}`", one.get("mimeType", ""), one["description"]]
        for one in resources
    ]
    roots = [skill["uri"].removesuffix("SKILL.md") for skill in skills]
    files = [
        ", ".join(f"`{one['uri'].removeprefix(root)}`" for one in skill["resources"])
        for skill, root in zip(skills, roots, strict=True)
    ]
    assert rows("Skills") == [
        [f"`{skill['frontmatter']['name']}`", named] for skill, named in zip(skills, files, strict=True)
    ]


# Answers


async def test_all_content_has_every_content_type() -> None:
    async with bench() as peer:
        content = (await called(peer, "all_content"))["result"]["content"]
        result = (await called(peer, "structured_answer", {"city": "Oslo"}))["result"]
    assert {block["type"] for block in content} == {"text", "image", "audio", "resource", "resource_link"}
    (image,) = (block for block in content if block["type"] == "image")
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
    assert result["structuredContent"] == {"city": "Oslo", "degrees": 21.5, "conditions": ["sunny", "calm"]}
    assert result["content"][0]["text"] == "Oslo: 21.5 degrees, sunny and calm"


async def test_large_answer_has_the_requested_size() -> None:
    async with bench() as peer:
        for size in (0, 1, 16, 17, 500_000):
            assert len(await text(peer, "large_answer", size=size)) == size


async def test_an_input_schema_keeps_every_keyword() -> None:
    async with bench() as peer:
        schemas = {tool["name"]: tool["inputSchema"] for tool in await listed(peer, "tools")}
    assert schemas["json_schema_2020_12_tool"] == CONTACT_SCHEMA
    assert schemas["test_x_mcp_header"]["properties"]["region"]["x-mcp-header"] == "Region"


async def test_fail_raises_the_requested_error() -> None:
    async with bench() as peer:
        for how, code in (("protocol", -31000), ("missing_resource", -32002), ("crash", -32603)):
            error = (await called(peer, "fail", {"how": how}))["error"]
            assert error["code"] == code
            assert "never sees" not in error["message"]


# Notifications


@every_version
async def test_progress_increases_under_the_token_of_the_call(version: str) -> None:
    async with bench(version) as peer:
        await called(peer, "test_tool_with_progress", progressToken="t")
        reports = [one["params"] for one in peer.others]
    progress = [(one["progressToken"], one["progress"], one["total"]) for one in reports]
    assert progress == [("t", 0, 100), ("t", 50, 100), ("t", 100, 100)]


async def test_log_messages_follow_the_level_of_the_session() -> None:
    for version in HANDSHAKES:
        async with bench(version) as peer:
            await called(peer, "test_logging_tool")
            assert peer.others == [], version  # without a level, a session gets no messages
            await peer.request("logging/setLevel", {"level": "error"})
            await called(peer, "test_logging_tool")
            levels = [one["params"]["level"] for one in peer.others]
        assert levels == ["error", "critical", "alert", "emergency"], version


async def test_log_messages_follow_the_level_of_the_request() -> None:
    async with bench(STATELESS) as peer:
        await called(peer, "test_logging_tool")
        assert peer.others == []
        await called(peer, "test_logging_tool", **{"io.modelcontextprotocol/logLevel": "alert"})
    assert [one["params"]["level"] for one in peer.others] == ["alert", "emergency"]


@pytest.mark.parametrize(
    ("tool", "what", "name"),
    [
        ("test_trigger_tool_change", "tools", "extra_tool"),
        ("test_trigger_prompt_change", "prompts", "extra_prompt"),
        ("trigger_resource_change", "resources", "extra_resource"),
    ],
)
async def test_a_changed_list_is_announced_and_changes_back(tool: str, what: str, name: str) -> None:
    async with bench() as peer:
        before = await listed(peer, what)
        await called(peer, tool)
        await peer.other(f"notifications/{what}/list_changed")
        changed = await listed(peer, what)
        assert [one for one in changed if one["name"] != name] == before
        assert len(changed) == len(before) + 1
        await called(peer, tool)
        assert await listed(peer, what) == before


async def test_the_watched_resource_sends_updates_to_subscribers() -> None:
    uri = {"uri": "test://watched-resource"}
    async with bench() as peer:
        await peer.request("resources/subscribe", uri)
        before = (await peer.request("resources/read", uri))["result"]
        await called(peer, "trigger_resource_update")
        assert (await peer.other("notifications/resources/updated"))["params"] == uri
        assert (await peer.request("resources/read", uri))["result"] != before
        answer = await peer.request("resources/subscribe", {"uri": "test://static-text"})
    assert answer["error"]["code"] == -32002


# Questions


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
async def test_elicited_values_are_returned(version: str) -> None:
    async with bench(version) as peer:
        defaults = await text(peer, "test_elicitation_sep1034_defaults")
        chosen = await text(peer, "test_elicitation_sep1330_enums")
    assert 'action=accept, content={"name":"John Doe","age":30,"score":95.5' in defaults
    assert '"untitledSingle":"option1","titledSingle":"value1","legacyEnum":"opt1"' in chosen


async def test_each_url_elicitation_has_a_new_id() -> None:
    ids = set()
    async with bench() as peer:
        for _ in range(2):
            call = await peer.start("elicit_visit")
            question = await peer.other("elicitation/create")
            ids.add(question["params"]["elicitationId"])
            await peer.reply(question["id"], {"action": "accept"})
            answer = await peer.answer(call)
            assert answer["result"]["content"][0]["text"] == "The user has opened the page."
    assert len(ids) == 2


async def test_input_requests_fit_the_client_capabilities() -> None:
    tool = "test_input_required_result_capabilities"
    async with bench(STATELESS, {}) as peer:
        assert (await peer.call(tool))["result"]["resultType"] == "complete"
        peer.capabilities = {"sampling": {}}
        requests = (await peer.call(tool))["result"]["inputRequests"]
    assert [one["method"] for one in requests.values()] == ["sampling/createMessage"]


async def test_a_tampered_state_is_refused() -> None:
    call = {"name": "test_input_required_result_tampered_state", "arguments": {}}
    async with bench(STATELESS) as peer:
        result = (await peer.request("tools/call", call))["result"]
        confirmed = {"confirm": {"action": "accept", "content": {"ok": True}}}
        state = f"{result['requestState']}-TAMPERED"
        answer = await peer.request("tools/call", {**call, "inputResponses": confirmed, "requestState": state})
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
async def test_a_missing_capability_error_names_it(version: str) -> None:
    async with bench(version) as peer:
        assert await text(peer, "test_missing_capability") == "The client can sample."
        if version == STATELESS:
            peer.capabilities = {}
            error = (await peer.call("test_missing_capability"))["error"]
            assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"sampling": {}}})


async def test_arguments_of_prompts_and_templates_are_completed() -> None:
    prompt = {"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}}
    template = {"ref": {"type": "ref/resource", "uri": "test://template/{id}/data"}}
    async with bench() as peer:
        tests = await peer.request("completion/complete", {**prompt, "argument": {"name": "arg1", "value": "test"}})
        ids = await peer.request("completion/complete", {**template, "argument": {"name": "id", "value": "4"}})
    assert tests["result"]["completion"]["values"] == ["test1", "test2", "testing"]
    assert ids["result"]["completion"]["values"] == ["456"]


async def test_a_long_call_can_be_cancelled() -> None:
    async with bench() as peer:
        await peer.cancel(await peer.start("long_call", seconds=1000, steps=1000))
        with anyio.fail_after(30):
            assert await peer.text("test_simple_text")
