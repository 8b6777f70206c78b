"""The official client declares that it shows apps: it is told which page shows a tool, reads it, and gets what it
shows. The client itself does nothing with that, and carries it both ways in both eras."""

from mcp.client.extension import advertise

from shared.extensions.apps import MIME_TYPE, UI

from .peers import Case

SCHEMA = "ui://sqlite/schema"


async def test_reads_the_page_of_a_tool(case: Case) -> None:
    async with case.connect("sqlite", extensions=[advertise(UI, {"mimeTypes": [MIME_TYPE]})]) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        meta = tools["describe_database"].meta
        (page,) = (await client.read_resource(SCHEMA)).contents
        result = await client.call_tool("describe_database", {})
    assert (meta["ui"], meta["ui/resourceUri"]) == ({"resourceUri": SCHEMA}, SCHEMA)
    assert (page.mime_type, page.meta["ui"]["csp"]) == (MIME_TYPE, {})
    assert page.text.startswith("<!doctype html>")
    assert "Album" in {table["name"] for table in result.meta["view"]["tables"]}


async def test_is_told_of_no_page_that_it_does_not_show(case: Case) -> None:
    async with case.connect("sqlite") as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("describe_database", {})
    assert not [tool.name for tool in tools if "ui" in (tool.meta or {})]
    assert "view" not in (result.meta or {})
