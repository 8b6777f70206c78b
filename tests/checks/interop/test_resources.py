"""The official client reads our resources and asks for prompts: what no row of all clients has."""

from pathlib import Path

import pytest
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from shared.protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED

from .peers import Case


async def test_only_changed_resources_are_read_again(case: Case) -> None:
    """The client knows no etags, but it carries extensions and `_meta` both ways, in both eras."""
    async with case.connect("bench", extensions=[advertise(CONDITIONAL_READS)]) as client:
        first = await client.read_resource("bench://city/Oslo", cache_mode="bypass")
        etag = {ETAG: first.meta[ETAG]}
        again = await client.read_resource("bench://city/Oslo", meta=etag, cache_mode="bypass")
        other = await client.read_resource("bench://city/Bergen", meta=etag, cache_mode="bypass")
    assert (again.contents, again.meta[NOT_MODIFIED]) == ([], True)
    assert other.contents[0].text == "the city of Bergen"


async def test_missing_resource_is_an_error(case: Case, file: Path) -> None:
    uri = file.with_name("missing").as_uri()
    async with case.connect("filesystem") as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.code == (-32002 if case.handshake else -32602)
    assert caught.value.data == {"uri": uri}


async def test_uri_beyond_ascii(case: Case) -> None:
    """Over HTTP the client has to encode it for the header that names it."""
    async with case.connect("bench") as client:
        (contents,) = (await client.read_resource("bench://city/Tromsø")).contents
    assert contents.text == "the city of Tromsø"


async def test_forged_cursor_is_an_error(case: Case) -> None:
    async with case.connect("bench") as client:
        with pytest.raises(MCPError) as caught:
            await client.list_resources(cursor="forged")
    assert caught.value.code == -32602


async def test_missing_argument_of_a_prompt_is_an_error(case: Case) -> None:
    async with case.connect("bench") as client:
        with pytest.raises(MCPError, match="name") as caught:
            await client.get_prompt("greet")
    assert caught.value.code == -32602


async def test_completion_uses_other_arguments(case: Case) -> None:
    reference = PromptReference(type="ref/prompt", name="greet")
    async with case.connect("bench") as client:
        given = await client.complete(reference, {"name": "tone", "value": "like"}, {"name": "Ada"})
    assert given.completion.values == ["like Ada"]
