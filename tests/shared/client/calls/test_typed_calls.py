"""`TypedCalls`: with the real server loop, and with servers that send invalid results."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.client.calls.raw_calls import MAX_PAGES
from shared.client.calls.typed_calls import TypedCalls
from shared.client.options import Progress
from shared.errors import InvalidResult, McpError, PeerError
from shared.protocol.types.content import OtherContent, TextContent, TextResourceContents
from shared.protocol.types.prompts import PromptReference, ResourceReference
from tests.shared.client.small import Small

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])
EVERY_MODE = pytest.mark.parametrize("mode", ["handshake", "stateless", "2024-11-05"])


class Answers:
    """Answers each request with the next of `answers`, and records the requests."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers: list[dict[str, Any] | Exception] = list(answers)

    async def __call__(
        self, method: str, params: Any = None, *, timeout: float | None = 60, on_progress: Progress | None = None
    ) -> dict[str, Any]:
        self.asked.append((method, params))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


# Calls


@EVERY_MODE
async def test_lists_return_models(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        add = (await client.list_tools())[0]
        assert (add.name, add.input_schema["required"]) == ("add", ["a", "b"])
        assert [resource.uri for resource in await client.list_resources()] == ["memo://one"]
        assert await client.list_resource_templates() == []
        prompt = (await client.list_prompts())[0]
        assert prompt.arguments is not None
        assert (prompt.name, prompt.arguments[0].name) == ("plan", "goal")


@EVERY_MODE
async def test_calls_return_models(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert (result.text, result.is_error) == ("5", None)
        read = await client.read_resource("memo://one")
        assert isinstance(read.contents[0], TextResourceContents)
        assert read.contents[0].text == "the text"
        prompt = await client.get_prompt("plan", {"goal": "a party"})
        assert prompt.messages[0].content == TextContent(text="Plan a party.")


async def test_prompt_arguments_must_be_strings() -> None:
    async with Small().connected() as client:
        with pytest.raises(TypeError, match="the argument 'goal' of the prompt 'plan' must be a string, not int"):
            await client.get_prompt("plan", {"goal": 3})  # type: ignore[dict-item]


async def test_a_failed_tool_returns_a_result_with_is_error() -> None:
    async with Small().connected() as client:
        result = await client.call_tool("fail")
    assert (result.text, result.is_error) == ("not today", True)


@ERAS
async def test_complete_returns_completions_of_an_argument(mode: str) -> None:
    async def goals(_ctx: object, typed: str, _settled: dict[str, str]) -> list[str]:
        return [f"{typed}rty", f"{typed}rade"]

    small = Small()
    small.app.completes("prompt", "plan", "goal")(goals)
    async with small.connected(mode=mode) as client:
        completion = await client.complete(PromptReference(name="plan"), "goal", "pa")
    assert completion.values == ["party", "parade"]


async def test_settled_arguments_are_sent_with_a_completion() -> None:
    request = Answers({"completion": {"values": ["x"], "total": 7, "hasMore": True}})
    completion = await TypedCalls(request).complete(ResourceReference(uri="a://{b}/{c}"), "c", "", {"b": "1"})
    assert (completion.total, completion.has_more) == (7, True)
    assert request.asked[0][1] == {
        "ref": {"type": "ref/resource", "uri": "a://{b}/{c}"},
        "argument": {"name": "c", "value": ""},
        "context": {"arguments": {"b": "1"}},
    }


@EVERY_MODE
async def test_ping_works_in_every_mode(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        await client.ping()


@ERAS
async def test_the_log_level_can_change(mode: str) -> None:
    seen: list[Any] = []
    options: dict[str, Any] = {"mode": mode, "log_level": "error", "on_notification": lambda *one: seen.append(one)}
    async with Small().connected(**options) as client:
        await client.call_tool("count", {"to": 1})
        assert seen == []
        await client.set_log_level("info")
        await client.call_tool("count", {"to": 1})
    assert seen == [("notifications/message", {"level": "warning", "data": "counted"})]


async def test_set_log_level_requires_the_logging_capability() -> None:
    small = Small()
    small.app.capabilities = {}
    async with small.connected(mode="handshake") as client:
        with pytest.raises(McpError, match="does not declare"):
            await client.set_log_level("info")


# Pages


async def test_iter_tools_requests_a_page_only_when_needed() -> None:
    request = Answers({"tools": [tool("a"), tool("b")], "nextCursor": ""}, {"tools": [tool("c")]})
    names = []
    async for one in TypedCalls(request).iter_tools():
        names.append(one.name)
        assert len(request.asked) == (2 if one.name == "c" else 1)
    assert names == ["a", "b", "c"]
    assert request.asked == [("tools/list", {}), ("tools/list", {"cursor": ""})]


GONE = PeerError("no such cursor", code=-32602)


async def test_a_refused_cursor_reads_the_list_again() -> None:
    first = {"tools": [tool("a")], "nextCursor": "1"}
    request = Answers(first, GONE, {"tools": [tool("b")]})
    assert [one.name for one in await TypedCalls(request).list_tools()] == ["b"]
    assert [params for _, params in request.asked] == [{}, {"cursor": "1"}, {}]


@pytest.mark.parametrize("answers", [[GONE, GONE, {"tools": []}], [PeerError("no", code=-32603), {"tools": []}]])
async def test_a_list_is_read_again_only_once(answers: list[Any]) -> None:
    with pytest.raises(PeerError):
        await TypedCalls(Answers(*answers)).list_tools()


async def test_a_repeated_cursor_ends_pagination_with_an_error() -> None:
    request = Answers(*({"prompts": [], "nextCursor": cursor} for cursor in "aba"))
    with pytest.raises(McpError, match="pagination of prompts/list does not end"):
        await TypedCalls(request).list_prompts()
    assert len(request.asked) == 3


async def test_more_than_1000_pages_are_an_error() -> None:
    request = Answers(*({"resources": [], "nextCursor": str(number)} for number in range(MAX_PAGES + 1)))
    with pytest.raises(McpError, match="more than 1000 pages"):
        await TypedCalls(request).list_resources()


# Invalid results


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("list_tools", {"tools": [tool("a"), {"name": "b"}]}, "tools.1.inputSchema"),
    ("list_tools", {"tools": [tool("a", annotations={"readOnlyHint": "yes"})]}, "tools.0.annotations.readOnlyHint"),
    ("list_tools", {}, "tools"),
    ("list_tools", {"tools": [], "nextCursor": 3}, "nextCursor"),
    ("list_resources", {"resources": [{"uri": "a://b"}]}, "resources.0.name"),
    ("list_resource_templates", {"resourceTemplates": {}}, "resourceTemplates"),
    ("list_prompts", {"prompts": [{"name": "a", "arguments": [{}]}]}, "prompts.0.arguments.0.name"),
]


@pytest.mark.parametrize(("call", "result", "path"), WRONG)
async def test_an_invalid_list_is_an_error_with_its_path(call: str, result: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidResult, match=f"invalid at {path}: ") as caught:
        await getattr(TypedCalls(Answers(result)), call)()
    assert (caught.value.path, caught.value.result) == (path, result)


BLOCKS: list[tuple[dict[str, Any], str]] = [
    ({"type": "text"}, "content.0.text"),
    ({"type": "image", "data": "AA=="}, "content.0.mimeType"),
    ({"text": "of no type"}, "content.0"),
    ({"type": "resource", "resource": {"uri": "a://b"}}, "content.0.resource.text"),
    ({"type": "resource_link", "uri": "a://b", "name": 1}, "content.0.name"),
]


@pytest.mark.parametrize(("block", "path"), BLOCKS)
async def test_an_invalid_content_block_is_an_error_with_its_path(block: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidResult) as caught:
        await TypedCalls(Answers({"content": [block]})).call_tool("a")
    assert (caught.value.method, caught.value.path) == ("tools/call", path)


async def test_a_content_block_of_an_unknown_type_is_kept() -> None:
    block = {"type": "chart", "points": [1, 2], "annotations": {"priority": 1}}
    result = await TypedCalls(Answers({"content": [block, {"type": "text", "text": "sales"}]})).call_tool("a")
    assert result.text == "sales"
    chart = result.content[0]
    assert isinstance(chart, OtherContent)
    assert (chart.type, chart.model_extra, chart.to_wire()) == ("chart", {"points": [1, 2]}, block)


async def test_unknown_keys_are_ignored() -> None:
    request = Answers({"resultType": "complete", "tools": [tool("a", colour="red")], "ttlMs": "soon"})
    assert [one.name for one in await TypedCalls(request).list_tools()] == ["a"]


CALLS: list[Callable[[TypedCalls], Awaitable[Any]]] = [
    lambda calls: calls.list_tools(),
    lambda calls: calls.list_resources(),
    lambda calls: calls.list_resource_templates(),
    lambda calls: calls.list_prompts(),
    lambda calls: calls.call_tool("a"),
    lambda calls: calls.read_resource("a://b"),
    lambda calls: calls.get_prompt("a"),
    lambda calls: calls.complete(PromptReference(name="a"), "b", ""),
]
KEYS = [
    "tools",
    "resources",
    "prompts",
    "contents",
    "content",
    "messages",
    "completion",
    "name",
    "type",
    "text",
    "uri",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["text", "resource", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
)


@pytest.mark.slow
@given(result=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), call=st.sampled_from(CALLS))
async def test_any_json_is_a_result_or_an_invalid_result(result: dict[str, Any], call: Any) -> None:
    with suppress(InvalidResult):
        await call(TypedCalls(Answers(result)))
