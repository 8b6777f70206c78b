"""The names that errors propose for an unknown tool or prompt."""

from typing import Any

import pytest

from shared import Server
from shared.errors import InternalError
from shared.protocol.types.prompts import Prompt
from shared.server.handlers.nearest_names import find_closest
from tests.shared.server.peer import ERAS, server, talking


def app() -> Server[Any]:
    served = server()
    served.page_size = 1

    @served.tool(read_only=True)
    async def first() -> str:
        """Fill the first page."""
        return "first"

    @served.tool(read_only=True)
    async def read_text_file() -> str:
        """Read a file."""
        return "read"

    @served.prompt()
    async def summarize() -> str:
        """Summarize."""
        return "summary"

    return served


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("method", "name", "message"),
    [
        ("tools/call", "read_txt_file", "unknown tool: read_txt_file; did you mean 'read_text_file'?"),
        ("tools/call", "mcp__files__read_text_file", "did you mean 'read_text_file'?"),
        ("tools/call", "paint", "unknown tool: paint"),
        ("prompts/get", "Summarise", "unknown prompt: Summarise; did you mean 'summarize'?"),
    ],
)
async def test_an_unknown_name_gets_a_suggestion(version: str, method: str, name: str, message: str) -> None:
    async with talking(app(), version) as peer:
        error = (await peer.request(method, {"name": name, "arguments": {}}))["error"]
    assert error["code"] == -32602
    assert error["message"].endswith(message)


async def test_a_list_that_fails_does_not_hide_the_error() -> None:
    class Source:
        async def page(self, context: Any, after: str, most: int) -> list[Prompt]:
            raise InternalError("no list")

        async def get(self, context: Any, name: str, arguments: dict[str, str]) -> None:
            return None

        async def complete(self, context: Any, name: str, argument: Any, settled: dict[str, str]) -> None:
            return None

    served = server()
    served.prompts_from(Source())
    async with talking(served) as peer:
        error = (await peer.request("prompts/get", {"name": "any"}))["error"]
    assert error["message"] == "unknown prompt: any"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("readTextFile", "read_text_file"),
        ("READ-TEXT-FILE", "read_text_file"),
        ("files.list_directory", "list_directory"),
        ("list_directories", "list_directory"),
        ("write_file", None),
        ("", None),
        ("---", None),
    ],
)
def test_the_closest_name(name: str, expected: str | None) -> None:
    assert find_closest(name, ["read_text_file", "list_directory", "directory"]) == expected
