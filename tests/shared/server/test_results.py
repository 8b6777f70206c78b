"""What a tool's function returns, as a result: text, data, or content as it is."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import pytest
from pydantic import BaseModel

from shared import (
    CallToolResult,
    Content,
    Data,
    ImageContent,
    Implementation,
    ResourceLink,
    Server,
    Text,
    TextContent,
)
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.errors import DeclarationError, ToolError
from shared.protocol.wire.codec import encode
from shared.protocol.wire.jsonrpc import Response
from shared.server.results import Result, content_of
from shared.testing import connected
from tests.contributing import names_of
from tests.shared.client.small import End
from tests.shared.server.peer import ERAS, PATIENCE, talking

PLENTY = 10_000
TEXT = {"type": "text", "text": "hello"}
IMAGE = ImageContent.of(b"x", "image/png")


class Size(BaseModel):
    width: int
    depth: float | None = None


@dataclass
class Weight:
    grams: int


def sent(value, returns, limit=PLENTY):
    return Result(returns, "tool 'a'").to_wire(value, limit)


def test_content_passes_as_it_is():
    for value, content in (
        ("hello", [TEXT]),
        ("", [{"type": "text", "text": ""}]),
        (None, []),
        ([], []),
        (TextContent(text="hello"), [TEXT]),
        (["hello", TextContent(text="hello")], [TEXT, TEXT]),
        (("hello", None, ["hello"]), [TEXT, TEXT]),
        (IMAGE, [{"type": "image", "data": "eA==", "mimeType": "image/png"}]),
        (ResourceLink(uri="a:b", name="n"), [{"type": "resource_link", "uri": "a:b", "name": "n"}]),
    ):
        assert content_of(value) == content
    for value in (5, {"a": 1}, b"bytes", object(), Size(width=1)):
        with pytest.raises(TypeError, match="is not content"):
            content_of(value)


def test_text_has_no_schema_and_no_structure():
    assert Result(str, "tool 'a'").schema is None
    assert sent("hello", str) == {"content": [TEXT]}


@pytest.mark.parametrize(
    ("value", "returns"),
    [
        (None, str),
        ("c", Literal["a", "b"]),
        (["a", None], list[str | TextContent]),
        (("a",), tuple[str, TextContent]),
        ("text", TextContent),
        ("text", None.__class__),
        (object(), Any),
    ],
)
def test_content_that_is_not_of_its_declared_type_is_never_sent(value: Any, returns: Any) -> None:
    with pytest.raises(ToolError, match=r"tool 'a' returned \w+, but declares "):
        sent(value, returns)


@pytest.mark.parametrize(
    ("value", "returns", "texts"),
    [
        ("a", Literal["a", "b"], ["a"]),
        (None, str | None, []),
        ("a", Annotated[str, "about"], ["a"]),
        ({"a": 1}, Any, ['{"a":1}']),
        ([1, "b"], Any, ['[1,"b"]']),
        ([{"a": 1}, 2], list[Any], ['[{"a":1},2]']),
        ([{"a": 1}, TextContent(text="hello")], list[Any], ['{"a":1}', "hello"]),
        (5, Any, ["5"]),
        ("text", Any, ["text"]),
    ],
)
def test_what_is_declared_as_anything_is_sent_as_text(value: Any, returns: Any, texts: list[str]) -> None:
    assert sent(value, returns) == {"content": [{"type": "text", "text": text} for text in texts]}


def test_a_generator_is_refused_with_an_alternative() -> None:
    with pytest.raises(ToolError, match=r"returned generator, but declares list\[int\]; use list\(...\)"):
        sent((number for number in range(3)), list[int])


def test_text_may_carry_metadata():
    assert Result(Text, "tool 'a'").schema is None
    assert sent(Text("hello", {"etag": "1"}), Text) == {"content": [TEXT], "_meta": {"etag": "1"}}
    with pytest.raises(ToolError, match="exceeds the limit of 60"):
        sent(Text("hello", {"etag": "1" * 60}), Text, limit=60)


def test_data_is_sent_as_structured_content_and_as_text():
    for value, returns, data, text in (
        (Size(width=2), Size, {"width": 2, "depth": None}, '{"width":2,"depth":null}'),
        (Weight(3), Weight, {"grams": 3}, '{"grams":3}'),
        ({"a": 1}, dict[str, int], {"a": 1}, '{"a":1}'),
        ([1, 2], list[int], [1, 2], "[1,2]"),
        (5, int, 5, "5"),
        (True, bool, True, "true"),
        (None, Size | None, None, "null"),
        ("unknown", str | Size, "unknown", '"unknown"'),
    ):
        assert sent(value, returns) == {"content": [{"type": "text", "text": text}], "structuredContent": data}


def test_data_may_have_its_own_text():
    result = sent(Data(Weight(3), "three grams"), Data[Weight])
    assert result == {"content": [{"type": "text", "text": "three grams"}], "structuredContent": {"grams": 3}}


def test_data_has_the_schema_of_its_value():
    assert Result(Data[Weight], "tool 'a'").schema == Result(Weight, "tool 'a'").schema


def test_a_type_that_can_not_be_sent_is_refused_by_name():
    result = Result(list[object()], "tool 'a'")  # type: ignore[misc]
    with pytest.raises(DeclarationError, match="tool 'a'"):
        _ = result.schema


def test_a_complete_result_is_sent_unchanged_with_content():
    value = CallToolResult(content=[TextContent(text="hello")], structured_content=[1], is_error=True, meta={"a": 1})
    expected = {"content": [TEXT], "structuredContent": [1], "isError": True, "_meta": {"a": 1}}
    assert sent(value, CallToolResult) == expected
    assert sent(CallToolResult(), CallToolResult) == {"content": []}


def test_a_result_over_the_limit_is_an_error_with_the_limit():
    for value, returns in (
        ("x" * 1_000, str),
        ("\0" * 200, str),
        ("é" * 500, str),
        ([1] * 600, list[int]),
        (["x" * 600], list[str]),  # both forms of data count
        (ImageContent.of(b"x" * 1_000, "image/png"), ImageContent),
    ):
        with pytest.raises(ToolError, match=r"the result has [\d,]+ bytes, which exceeds the limit of 1,000"):
            sent(value, returns, 1_000)
    for size in (1, 100, 940):
        assert sent("x" * size, str, 1_000)["content"][0]["text"] == "x" * size


def test_lone_surrogates_can_be_sent():
    """A result of any size is measured as it is sent."""
    half = "a\ud800"
    for value, returns in ((half * 2_000, str), ([TextContent(text=half)], list[TextContent]), ({"a": half}, dict)):
        assert json.loads(encode(Response(1, sent(value, returns))))["result"]["content"][0]["text"].count("\ufffd")


def test_json_data_is_sent_unchanged():
    value = {"rows": [[1, None, "x"]]}
    result = sent(Data(value, "1 row", is_json=True), Data[dict])
    assert result["structuredContent"] is value


def test_the_measured_json_is_the_sent_json():
    result = sent(Size(width=1), Size)
    assert encode(Response(1, result)) == b'{"jsonrpc":"2.0","id":1,"result":%b}' % result.json
    assert json.loads(result.json) == result


# Content of an author's own, as CONTRIBUTING.md shows it

each_era = pytest.mark.parametrize("version", ERAS)


def server() -> Server[None]:
    features = names_of("Adding a kind of resource or of content")["features"]
    return Server(Implementation(name="sales", version="1"), include=[features])


@each_era
async def test_a_resource_has_a_scheme_of_its_own(version: str) -> None:
    async with talking(server(), version) as peer:
        listed = await peer.request("resources/templates/list")
        read = await peer.request("resources/read", {"uri": "sales://region/north"})
    assert [one["uriTemplate"] for one in listed["result"]["resourceTemplates"]] == ["sales://region/{region}"]
    contents = {"uri": "sales://region/north", "mimeType": "application/json", "text": '{"May": 3.5}'}
    assert read["result"]["contents"] == [contents]


@each_era
async def test_a_client_that_takes_no_such_content_gets_text(version: str) -> None:
    async with talking(server(), version) as peer:
        assert await peer.text("draw_sales", region="north") == "May: 3.5"
        (tool,) = (await peer.request("tools/list"))["result"]["tools"]
    assert "outputSchema" not in tool


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", *ERAS])
async def test_content_of_a_kind_of_ones_own_passes_as_it_is(version: str) -> None:
    options = ClientOptions(mode=version, capabilities={"extensions": {"com.example/charts": {}}})
    with anyio.fail_after(PATIENCE):
        async with connected(server()) as end, Client(End(end), options) as client:
            result = await client.raw.call_tool("draw_sales", {"region": "north"})
    assert result["content"] == [{"type": "chart", "data": {"May": 3.5}}]


def test_content_of_a_kind_of_ones_own_may_stand_among_others():
    class Note(Content):
        type: str = "note"
        of_page: int

    note = Note(of_page=1, meta={"com.example/a": 1})
    shown = {"_meta": {"com.example/a": 1}, "type": "note", "ofPage": 1}
    assert sent(["hello", note], list[str | Note])["content"] == [{"type": "text", "text": "hello"}, shown]
