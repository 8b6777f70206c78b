"""Arguments and results, checked against the schemas of listed tools."""

import sys
from contextlib import nullcontext
from typing import Any

import anyio
import pytest

from shared.client.calls.typed_calls import TypedCalls
from shared.client.schemas.checks import MAX_TOOLS, ToolChecks
from shared.errors import InvalidArguments, InvalidResult
from shared.protocol.types.tools import Tool
from shared.protocol.wire.jsonrpc import Response
from tests.shared.client.calls.test_typed_calls import Answers
from tests.shared.client.connection.test_opening import Script, connected
from tests.shared.client.small import Small

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])
PRICE = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}


def tool(name: str = "buy", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": PRICE, **more}


def listed(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"tools": list(tools)}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": content, **more}


GOOD, BAD = result({"price": 1}), result({"price": "1"})
PROMISING = listed(tool(outputSchema=PRICE))


# Results


async def test_a_result_that_matches_its_schema_is_returned() -> None:
    calls = TypedCalls(Answers(PROMISING, GOOD))
    await calls.list_tools()
    assert (await calls.call_tool("buy")).structured_content == {"price": 1}


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (BAD, "structuredContent.price"),
        (result([]), "structuredContent"),
        (result(None), "structuredContent"),
        ({"content": []}, "structuredContent"),
    ],
)
async def test_a_result_that_violates_its_schema_is_an_error_with_its_path(answer: dict[str, Any], path: str) -> None:
    request = Answers(PROMISING, answer, PROMISING)
    calls = TypedCalls(request)
    await calls.list_tools()
    with pytest.raises(InvalidResult, match=f"invalid at {path}: ") as caught:
        await calls.call_tool("buy")
    assert (caught.value.method, caught.value.path, caught.value.result) == ("tools/call", path, answer)


async def test_a_result_is_checked_against_a_changed_output_schema() -> None:
    request = Answers(PROMISING, BAD, listed(tool()), BAD)
    calls = TypedCalls(request)
    await calls.list_tools()
    assert (await calls.call_tool("buy")).structured_content == {"price": "1"}
    await calls.call_tool("buy")
    assert [method for method, _ in request.asked] == ["tools/list", "tools/call", "tools/list", "tools/call"]


async def test_a_tool_error_is_not_checked() -> None:
    calls = TypedCalls(Answers(PROMISING, {"content": [], "isError": True}))
    await calls.list_tools()
    assert (await calls.call_tool("buy")).is_error


async def test_the_result_of_an_unlisted_tool_is_not_checked() -> None:
    assert (await TypedCalls(Answers(BAD)).call_tool("buy")).structured_content == {"price": "1"}


async def test_a_result_with_an_unusable_schema_is_returned() -> None:
    calls = TypedCalls(Answers(listed(tool(outputSchema={"$ref": "https://a.example"})), BAD))
    await calls.list_tools()
    for _ in range(2):
        assert (await calls.call_tool("buy")).structured_content == {"price": "1"}


async def test_a_changed_output_schema_replaces_the_cached_one() -> None:
    lists = [{**PROMISING, "ttlMs": 3_600_000, "cacheScope": "private"}, listed(tool())]
    script = Script(
        discover=lambda request: Response(request.id, {"supportedVersions": ["2026-07-28"], "capabilities": {}}),
        list=lambda request: Response(request.id, lists.pop(0)),
        call=lambda request: Response(request.id, BAD),
    )
    async with connected(script, mode="stateless") as client:
        await client.list_tools()
        assert (await client.call_tool("buy")).structured_content == {"price": "1"}
    assert script.methods[1:] == ["tools/list", "tools/call", "tools/list"]


