"""The server as a process: a tour of its tools, resources, completions and prompts by a client of each era."""

import json
from pathlib import Path

import pytest

from tests.servers.peers import ERAS, Json, Peer, text_of
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import inside, served
from tests.wire import STATELESS

every_era = pytest.mark.parametrize(
    "era", [*ERAS[:-2], pytest.param("2025-11-25", marks=pytest.mark.slow), STATELESS]
)

KEY = {"type": "ref/resource", "uri": "postgres:///{db}/{table}/{+key}"}
READING = """---
description: Products of a category.
parameters:
  category: {type: integer, description: its number}
  least: {type: number, optional: true}
---
SELECT sku, price FROM product WHERE category = :category AND price >= coalesce(:least, 0.0) ORDER BY sku
"""


async def read(peer: Peer, uri: str) -> str:
    """Returns the text of a resource."""
    (contents,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    text: str = contents["text"]
    return text


async def complete(peer: Peer, name: str, typed: str, **settled: str) -> list[str]:
    """Returns the completions of a variable of the row's URI template."""
    argument = {"name": name, "value": typed}
    answer = await peer.request("completion/complete", ref=KEY, argument=argument, context={"arguments": settled})
    values: list[str] = answer["result"]["completion"]["values"]
    return values


def list_types(schema: Json) -> set[str]:
    """Returns the types anywhere in a JSON Schema."""
    type_names = {schema["type"]} if "type" in schema else set()
    parts = [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]
    return type_names.union(*(list_types(part) for part in parts))


@every_era
async def test_a_client_of_each_era_explores_reads_and_exports(sample: Database, era: str) -> None:
    base = f"postgres:///{sample.name}"
    settled = {"db": sample.name, "table": "order_line"}
    async with served(sample.reader, era=era) as peer:
        tools = {tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]}
        whole = await peer.text("describe_database")
        listed = await peer.text("list_tables", limit=5)
        more = await peer.text("list_tables", cursor=listed.splitlines()[0].rpartition(" ")[2])
        table = await peer.text("describe_table", table_name="Order", sample=2, statistics=True)
        plan = await peer.text("explain_query", query='SELECT * FROM "order" WHERE id = $1', parameters=[7])
        measured = await peer.text("explain_query", query="SELECT * FROM customer", analyze=True)
        health = await peer.text("check_health")
        rows = await peer.text("read_query", query='SELECT id FROM "order" WHERE id > $1 LIMIT 2', parameters=[100])
        wrong = await peer.call("read_query", query="SELECT nam FROM\ncustomr")
        link = (await peer.call("export", query="SELECT id, name FROM customer ORDER BY id"))["content"][0]
        uri = link["uri"] if era >= "2025-06-18" else link["text"].rpartition(": ")[2]
        parts = [await read(peer, f"{uri}?offset={at}&length=500") for at in (0, 500, 1_000, 1_500)]
        resources = (await peer.request("resources/list"))["result"]["resources"]
        schema = await read(peer, f"{base}/schema")
        customers = json.loads(await read(peer, f"{base}/customer"))
        row = json.loads(await read(peer, f"{base}/order_line/7,2"))
        odd = json.loads(await read(peer, f"{base}/%22a%2Fb.c%25d%3Fe%23f%22/one%2Ftwo"))
        missing = await peer.request("resources/read", uri=f"{base}/nowhere")
        assert await complete(peer, "db", "shared") == [sample.name]
        assert await complete(peer, "table", "ORD", db=sample.name) == ['"order"', "order_line"]
        assert await complete(peer, "table", '"ord', db=sample.name) == ['"order"']
        assert await complete(peer, "key", "77,", **settled) == ["77,1", "77,2"]
        arguments = {"topic": "who buys novels", "database": sample.name}
        got = await peer.request("prompts/get", name="explore_database", arguments=arguments)
    assert tools.isdisjoint({"write_query", "create_table", "import_csv"})
    assert whole.startswith(f"database {sample.name}; ")
    assert 'table "order" about 1000 rows: id bigint' in whole
    assert "table customer (about 100 rows)" not in listed
    assert "table customer (about 100 rows)" in more
    assert '"order"(customer) -> customer(id) on delete restrict' in table
    assert "order_pkey" in plan
    assert "actual rows 100" in measured
    assert "PostgreSQL " in health
    assert rows.splitlines()[5:7] == ["[101]", "[102]"]
    assert wrong["isError"]
    assert text_of(wrong).startswith("bad_statement: ")
    assert all(word in text_of(wrong) for word in ("line 2", "customer"))
    assert "".join(parts).splitlines() == ["id,name", *(f"{n},customer {n}" for n in range(1, 101))]
    assert {f"{base}/schema", f"{base}/customer", f"{base}/%22order%22"} <= {one["uri"] for one in resources}
    assert "CREATE TABLE public.customer" in schema
    assert (customers["key"], len(customers["rows"]), customers["truncated"]) == (["id"], 100, False)
    assert row["row"] == {"order_id": 7, "line": 2, "sku": "SKU-0015", "quantity": 2}
    assert odd["row"] == {"the key": "one/two", "n": 1}
    assert missing["error"]["code"] == (-32602 if peer.stateless else -32002)
    (message,) = got["result"]["messages"]
    assert f"the PostgreSQL database '{sample.name}'. Find out about this: who buys" in message["content"]["text"]


