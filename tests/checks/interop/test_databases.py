"""The official client explores the sample databases: what no row of all clients has."""

from typing import Any

import pytest
from mcp import Client
from mcp_types import PromptReference, ResourceTemplateReference

from tests.servers.postgres.databases import SAMPLE, Database

from .peers import Case

SPENT = """
SELECT c.LastName, round(sum(i.Total), 2) AS spent FROM Customer c JOIN Invoice i USING (CustomerId)
WHERE i.BillingCountry = :country GROUP BY c.CustomerId ORDER BY spent DESC
"""
SPENT_IN_POSTGRES = """
SELECT c.id, sum(total) AS spent FROM sale JOIN customer c ON c.name = sale.customer
WHERE c.id <= $1 GROUP BY c.id ORDER BY spent DESC
"""


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result


async def completed(client: Client, uri: str, value: str, database: str) -> list[str]:
    template = ResourceTemplateReference(uri=uri)
    return (await client.complete(template, {"name": "table", "value": value}, {"db": database})).completion.values


async def test_database_is_explored(case: Case) -> None:
    async with case.connect("sqlite") as client:
        described = (await called(client, "describe_database")).content[0].text
        arguments = {"query": SPENT, "parameters": {"country": "Germany"}}
        rows = (await called(client, "read_query", **arguments)).structured_content
        tables = await completed(client, "sqlite:///{db}/{table}", "play", "chinook")
        (prompt,) = (await client.list_prompts()).prompts
        found = await client.complete(PromptReference(name=prompt.name), {"name": "database", "value": "ch"})
    assert all(name in described for name in ("Artist", "PlaylistTrack", "SalesByCountry", "InvoiceLine"))
    assert rows["columns"] == ["LastName", "spent"]
    assert rows["rows"] == sorted(rows["rows"], key=lambda row: -row[1])
    assert {*tables} == {"Playlist", "PlaylistTrack"}
    assert found.completion.values == ["chinook"]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_postgres_is_explored(case: Case, postgres: Database) -> None:
    async with case.connect("postgres") as client:
        plan = (await called(client, "explain_query", query=SPENT_IN_POSTGRES, parameters=[5])).content[0].text
        rows = (await called(client, "read_query", query=SPENT_IN_POSTGRES, parameters=[5])).structured_content
        health = (await called(client, "check_health")).content[0].text
        tables = await completed(client, "postgres:///{db}/{table}", "ord", SAMPLE)
    assert "customer" in plan
    assert rows["rows"] == sorted(rows["rows"], key=lambda row: -row[1])
    assert (rows["columns"], len(rows["rows"])) == (["id", "spent"], 5)
    assert "PostgreSQL" in health
    assert tables == ['"order"', "order_line"]