@pytest.mark.parametrize(("version", "is_wrong"), [("2025-03-26", False), ("2025-06-18", True)])
async def test_results_of_versions_without_output_schemas_are_not_checked(version: str, is_wrong: bool) -> None:
    opened = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {}}
    script = Script(
        initialize=lambda request: Response(request.id, opened),
        list=lambda request: Response(request.id, PROMISING),
        call=lambda request: Response(request.id, {"content": []}),
    )
    async with connected(script, mode="handshake") as client:
        await client.list_tools()
        with pytest.raises(InvalidResult) if is_wrong else nullcontext():
            await client.call_tool("buy")


class Silent(Answers):
    """Never answers a list after its answers are used up."""

    async def __call__(self, method: str, *args: Any, **how: Any) -> dict[str, Any]:
        if method == "tools/list" and "tools/list" in dict(self.asked):
            await anyio.sleep_forever()
        return await super().__call__(method, *args, **how)


async def test_an_invalid_result_is_raised_even_if_the_list_times_out() -> None:
    calls = TypedCalls(Silent(PROMISING, BAD))
    await calls.list_tools()
    with anyio.fail_after(5), pytest.raises(InvalidResult):
        await calls.call_tool("buy", timeout=0.01)


async def test_a_check_of_arguments_times_out_without_a_list() -> None:
    request = Silent(PROMISING)
    request.asked.append(("tools/list", {}))
    with anyio.fail_after(5), pytest.raises(TimeoutError, match=r"list its tools within 0\.01 s"):
        await TypedCalls(request, check_arguments=True).call_tool("buy", timeout=0.01)


# Arguments


async def test_arguments_are_checked_before_they_are_sent() -> None:
    request = Answers(listed(tool()), listed(tool()), listed(tool()), GOOD)
    calls = TypedCalls(request, check_arguments=True)
    with pytest.raises(InvalidArguments, match=r'arguments of buy are invalid at price: "1" is not of type "number"'):
        await calls.call_tool("buy", {"price": "1"})
    with pytest.raises(InvalidArguments, match='invalid at the top level: "price" is a required property'):
        await calls.call_tool("buy")
    await calls.call_tool("buy", {"price": 1})
    assert [method for method, _ in request.asked] == [*["tools/list"] * 3, "tools/call"]


async def test_arguments_are_not_checked_by_default() -> None:
    async with Small().connected() as client:
        await client.list_tools()
        assert (await client.call_tool("add", {"a": "x"})).is_error


async def test_arguments_of_an_unlisted_tool_are_sent_unchecked() -> None:
    request = Answers(listed(), GOOD)
    await TypedCalls(request, check_arguments=True).call_tool("buy")
    assert [method for method, _ in request.asked] == ["tools/list", "tools/call"]


def test_checking_arguments_requires_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    ToolChecks(arguments=False)
    with pytest.raises(ModuleNotFoundError):
        ToolChecks(arguments=True)


# The cache of schemas


def test_a_schema_is_compiled_once() -> None:
    checks = ToolChecks(arguments=False)
    one = Tool.model_validate(tool(outputSchema=PRICE))
    checks.learn([one])
    checks.check_result("buy", GOOD)
    # A second compilation would show only in time, so this reads the cached object.
    ready = checks._outputs["buy"].checked
    checks.learn([one.model_copy()])
    checks.check_result("buy", GOOD)
    assert ready is not None
    assert checks._outputs["buy"].checked is ready


def test_the_oldest_tools_are_forgotten() -> None:
    checks = ToolChecks(arguments=False)
    checks.learn(Tool.model_validate(tool(str(one), outputSchema=PRICE)) for one in range(MAX_TOOLS + 1))
    checks.check_result("0", BAD)
    with pytest.raises(InvalidResult):
        checks.check_result("1", BAD)


def test_a_newline_in_a_tool_name_is_escaped_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    checks = ToolChecks(arguments=False)
    checks.learn([Tool(name="a\nb", input_schema={}, output_schema={"$ref": "elsewhere"})])
    checks.check_result("a\nb", {"structuredContent": 1})
    assert [r"a\nb" in record.getMessage() for record in caplog.records] == [True]
