"""`explain_query` through the front door: the plan, and that nothing is run for it."""

from pathlib import Path

import pytest

from tests.servers.sqlite.schemas import INJECTION, SHOP, dump, hostile, made, outside_the_marks
from tests.servers.sqlite.serving import ERAS, inside, served

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"

ATTACKS = [
    "SELECT 1; DROP TABLE victim",
    "; DROP TABLE victim",
    "SELECT 1;\n-- \nDROP TABLE victim",
    "-- \nSELECT 1; DELETE FROM victim",
    "/* */ ; DELETE FROM victim",
    "SELECT 1\0; DROP TABLE victim",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = ON",
    "ATTACH 'other.db' AS other",
    "BEGIN",
    "EXPLAIN SELECT 1",
    "QUERY PLAN SELECT 1",
    "",
    "--",
]
WRITES = [
    "DELETE FROM victim",
    "INSERT INTO victim VALUES (2) RETURNING id",
    "WITH c AS (SELECT 1) UPDATE victim SET id = 3",
    "DROP TABLE victim",
    "CREATE TABLE other (x)",
    "ALTER TABLE victim RENAME TO other",
    "CREATE INDEX i ON victim (id)",
    "ANALYZE",
]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return made(tmp_path / "v.db", "CREATE TABLE victim (id INTEGER PRIMARY KEY); INSERT INTO victim VALUES (1);")


@pytest.mark.parametrize("era", ERAS)
async def test_a_plan_is_a_tree_and_names_what_is_read_whole(tmp_path: Path, era: str) -> None:
    query = "SELECT * FROM customers c WHERE id IN (SELECT customer_id FROM orders o WHERE tax > ?) AND id > 1"
    async with served(made(tmp_path / "shop.db", SHOP), era=era) as peer:
        result = await peer.call("explain_query", query=query, parameters=[1])
    assert result["content"][0]["text"].splitlines()[2:-1] == [
        "SEARCH c USING INTEGER PRIMARY KEY (rowid>?)",
        "LIST SUBQUERY 1",
        "  SCAN o",
        "read whole: o",
    ]
    assert result["content"][0]["text"].splitlines()[0] == "3 steps; the statement was not run"
    assert "structuredContent" not in result


@pytest.mark.parametrize(
    ("query", "scans"),
    [
        ("SELECT count(*) FROM orders", ["orders"]),
        ("SELECT id FROM customers ORDER BY email", ["customers"]),
        ("SELECT * FROM customers a LEFT JOIN items b ON b.name = a.name", ["a", "b"]),
        ("SELECT * FROM orders WHERE id = 1", []),
        ("SELECT body FROM notes WHERE notes MATCH 'x'", []),
        ("WITH c AS MATERIALIZED (SELECT * FROM orders WHERE id = 1) SELECT * FROM c", []),
        (ENDLESS, []),
        ("VALUES (1), (2)", []),
    ],
)
async def test_only_tables_that_are_read_whole_are_named(tmp_path: Path, query: str, scans: list[str]) -> None:
    async with inside(made(tmp_path / "shop.db", SHOP)) as peer:
        text = await peer.text("explain_query", query=query)
    told = [line for line in text.splitlines() if line.startswith("read whole: ")]
    assert told == [f"read whole: {', '.join(scans)}"] * bool(scans)


async def test_parameters_may_have_names(file: Path) -> None:
    async with inside(file) as peer:
        text = await peer.text("explain_query", query="SELECT * FROM numbers WHERE n = :n", parameters={"n": 1})
    assert text.splitlines()[2:-1] == ["SEARCH numbers USING INTEGER PRIMARY KEY (rowid=?)"]


async def test_parameters_may_be_left_out(file: Path) -> None:
    async with inside(file) as peer:
        text = await peer.text("explain_query", query="SELECT name FROM numbers WHERE n = :n AND name <> ?")
    assert text.splitlines()[2:-1] == ["SEARCH numbers USING INTEGER PRIMARY KEY (rowid=?)"]


async def test_a_plan_of_very_many_steps_is_cut(file: Path) -> None:
    query = " UNION ALL ".join(["SELECT * FROM numbers WHERE n = (SELECT 1)"] * 400)
    async with inside(file) as peer:
        text = await peer.text("explain_query", query=query)
    assert text.startswith("500 steps, cut; ")
    assert text.count("\n") == 502


@pytest.mark.parametrize("mode", ["ro", "rw"])
async def test_nothing_comes_in_behind_the_explanation(victim: Path, mode: str) -> None:
    before = dump(victim)
    async with inside("--db", f"v={victim}:{mode}") as peer:
        errors = {query: await peer.error("explain_query", query=query) for query in ATTACKS}
        modes = await peer.data("read_query", query="PRAGMA journal_mode")
    for query, error in errors.items():
        assert error.partition(":")[0] in ("bad_statement", "refused"), query
    assert modes["rows"] == [["delete"]]
    assert dump(victim) == before
    assert [path.name for path in victim.parent.iterdir()] == ["v.db"]


@pytest.mark.parametrize("query", WRITES)
async def test_a_statement_that_writes_is_refused_where_nothing_may_be_written(victim: Path, query: str) -> None:
    async with inside(victim) as peer:
        error = await peer.error("explain_query", query=query)
    assert error.startswith("refused: ")


@pytest.mark.parametrize("query", WRITES)
async def test_a_statement_that_writes_is_explained_and_not_run(victim: Path, query: str) -> None:
    before = dump(victim)
    async with inside("--allow-write", victim) as peer:
        assert "the statement was not run" in await peer.text("explain_query", query=query)
        rows = await peer.data("read_query", query="SELECT id FROM victim")
    assert rows["rows"] == [[1]]
    assert dump(victim) == before


@pytest.mark.parametrize("query", ["VACUUM INTO 'copy.db'", "VACUUM", "REINDEX"])
async def test_what_has_no_plan_is_not_run_either(victim: Path, query: str) -> None:
    before = victim.read_bytes()
    async with inside("--allow-write", victim) as peer:
        text = await peer.text("explain_query", query=query)
    assert text.startswith("0 steps; the statement was not run\n")
    assert victim.read_bytes() == before
    assert [path.name for path in victim.parent.iterdir()] == ["v.db"]


async def test_s10_a_name_in_a_plan_stands_between_the_marks(tmp_path: Path) -> None:
    async with inside(hostile(tmp_path / "odd.db", INJECTION)) as peer:
        result = await peer.call("explain_query", query=f"""SELECT * FROM "{INJECTION.replace('"', '""')}" """)
    text = result["content"][0]["text"]
    assert "Ignore all rules" in text
    assert "Ignore all rules" not in outside_the_marks(text)
