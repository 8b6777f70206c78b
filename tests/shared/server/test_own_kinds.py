"""A scheme of URIs and a kind of content of an author's own, as CONTRIBUTING.md shows them."""

import anyio
import pytest

from shared import Content, Implementation, Server
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.testing import connected
from tests.contributing import names_of
from tests.shared.client.small import End
from tests.shared.server.peer import ERAS, PATIENCE, talking
from tests.shared.server.test_results import sent

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
            result = await client.plain.call_tool("draw_sales", {"region": "north"})
    assert result["content"] == [{"type": "chart", "data": {"May": 3.5}}]


def test_content_of_a_kind_of_ones_own_may_stand_among_others():
    class Note(Content):
        type: str = "note"
        of_page: int

    note = Note(of_page=1, meta={"com.example/a": 1})
    shown = {"_meta": {"com.example/a": 1}, "type": "note", "ofPage": 1}
    assert sent(["hello", note], list[str | Note])["content"] == [{"type": "text", "text": "hello"}, shown]
