"""The data of the app page of a schema: tables with columns and keys, limited in size."""

from pathlib import Path

import pytest

from servers.sqlite.server import app
from shared.server.results import MAX_VIEW
from tests.servers.hosts import shown, size_of, view_of, without_marks
from tests.servers.sqlite.schemas import HOSTILE, SHOP, hostile, made


async def test_the_view_of_a_schema_has_tables_with_columns_and_keys(tmp_path: Path) -> None:
    async with shown(app, made(tmp_path / "shop.db", SHOP)) as (host, _):
        view = await view_of(host, "describe_database")
    tables = {table["name"]: table for table in view["tables"]}
    assert (view["database"], view["more"]) == ("shop", False)
    assert [(name, table["kind"], table["rows"]) for name, table in tables.items()] == [
        ("orders", "table", 2),
        ("customers", "table", 3),
        ("items", "table", 2),
        ("notes", "table", None),
        ("names", "view", None),
    ]
    assert tables["customers"]["columns"] == [
        {"name": "id", "type": "INTEGER", "not_null": False, "primary_key": 1},
        {"name": "name", "type": "TEXT", "not_null": True, "primary_key": 0},
        {"name": "email", "type": "TEXT", "not_null": False, "primary_key": 0},
    ]
    assert tables["orders"]["foreign_keys"] == [{"columns": ["customer_id"], "table": "customers", "to": []}]
    assert tables["items"]["foreign_keys"] == [{"columns": ["order_id"], "table": "orders", "to": ["id"]}]


async def test_the_view_has_more_tables_than_the_text(tmp_path: Path) -> None:
    script = "".join(f"CREATE TABLE t{n} (a INTEGER PRIMARY KEY, b TEXT REFERENCES t0, c);" for n in range(200))
    async with shown(app, made(tmp_path / "large.db", f"BEGIN; {script} COMMIT;")) as (host, other):
        answers = [(await peer.call("describe_database", max_bytes=2_000))["result"] for peer in (host, other)]
    view = answers[0]["_meta"]["view"]
    assert len(view["tables"]) == 200
    assert all(len(table["columns"]) == 3 for table in view["tables"])
    assert without_marks(answers[0]) == without_marks(answers[1])


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            "".join(f"CREATE TABLE t{n} (a INTEGER PRIMARY KEY, b TEXT);" for n in range(2_000)),
            marks=pytest.mark.slow,
            id="many tables",
        ),
        pytest.param(
            f"CREATE TABLE wide ({', '.join(f'column_number_{n} TEXT' for n in range(2_000))});", id="many columns"
        ),
        pytest.param("".join(f'CREATE TABLE "{letter * 60_000}" (a);' for letter in "abc"), id="long names"),
        pytest.param(f'CREATE TABLE named ("{"x" * 100_000}");', id="a long column"),
    ],
)
async def test_a_view_over_the_size_limit_is_truncated_and_sets_more(tmp_path: Path, script: str) -> None:
    async with shown(app, made(tmp_path / "large.db", f"BEGIN; {script} COMMIT;")) as (host, _):
        view = await view_of(host, "describe_database")
    assert view["more"] is True
    assert view["tables"]
    assert size_of(view) <= MAX_VIEW


async def test_names_in_the_view_are_not_escaped(tmp_path: Path) -> None:
    async with shown(app, hostile(tmp_path / "odd.db", *HOSTILE)) as (host, _):
        view = await view_of(host, "describe_database")
    drawn = {table["name"]: [column["name"] for column in table["columns"]] for table in view["tables"]}
    assert drawn == {"victim": ["id"], **{name: [name] for name in HOSTILE}}


async def test_only_a_chosen_database_has_a_view(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one.db", SHOP), made(tmp_path / "other.db", "CREATE TABLE t (a);")
    async with shown(app, one, other) as (host, _):
        assert "view" not in (await host.call("describe_database"))["result"].get("_meta", {})
        assert (await view_of(host, "describe_database", database="other"))["database"] == "other"
