"""The official client explores a sample of thirty tables, changes it, and hears of changes that others make."""

import json
import re
from typing import Any

import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference, ResourceUpdatedNotification

from tests.servers.postgres.databases import SAMPLE, Database

from .peers import STATELESS, Case, Heard

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

BASE = f"postgres:///{SAMPLE}"
SPENT = """
SELECT c.id, sum(total) AS spent FROM sale JOIN customer c ON c.name = sale.customer
WHERE c.id <= $1 GROUP BY c.id ORDER BY spent DESC
"""
_TABLE = re.compile(r"(?:\w+ )?(?:table|view) (?P<name>.+?)(?: \(about \d+ rows\))?(?: --.*)?")


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result


async def data(client: Client, tool: str, **arguments: Any) -> Any:
    return (await called(client, tool, **arguments)).structured_content


async def text(client: Client, tool: str, **arguments: Any) -> str:
    return (await called(client, tool, **arguments)).content[0].text


def add(postgres: Database, key: str) -> None:
    """As another program does."""
    postgres.run("INSERT INTO warehouse.document VALUES (%s, false)", (key,))


async def test_every_table_of_postgres_is_explored(case: Case, postgres: Database) -> None:
    async with case.connect("postgres") as client:
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        lines = [_TABLE.fullmatch(line) for line in (await text(client, "list_tables")).splitlines()]
        tables = [line["name"] for line in lines if line is not None]
        for table in tables:
            await text(client, "describe_table", table_name=table, sample=1)
        plan = await text(client, "explain_query", query=SPENT, parameters=[5])
        rows = await data(client, "read_query", query=SPENT, parameters=[5])
        health = await text(client, "check_health")
    assert len(tables) >= 25
    assert len(listed) >= len(tables)
    assert "order_line" in plan
    assert rows["rows"] == sorted(rows["rows"], key=lambda row: -row[1])
    assert (rows["columns"], len(rows["rows"])) == (["id", "spent"], 5)
    assert "PostgreSQL" in health


async def test_all_rows_of_postgres_come_in_pages(case: Case, postgres: Database) -> None:
    query, seen, cursor = 'SELECT id FROM "order" ORDER BY id', [], None
    async with case.connect("postgres") as client:
        while True:
            page = await data(client, "read_query", query=query, max_rows=300, cursor=cursor)
            seen += [number for (number,) in page["rows"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert seen == [*range(1, 1_001)]


async def test_query_of_postgres_that_changes_something_is_refused(case: Case, postgres: Database) -> None:
    async with case.connect("postgres") as client:
        result = await client.call_tool("read_query", {"query": "DELETE FROM customer"})
    assert result.is_error
    assert result.content[0].text.startswith("refused: ")


async def test_row_of_postgres_is_a_resource_and_completed(case: Case, postgres: Database) -> None:
    async with case.connect("postgres") as client:
        (row,) = (await client.read_resource(f"{BASE}/order_line/7,2")).contents
        with pytest.raises(MCPError):
            await client.read_resource(f"{BASE}/nothing_here")
        template = ResourceTemplateReference(uri="postgres:///{db}/{table}")
        found = await client.complete(template, {"name": "table", "value": "ord"}, {"db": SAMPLE})
    assert json.loads(row.text)["row"] == {"order_id": 7, "line": 2, "sku": "SKU-0015", "quantity": 2}
    assert found.completion.values == ['"order"', "order_line"]


async def test_change_of_postgres_by_the_client_is_seen(case: Case, postgres: Database, key: str) -> None:
    async with case.connect("postgres") as client:
        query = "INSERT INTO warehouse.document VALUES ($1, true)"
        await data(client, "write_query", query=query, parameters=[key])
        counted = "SELECT count(*) FROM warehouse.document WHERE number = $1"
        found = await data(client, "read_query", query=counted, parameters=[key])
    assert found["rows"] == [[1]]


@pytest.mark.parametrize("mode", ["legacy"])
async def test_subscription_to_postgres_tells_of_a_change(case: Case, postgres: Database, key: str) -> None:
    heard, uri = Heard(), f"{BASE}/warehouse.document"
    async with case.connect("postgres", message_handler=heard) as client:
        await client.subscribe_resource(uri)
        add(postgres, key)
        changed = await heard.first(ResourceUpdatedNotification)
    assert changed.params.uri == uri


@pytest.mark.parametrize("mode", ["auto", STATELESS])
async def test_listen_to_postgres_tells_of_a_change(case: Case, postgres: Database, key: str) -> None:
    uri = f"{BASE}/warehouse.document"
    async with case.connect("postgres") as client, client.listen(resource_subscriptions=[uri]) as stream:
        assert stream.honored.resource_subscriptions == [uri]
        add(postgres, key)
        assert await anext(stream) == ResourceUpdated(uri=uri)
