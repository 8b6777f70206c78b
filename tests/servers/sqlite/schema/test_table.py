"""`describe_table`, called by a client."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.sqlite.schemas import HOSTILE, SHOP, dump, hostile, made, named, section
from tests.servers.sqlite.serving import inside


async def describe_table(path: Path, table: str, **wanted: Any) -> str:
    async with inside(path) as peer:
        return await peer.text("describe_table", table_name=table, **wanted)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return made(tmp_path / "shop.db", SHOP)


async def test_a_table_is_described_as_text(shop: Path) -> None:
    async with inside(shop) as peer:
        result = await peer.call("describe_table", table_name="customers", sample=1)
    lines = result["content"][0]["text"].splitlines()
    assert lines[0] == "table; about 3 rows as of the last ANALYZE"
    assert lines[2:12] == [
        "customers",
        "columns:",
        "  id INTEGER primary key 1",
        "  name TEXT not null default 'nobody'",
        "  email TEXT",
        "referenced by:",
        "  orders(customer_id) -> customers(primary key) on delete cascade",
        "indexes:",
        "  sqlite_autoindex_customers_1 on (email) by UNIQUE",
        "triggers:",
    ]
    assert lines[-4:-1] == ["sample:", '  columns ["id","name","email"]', '  [1,"Ada","ada@example.org"]']
    assert "structuredContent" not in result


async def test_all_columns_and_declarations_are_described(shop: Path) -> None:
    async with inside(shop) as peer:
        names = ("orders", "items", "notes", "customers", "ORDERS")
        orders, items, notes, customers, upper = [
            await peer.text("describe_table", table_name=name) for name in names
        ]
        error = await peer.error("describe_table", table_name="customer")
    assert orders.startswith("table; STRICT; about 2 rows")
    assert section(orders, "columns") == [
        "id INTEGER primary key 1",
        "customer_id INTEGER",
        "total REAL",
        "tax REAL generated virtual",
        "gross REAL generated stored",
    ]
    assert section(orders, "foreign keys") == ["orders(customer_id) -> customers(primary key) on delete cascade"]
    assert section(orders, "referenced by") == ["items(order_id) -> orders(id)"]
    index = "CREATE INDEX large ON orders (customer_id, round(total)) WHERE total > 100"
    assert section(orders, "indexes") == [index]
    assert "    total REAL CHECK (total > 0)," in "\n".join(section(orders, "sql"))
    assert items.startswith("table; WITHOUT ROWID; about 2 rows")
    assert section(items, "columns") == [
        "order_id INTEGER primary key 1 not null",
        "line INTEGER primary key 2 not null",
        "name TEXT",
    ]
    assert section(notes, "columns") == ["body", "notes hidden", "rank hidden"]
    trigger = "CREATE TRIGGER guard BEFORE DELETE ON customers BEGIN SELECT RAISE(ABORT, 'no'); END"
    assert section(customers, "triggers") == [trigger]
    assert upper.splitlines()[2] == "orders"
    assert error.startswith("not_found: there is no table or view with that name. The nearest names are:\n<data-")
    assert error.splitlines()[2] == "customers"


async def test_a_view_of_a_missing_table_has_its_sql_and_the_problem(tmp_path: Path) -> None:
    path = made(tmp_path / "v.db", "CREATE VIEW v AS SELECT * FROM gone;")
    text = await describe_table(path, "v", sample=1, statistics=True)
    assert text.splitlines()[2:-1] == [
        "v",
        "problem: no such table: main.gone",
        "sql:",
        "  CREATE VIEW v AS SELECT * FROM gone",
    ]


async def test_a_wide_table_is_cut_with_a_count_of_the_rest(tmp_path: Path) -> None:
    columns = ", ".join(f"column_{n}" for n in range(1_500))
    path = made(tmp_path / "wide.db", f"CREATE TABLE wide ({columns});")
    async with inside("--max-page", "20000", path) as peer:
        text = await peer.text("describe_table", table_name="wide")
    shown = section(text, "columns")
    assert 100 < len(shown) < 1_500
    assert f"left out: {1_500 - len(shown)} columns\n" in text


async def test_a_sample_and_statistics_are_shown_on_request(shop: Path) -> None:
    text = await describe_table(shop, "customers", sample=2, statistics=True)
    assert section(text, "sample") == [
        'columns ["id","name","email"]',
        '[1,"Ada","ada@example.org"]',
        '[2,"Grace",null]',
    ]
    assert text.splitlines()[0].endswith("; statistics of 3 rows")
    assert section(text, "statistics") == [
        "id: 0 null, 3 distinct, 1 to 3",
        'name: 0 null, 2 distinct, "Ada" to "Grace"',
        'email: 2 null, 1 distinct, "ada@example.org" to "ada@example.org"',
    ]


async def test_statistics_of_a_large_table_are_marked_partial(tmp_path: Path) -> None:
    rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100002) SELECT x FROM c"
    path = made(tmp_path / "large.db", f"CREATE TABLE large (n); INSERT INTO large {rows};")
    text = await describe_table(path, "large", statistics=True)
    assert text.splitlines()[0].startswith("table; statistics of 100,001 rows, partial: ")


@pytest.mark.slow
async def test_statistics_stopped_by_the_timeout_are_partial(tmp_path: Path) -> None:
    rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000) SELECT x FROM c"
    # Many cheap rows: SQLite checks the clock only once in some hundred of them.
    slow = "slow INTEGER GENERATED ALWAYS AS (length(hex(zeroblob(100000 + fast))))"
    path = made(
        tmp_path / "slow.db", f"CREATE TABLE t (fast); INSERT INTO t {rows}; ALTER TABLE t ADD COLUMN {slow};"
    )
    async with inside("--timeout", "4", path) as peer:
        text = await peer.text("describe_table", table_name="t", statistics=True)
    assert [line.partition(":")[0] for line in section(text, "statistics")] == ["fast"]
    assert "partial" in text.splitlines()[0]


@pytest.mark.slow
async def test_an_endless_view_is_described_without_rows(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) AS top FROM c"
    async with inside("--timeout", "1", made(tmp_path / "v.db", f"CREATE VIEW v AS {endless};")) as peer:
        text = await peer.text("describe_table", table_name="v", sample=3, statistics=True)
    assert text.startswith("view; left out: 3 sample; statistics of 0 rows, partial: ")
    assert (section(text, "columns"), section(text, "sample"), section(text, "statistics")) == (["top"], [], [])


async def test_large_values_are_not_counted_as_distinct(tmp_path: Path) -> None:
    path = made(
        tmp_path / "large.db", "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(9000000)), (zeroblob(9000000));"
    )
    (column,) = section(await describe_table(path, "t", statistics=True), "statistics")
    assert column.startswith("x: 0 null, ? distinct, ")
    assert '"bytes": 9000000' in column


async def test_a_table_with_a_hostile_name_is_described(tmp_path: Path) -> None:
    async with inside(hostile(tmp_path / "odd.db", *HOSTILE)) as peer:
        for name in HOSTILE:
            text = await peer.text("describe_table", table_name=name, sample=1, statistics=True)
            assert named(text.splitlines()[2]) == name
            assert named(section(text, "columns")[0].removesuffix(" TEXT primary key 1")) == name
            in_json = json.dumps([name], ensure_ascii=False, separators=(",", ":"))
            assert section(text, "sample") == [f"columns {in_json}", in_json]
            assert f"1 distinct, {in_json[1:-1]} to " in section(text, "statistics")[0]


async def test_sql_in_place_of_a_table_name_is_not_run(tmp_path: Path) -> None:
    path = hostile(tmp_path / "odd.db")
    before = dump(path)
    async with inside("--allow-write", path) as peer:
        for name in ("victim; DROP TABLE victim", 'victim"); DROP TABLE victim; --', "victim\0", "", "*"):
            error = await peer.error("describe_table", table_name=name, sample=1, statistics=True)
            assert error.startswith("not_found: ")
    assert dump(path) == before


async def test_a_table_name_may_be_quoted_or_qualified(tmp_path: Path) -> None:
    path = made(
        tmp_path / "names.db", """CREATE TABLE "my ""table" (a); CREATE TABLE plain (a); CREATE TABLE "[x]" (a)"""
    )
    async with inside(path) as peer:
        for written in ('"my ""table"', 'main."my ""table"', '[my "table]', '`my "table`', 'my "table'):
            assert '"my \\"table"' in await peer.text("describe_table", table_name=written)
        assert "plain" in await peer.text("describe_table", table_name="MAIN.Plain")
        # An exact table name takes precedence over its reading as a quoted name.
        assert '"[x]"' in await peer.text("describe_table", table_name="[x]")
        assert (await peer.error("describe_table", table_name="other.plain")).startswith("not_found: ")
