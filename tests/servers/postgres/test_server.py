"""Every tool, resource, completion and prompt through the real door: a process, and a client's bytes in each era."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.peers import ERAS, Json, Peer, text_of
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import served

pytestmark = pytest.mark.slow
every_era = pytest.mark.parametrize("era", ERAS)
newer_era = pytest.mark.parametrize("era", [pytest.param("2025-06-18", marks=pytest.mark.slow), *ERAS[-2:]])
"""Those that have structured content, and links in results."""

KEY = {"type": "ref/resource", "uri": "postgres:///{db}/{table}/{+key}"}
READING = """---
description: Products of a category.
parameters:
  category: {type: integer, description: its number}
  least: {type: number, optional: true}
---
SELECT sku, price FROM product WHERE category = :category AND price >= coalesce(:least, 0.0) ORDER BY sku
"""
WRITING = """---
description: Gives a category another name.
writable: true
parameters:
  id: {type: integer}
  name: {type: string}
---
UPDATE category SET name = :name WHERE id = :id RETURNING id, name
"""


async def read(peer: Peer, uri: str) -> str:
    """The text of a resource."""
    (found,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    text: str = found["text"]
    return text


async def complete(peer: Peer, name: str, typed: str, **settled: str) -> list[str]:
    """What completes an argument of the URI of a row."""
    argument = {"name": name, "value": typed}
    answer = await peer.request("completion/complete", ref=KEY, argument=argument, context={"arguments": settled})
    values: list[str] = answer["result"]["completion"]["values"]
    return values


def list_types(schema: Json) -> set[str]:
    """The types that stand anywhere in a schema."""
    found = {schema["type"]} if "type" in schema else set()
    parts = [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]
    return found.union(*(list_types(part) for part in parts))


@every_era
async def test_the_tools_take_what_any_client_can_give(database: Database, era: str) -> None:
    async with served("--allow-write", database.owner, era=era) as peer:
        tools = {tool["name"]: tool for tool in (await peer.request("tools/list"))["result"]["tools"]}
    assert list(tools) == [
        "list_tables",
        "describe_table",
        "describe_database",
        "explain_query",
        "check_health",
        "append_insight",
        "export",
        "read_query",
        "write_query",
        "create_table",
        "import_csv",
    ]
    arguments = [one for tool in tools.values() for one in tool["inputSchema"].get("properties", {}).values()]
    assert set().union(*map(list_types, arguments)) == {"string", "integer", "number", "boolean", "array"}
    assert all("description" in tool for tool in tools.values())


@every_era
async def test_who_may_only_read_is_offered_no_tool_that_changes(database: Database, era: str) -> None:
    async with served(database.reader, era=era) as peer:
        tools = {tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]}
    assert tools.isdisjoint({"write_query", "create_table", "import_csv"})


@every_era
async def test_a_database_is_explored(database: Database, era: str) -> None:
    async with served(database.reader, era=era) as peer:
        whole = await peer.text("describe_database")
        listed = await peer.text("list_tables", limit=5)
        more = await peer.text("list_tables", cursor=listed.splitlines()[0].rpartition(" ")[2])
        table = await peer.text("describe_table", table_name="Order", sample=2, statistics=True)
        plan = await peer.text("explain_query", query='SELECT * FROM "order" WHERE id = $1', parameters=[7])
        measured = await peer.text("explain_query", query="SELECT * FROM customer", analyze=True)
        health = await peer.text("check_health")
    assert whole.startswith(f"database {database.name}; ")
    assert 'table "order" about 1000 rows: id bigint' in whole
    assert "table customer (about 100 rows)" not in listed
    assert "table customer (about 100 rows)" in more
    assert '"order"(customer) -> customer(id) on delete restrict' in table
    assert "order_pkey" in plan
    assert "actual rows 100" in measured
    assert "PostgreSQL " in health


@newer_era
async def test_rows_come_in_pages_to_the_end(database: Database, era: str) -> None:
    found: list[Any] = []
    cursor: str | None = None
    async with served(database.reader, era=era) as peer:
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            query = 'SELECT id FROM "order" WHERE id > $1 ORDER BY id'
            page = await peer.data("read_query", query=query, parameters=[100], max_rows=350, **more)
            found += page["rows"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert found == [[n] for n in range(101, 1_001)]


async def test_rows_that_are_kept_outlive_our_own_changes_of_rows(database: Database) -> None:
    query = "SELECT id FROM category ORDER BY id"
    async with served("--allow-write", database.writer) as peer:
        page = await peer.data("read_query", query=query, max_rows=2)
        await peer.data("write_query", query="DELETE FROM review")
        rest = await peer.data("read_query", query=query, cursor=page["next_cursor"])
    assert (len(page["rows"] + rest["rows"]), rest["changed"]) == (5, False)


async def test_rows_that_are_kept_hold_up_no_change_of_the_schema(database: Database) -> None:
    query = "SELECT id FROM category ORDER BY id"
    async with served("--allow-write", "--busy-timeout", "1", database.owner) as peer:
        page = await peer.data("read_query", query=query, max_rows=2)
        done = await peer.data("write_query", query="ALTER TABLE category ADD note text")
        rest = await peer.data("read_query", query=query, cursor=page["next_cursor"])
    assert done["committed"]
    assert (len(page["rows"] + rest["rows"]), rest["changed"]) == (5, True)


@newer_era
async def test_an_export_is_read_in_parts(database: Database, era: str) -> None:
    async with served(database.reader, era=era) as peer:
        query = "SELECT id, name FROM customer ORDER BY id"
        link = (await peer.call("export", query=query))["content"][0]
        parts = [await read(peer, f"{link['uri']}?offset={at}&length=500") for at in range(0, link["size"], 500)]
    lines = ["id,name", *(f"{n},customer {n}" for n in range(1, 101))]
    assert len(parts) == 4
    assert "".join(parts).splitlines() == lines


@every_era
async def test_schemas_tables_and_rows_are_resources(database: Database, era: str) -> None:
    base = f"postgres:///{database.name}"
    async with served(database.reader, era=era) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        schema = await read(peer, f"{base}/schema")
        table = json.loads(await read(peer, f"{base}/customer"))
        row = json.loads(await read(peer, f"{base}/order_line/7,2"))
        odd = json.loads(await read(peer, f"{base}/%22a%2Fb.c%25d%3Fe%23f%22/one%2Ftwo"))
        missing = await peer.request("resources/read", uri=f"{base}/nowhere")
    assert {f"{base}/schema", f"{base}/customer", f"{base}/%22order%22"} <= {one["uri"] for one in listed}
    assert "CREATE TABLE public.customer" in schema
    assert (table["key"], len(table["rows"]), table["truncated"]) == (["id"], 100, False)
    assert row["row"] == {"order_id": 7, "line": 2, "sku": "SKU-0015", "quantity": 2}
    assert odd["row"] == {"the key": "one/two", "n": 1}
    assert missing["error"]["code"] == (-32602 if peer.stateless else -32002)


@every_era
async def test_the_parts_of_a_uri_are_completed(database: Database, era: str) -> None:
    settled = {"db": database.name, "table": "order_line"}
    async with served(database.reader, era=era) as peer:
        assert await complete(peer, "db", "sam") == [database.name]
        assert await complete(peer, "table", "ORD", db=database.name) == ['"order"', "order_line"]
        assert await complete(peer, "table", '"ord', db=database.name) == ['"order"']
        assert await complete(peer, "key", "77,", **settled) == ["77,1", "77,2"]


@every_era
async def test_the_prompt_has_a_model_explore(database: Database, era: str) -> None:
    async with served(database.reader, era=era) as peer:
        arguments = {"topic": "who buys novels", "database": database.name}
        got = await peer.request("prompts/get", name="explore_database", arguments=arguments)
    (message,) = got["result"]["messages"]
    assert f"the PostgreSQL database '{database.name}'. Find out about this: who buys" in message["content"]["text"]


@newer_era
async def test_files_of_queries_are_tools(database: Database, tmp_path: Path, era: str) -> None:
    (tmp_path / "of_category.sql").write_text(READING)
    (tmp_path / "rename_category.sql").write_text(WRITING)
    async with served("--allow-write", "--queries", tmp_path, database.writer, era=era) as peer:
        tools = {tool["name"]: tool for tool in (await peer.request("tools/list"))["result"]["tools"]}
        rows = (await peer.data("of_category", category=2, least=245.5, max_rows=1))["rows"]
        all_rows = (await peer.data("of_category", category=2))["rows"]
        changed = await peer.data("rename_category", id=4, name="long stories")
    assert list(tools["of_category"]["inputSchema"]["properties"]) == ["category", "least", "max_rows", "cursor"]
    assert tools["of_category"]["inputSchema"]["required"] == ["category"]
    assert tools["rename_category"]["annotations"]["destructiveHint"] is True
    assert (rows, len(all_rows)) == ([["SKU-0198", 247.5]], 66)
    assert changed["statements"][0]["rows"] == [[4, "long stories"]]
    assert database.run("SELECT name FROM category WHERE id = 4") == [("long stories",)]


@newer_era
async def test_data_and_schema_are_changed(database: Database, era: str) -> None:
    async with served("--allow-write", database.owner, era=era) as peer:
        preview = await peer.data("write_query", query="DELETE FROM refund", dry_run=True)
        query = ["INSERT INTO category VALUES ($1, 1, $2)", "UPDATE review SET stars = 3"]
        done = await peer.data("write_query", query=query, parameters=[[50, "games"], []])
        made = await peer.text("create_table", query="CREATE TABLE game (id integer PRIMARY KEY, name text)")
        filled = await peer.text("import_csv", table="game", csv="id,name\n1,chess\n2,\n")
        new = await peer.text("import_csv", table="player", csv="name,born\nAda,1815\n")
    assert (preview["committed"], preview["changes"][0]["counts"]) == (False, {"deleted": 2})
    assert [one["affected"] for one in done["statements"]] == [1, 2]
    assert made.startswith("committed; ")
    assert (filled.partition(";")[0], new.partition(";")[0]) == (
        "2 rows imported into a table that was there",
        "1 row imported into a new table",
    )
    counted = "SELECT (SELECT count(*) FROM refund), (SELECT min(stars) FROM review), (SELECT max(born) FROM player)"
    assert database.run(counted) == [(2, 3, 1_815)]
    assert database.run("SELECT * FROM game ORDER BY id") == [(1, "chess"), (2, None)]


@every_era
async def test_an_error_names_the_place_and_what_was_meant(database: Database, era: str) -> None:
    async with served(database.reader, era=era) as peer:
        result = await peer.call("read_query", query="SELECT nam FROM\ncustomr")
    assert result["isError"]
    assert text_of(result).startswith("bad_statement: ")
    assert "line 2" in text_of(result)
    assert "customer" in text_of(result)
