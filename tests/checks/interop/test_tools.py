"""The official client lists our tools and calls them."""

import base64
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from .peers import Case


async def test_lists_tools(case: Case) -> None:
    async with case.connect("filesystem") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"read_text_file", "list_directory", "search_files", "get_file_info"} <= set(listed)
    assert listed["read_text_file"].input_schema["required"] == ["path"]
    assert listed["get_file_info"].output_schema["type"] == "object"
    assert listed["list_directory"].annotations.read_only_hint is True


async def test_text_result(case: Case, file: Path) -> None:
    async with case.connect("filesystem") as client:
        result = await client.call_tool("read_text_file", {"path": str(file)})
    assert not result.is_error
    assert [block.text for block in result.content] == ["before\n"]
    assert result.structured_content is None


async def test_data_result_fits_its_schema(case: Case, file: Path) -> None:
    """The client itself checks structured content against the schema in the list, and raises where it fails."""
    async with case.connect("filesystem") as client:
        await client.list_tools()
        result = await client.call_tool("get_file_info", {"path": str(file)})
    assert not result.is_error
    assert result.structured_content["size"] == len("before\n")


async def test_data_of_a_model(case: Case) -> None:
    async with case.connect("bench") as client:
        result = await client.call_tool("point", {"x": 1, "y": -2})
    assert result.structured_content == {"x": 1, "y": -2, "label": None}


async def test_data_that_is_no_object(case: Case) -> None:
    """Before 2026-07-28 it has to travel as text alone, and the tool must list no output schema."""
    async with case.connect("bench") as client:
        result = await client.call_tool("total", {"numbers": [1, 2, 39]})
    assert result.content[0].text == "the total is 42"
    assert result.structured_content == (None if case.handshake else 42)


async def test_content_of_every_kind(case: Case) -> None:
    async with case.connect("bench") as client:
        text, image, audio, link, embedded = (await client.call_tool("blocks")).content
    assert (text.type, text.text, text.annotations.audience) == ("text", "a text", ["user"])
    assert (image.type, image.mime_type, base64.b64decode(image.data)) == ("image", "image/png", b"a picture")
    assert (audio.type, audio.mime_type, base64.b64decode(audio.data)) == ("audio", "audio/wav", b"a sound")
    assert (link.type, link.uri, link.name) == ("resource_link", "bench://note", "note")
    assert (embedded.type, embedded.resource.uri, embedded.resource.text) == ("resource", "bench://note", "a note")


@pytest.mark.parametrize("reports", [0, 1], ids=["at once", "after a report"])
async def test_long_result(case: Case, reports: int) -> None:
    """Over HTTP a stream carries what comes after a report; the client takes an event of 1 MiB at most."""

    async def progress(_done: float, _total: float | None, _message: str | None) -> None:
        pass

    async with case.connect("bench") as client:
        result = await client.call_tool(
            "long", {"characters": 440_000, "reports": reports}, progress_callback=progress
        )
    assert result.content[0].text == "ø" * 440_000


async def test_argument_that_is_sent_as_a_header(case: Case) -> None:
    """The client knows from the list which one; our server refuses a header that says something else."""
    async with case.connect("bench") as client:
        await client.list_tools()
        result = await client.call_tool("weather", {"city": "Tromsø", "days": 3})
    assert result.content[0].text == "3 days of rain in Tromsø"


async def test_header_of_an_unlisted_tool(case: Case) -> None:
    """The client calls without the header, is told of the mismatch over HTTP, lists and calls again."""
    async with case.connect("bench") as client:
        result = await client.call_tool("weather", {"city": "Oslo", "days": 1})
    assert result.content[0].text == "1 days of rain in Oslo"


async def test_failure_is_a_result(case: Case, file: Path) -> None:
    async with case.connect("filesystem") as client:
        result = await client.call_tool("read_text_file", {"path": str(file.with_name("missing"))})
    assert result.is_error
    assert result.content[0].text.startswith("not_found: ")


async def test_wrong_arguments_are_a_result(case: Case) -> None:
    async with case.connect("bench") as client:
        result = await client.call_tool("echo", {"txet": "x"})
    assert result.is_error
    assert "did you mean 'text'?" in result.content[0].text


async def test_unknown_tool_is_an_error(case: Case) -> None:
    async with case.connect("bench") as client:
        with pytest.raises(MCPError, match="unknown tool: nothing") as caught:
            await client.call_tool("nothing")
    assert caught.value.code == -32602
