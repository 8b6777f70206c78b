"""The official client reads pages in pieces, and as resources."""

import re

import pytest

from .pages import PARAGRAPHS
from .peers import Case

pytestmark = [pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")]


def within(text: str) -> str:
    """What stands between the marks."""
    found = re.search(r"<page-(\w+)>[^\n]*\n(.*)\n</page-\1>", text, re.DOTALL)
    assert found is not None, text
    return found.group(2)


async def test_page_in_pieces(case: Case, site: str) -> None:
    text, start = "", 0
    async with case.connect("fetch") as client:
        while start is not None:
            arguments = {"url": f"{site}/story", "start_index": start, "max_length": 9_000}
            result = await client.call_tool("fetch", arguments)
            assert not result.is_error, result.content
            text += within(result.content[0].text)
            start = result.meta.get("nextIndex")
    assert all(paragraph in text for paragraph in PARAGRAPHS)


async def test_page_as_resource(case: Case, site: str) -> None:
    async with case.connect("fetch") as client:
        result = await client.read_resource(f"{site}/story")
        listed = await client.list_resources()
    assert "Paragraph number 299" in result.contents[0].text
    assert f"{site}/story" in [str(resource.uri) for resource in listed.resources]
