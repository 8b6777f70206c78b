"""The official client explores a sample database, changes it, and hears of changes that others make."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference, ResourceUpdatedNotification

from .peers import DATABASE, STATELESS, Case, Heard

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

SPENT = """
SELECT c.LastName, round(sum(i.Total), 2) AS spent FROM Customer c JOIN Invoice i USING (CustomerId)
WHERE i.BillingCountry = :country GROUP BY c.CustomerId ORDER BY spent DESC
"""


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result


async def data(client: Client, tool: str, **arguments: Any) -> Any:
    return (await called(client, tool, **arguments)).structured_content


async def text(client: Client, tool: str, **arguments: Any) -> str:
    return (await called(client, tool, **arguments)).content[0].text


def add_genre(folder: Path, key: str) -> None:
    """As another program does."""
    with closing(sqlite3.connect(folder / DATABASE, timeout=20)) as connection, connection:
        connection.execute("INSERT INTO Genre (Name) VALUES (?)", (key,))


async def test_database_is_explored(case: Case) -> None:
    async with case.connect("sqlite") as client:
        described = await text(client, "describe_database")
        assert all(name in described for name in ("Artist", "PlaylistTrack", "SalesByCountry", "InvoiceLine"))
        assert "BillingCountry" in await text(client, "describe_table", table_name="Invoice", sample=2)
        plan = await text(client, "explain_query", query=SPENT)
        assert "Invoice" in plan or " i" in plan
        rows = await data(client, "read_query", query=SPENT, parameters={"country": "Germany"})
        assert rows["columns"] == ["LastName", "spent"]
        assert rows["rows"] == sorted(rows["rows"], key=lambda row: -row[1])


async def test_all_rows_come_in_pages(case: Case) -> None:
    query, seen, cursor = "SELECT TrackId FROM Track ORDER BY TrackId", [], None
    async with case.connect("sqlite") as client:
        while True:
            page = await data(client, "read_query", query=query, max_rows=300, cursor=cursor)
            seen += [number for (number,) in page["rows"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert seen == sorted(set(seen))
    assert len(seen) == 1_000


async def test_query_that_changes_something_is_refused(case: Case) -> None:
    async with case.connect("sqlite") as client:
        result = await client.call_tool("read_query", {"query": "DELETE FROM Track"})
    assert result.is_error
    assert result.content[0].text.startswith("refused: ")


async def test_table_and_row_are_resources(case: Case) -> None:
    async with case.connect("sqlite") as client:
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert {"sqlite:///chinook/schema", "sqlite:///chinook/Genre"} <= listed
        (row,) = (await client.read_resource("sqlite:///chinook/Genre/2")).contents
        assert json.loads(row.text)["row"] == {"GenreId": 2, "Name": "Jazz"}
        with pytest.raises(MCPError):
            await client.read_resource("sqlite:///chinook/Nothing")


async def test_names_are_completed(case: Case) -> None:
    async with case.connect("sqlite") as client:
        template = ResourceTemplateReference(uri="sqlite:///{db}/{table}")
        found = await client.complete(template, {"name": "table", "value": "play"}, {"db": "chinook"})
        assert set(found.completion.values) == {"Playlist", "PlaylistTrack"}


async def test_prompt_says_how_to_begin(case: Case) -> None:
    async with case.connect("sqlite") as client:
        (prompt,) = (await client.list_prompts()).prompts
        got = await client.get_prompt(prompt.name, {"topic": "who buys jazz"})
        assert "who buys jazz" in got.messages[0].content.text
        reference = PromptReference(name=prompt.name)
        found = await client.complete(reference, {"name": "database", "value": "ch"})
        assert found.completion.values == ["chinook"]


async def test_change_of_the_client_is_seen(case: Case, key: str) -> None:
    async with case.connect("sqlite") as client:
        await data(client, "write_query", query="INSERT INTO Genre (Name) VALUES (?)", parameters=[key])
        found = await data(client, "read_query", query="SELECT count(*) FROM Genre WHERE Name = ?", parameters=[key])
    assert found["rows"] == [[1]]


@pytest.mark.parametrize("mode", ["legacy"])
async def test_subscription_tells_of_a_change_by_another_program(case: Case, folder: Path, key: str) -> None:
    heard, uri = Heard(), "sqlite:///chinook/Genre"
    async with case.connect("sqlite", message_handler=heard) as client:
        await client.subscribe_resource(uri)
        add_genre(folder, key)
        changed = await heard.first(ResourceUpdatedNotification)
    assert changed.params.uri == uri


@pytest.mark.parametrize("mode", ["auto", STATELESS])
async def test_listen_tells_of_a_change_by_another_program(case: Case, folder: Path, key: str) -> None:
    uri = "sqlite:///chinook/Genre"
    async with case.connect("sqlite") as client, client.listen(resource_subscriptions=[uri]) as stream:
        assert stream.honored.resource_subscriptions == [uri]
        add_genre(folder, key)
        assert await anext(stream) == ResourceUpdated(uri=uri)