async def test_an_open_snapshot_survives_row_changes_and_does_not_block_schema_changes(database: Database) -> None:
    query = "SELECT id FROM category ORDER BY id"
    async with inside("--allow-write", "--busy-timeout", "1", database.owner) as peer:
        page = await peer.data("read_query", query=query, max_rows=2)
        await peer.data("write_query", query="DELETE FROM review")
        rest = await peer.data("read_query", query=query, cursor=page["next_cursor"])
        for dry_run in (True, False):
            again = await peer.data("read_query", query=query, max_rows=2)
            change = {"query": "ALTER TABLE category ADD note text", "dry_run": dry_run}
            assert (await peer.data("write_query", **change))["committed"] is not dry_run
        changed = await peer.data("read_query", query=query, cursor=again["next_cursor"])
    assert (len(page["rows"] + rest["rows"]), rest["changed"]) == (5, False)
    assert (len(again["rows"] + changed["rows"]), changed["changed"]) == (5, True)


async def test_tool_schemas_suit_every_client_and_query_files_become_tools(sample: Database, tmp_path: Path) -> None:
    (tmp_path / "of_category.sql").write_text(READING)
    async with inside("--allow-write", "--queries", tmp_path, sample.writer) as peer:
        tools = {tool["name"]: tool for tool in (await peer.request("tools/list"))["result"]["tools"]}
        rows = (await peer.data("of_category", category=2, least=245.5, max_rows=1))["rows"]
        all_rows = (await peer.data("of_category", category=2))["rows"]
    reading = (
        "list_tables describe_table describe_database explain_query check_health append_insight export read_query"
    )
    writing = "write_query create_table import_csv of_category"
    assert list(tools) == [*reading.split(), *writing.split()]
    arguments = [one for tool in tools.values() for one in tool["inputSchema"].get("properties", {}).values()]
    assert set().union(*map(list_types, arguments)) == {"string", "integer", "number", "boolean", "array"}
    assert all("description" in tool for tool in tools.values())
    assert list(tools["of_category"]["inputSchema"]["properties"]) == ["category", "least", "max_rows", "cursor"]
    assert tools["of_category"]["inputSchema"]["required"] == ["category"]
    assert (rows, len(all_rows)) == ([["SKU-0198", 247.5]], 66)


async def test_data_and_schema_are_changed(database: Database) -> None:
    async with inside("--allow-write", database.owner) as peer:
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
        "2 rows imported into an existing table",
        "1 row imported into a new table",
    )
    counted = "SELECT (SELECT count(*) FROM refund), (SELECT min(stars) FROM review), (SELECT max(born) FROM player)"
    assert database.run(counted) == [(2, 3, 1_815)]
    assert database.run("SELECT * FROM game ORDER BY id") == [(1, "chess"), (2, None)]
