"""`list_tables` through the front door."""

from pathlib import Path

import pytest

from tests.servers.sqlite.schemas import HOSTILE, INJECTION, SHOP, hostile, made, outside_the_marks
from tests.servers.sqlite.serving import ERAS, inside, served


@pytest.mark.parametrize("era", ERAS)
async def test_tables_are_listed_with_kind_and_estimate(tmp_path: Path, era: str) -> None:
    async with served(made(tmp_path / "shop.db", SHOP), era=era) as peer:
        result = await peer.call("list_tables")
    assert result["content"][0]["text"].splitlines()[2:-1] == [
        "table customers (about 3 rows)",
        "table items (about 2 rows)",
        "view names",
        "virtual notes",
        "table orders (about 2 rows)",
    ]
    if era >= "2025-06-18":
        first = {"name": "customers", "kind": "table", "rows_estimated": 3}
        assert result["structuredContent"]["tables"][0] == first
        assert (result["structuredContent"]["total"], result["structuredContent"]["next_cursor"]) == (5, None)


async def test_without_analyze_there_is_no_estimate(file: Path) -> None:
    async with inside(file) as peer:
        data = await peer.data("list_tables")
    assert data["tables"] == [{"name": "numbers", "kind": "table", "rows_estimated": None}]


async def test_thousands_of_tables_come_page_by_page(tmp_path: Path) -> None:
    script = "BEGIN;" + "".join(f"CREATE TABLE t{n:04} (x);" for n in range(2_500)) + "COMMIT;"
    names, cursor = [], None
    async with inside(made(tmp_path / "big.db", script)) as peer:
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            data = await peer.data("list_tables", **more)
            names += [table["name"] for table in data["tables"]]
            cursor = data["next_cursor"]
            if cursor is None:
                break
    assert names == [f"t{n:04}" for n in range(2_500)]


async def test_a_list_is_cut_at_its_limit(tmp_path: Path) -> None:
    async with inside(made(tmp_path / "shop.db", SHOP)) as peer:
        data = await peer.data("list_tables", limit=2)
    assert [table["name"] for table in data["tables"]] == ["customers", "items"]
    assert data["next_cursor"] == "items"


async def test_where_there_are_several_databases_one_must_be_named(tmp_path: Path, file: Path) -> None:
    async with served(made(tmp_path / "shop.db", SHOP), file) as peer:
        error = await peer.error("list_tables")
        data = await peer.data("list_tables", database="data")
    assert error.startswith("bad_database: ")
    assert data["total"] == 1


async def test_s6_names_of_any_characters_are_listed(tmp_path: Path) -> None:
    async with inside(hostile(tmp_path / "odd.db", *HOSTILE)) as peer:
        data = await peer.data("list_tables")
    assert {table["name"] for table in data["tables"]} == {"victim", *HOSTILE}


async def test_s10_a_name_that_gives_orders_stands_between_the_marks(tmp_path: Path) -> None:
    async with inside(hostile(tmp_path / "odd.db", INJECTION)) as peer:
        result = await peer.call("list_tables")
    text = result["content"][0]["text"]
    assert "Ignore all rules" in text
    assert "Ignore all rules" not in outside_the_marks(text)
