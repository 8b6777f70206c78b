"""Lists as dictionaries, without models."""

from typing import Any

import pytest

from shared.client.calls.raw_calls import MAX_PAGES, RawCalls
from shared.errors import InvalidResult, McpError


def calls(*pages: dict[str, Any]) -> RawCalls:
    """Calls of a server that answers with these pages in order, and repeats the last."""
    left = list(pages)

    async def request(*_asked: object, **_how: object) -> dict[str, Any]:
        return left.pop(0) if len(left) > 1 else left[0]

    return RawCalls(request)


async def test_all_pages_are_joined_into_a_list() -> None:
    pages = calls({"tools": [{"name": "a"}], "nextCursor": ""}, {"tools": None, "nextCursor": "2"}, {"tools": [7]})
    assert await pages.list_tools() == [{"name": "a"}, 7]


@pytest.mark.parametrize("listed", ["tools", {"name": "a"}, 7])
async def test_a_list_of_a_wrong_type_is_an_error(listed: object) -> None:
    with pytest.raises(InvalidResult) as wrong:
        await calls({"tools": listed}).list_tools()
    assert wrong.value.path == "tools"


async def test_endless_pages_are_an_error() -> None:
    with pytest.raises(McpError, match=f"more than {MAX_PAGES} pages"):
        await calls({"prompts": [], "nextCursor": "more"}).list_prompts()
