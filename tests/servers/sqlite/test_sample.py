"""`--demo`: a shop for first steps, which is served like any other database and gone at the end."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.sqlite.engine.database import Source, make_sample
from servers.sqlite.settings import Settings
from tests.servers.sqlite.serving import served
from tests.servers.sqlite.test_settings import start

SOLD = "SELECT name, sum(quantity) AS sold FROM order_lines JOIN products ON id = product_id GROUP BY id ORDER BY 2"
RENAME = "UPDATE customers SET name = 'Ada King' WHERE id = 1"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the server's temporary files."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


async def test_the_shop_is_served_without_any_other_database() -> None:
    async with served("--demo") as peer:
        tables = [line.split(" (")[0] for line in (await peer.text("list_tables")).splitlines()[2:-1]]
        assert tables == ["table customers", "table order_lines", "table orders", "table products", "view sales"]
        assert len((await peer.data("read_query", query=SOLD))["rows"]) == 18


async def test_the_shop_has_some_hundred_rows_of_a_year() -> None:
    async with served("--demo") as peer:
        dates = await peer.data("read_query", query="SELECT count(*), min(placed), max(placed) FROM sales")
        assert dates["rows"] == [[150, "2025-01-03", "2025-12-27"]]


async def test_the_shop_is_read_only_unless_the_operator_allows_more() -> None:
    async with served("--demo") as peer:
        assert (await peer.error("write_query", query=RENAME)).startswith("read_only: ")
        assert (await peer.error("read_query", query=RENAME)).startswith("refused: ")
    async with served("--demo", "--allow-write") as peer:
        await peer.data("write_query", query=RENAME)
        read = await peer.data("read_query", query="SELECT name FROM customers WHERE id = 1")
        assert read["rows"] == [["Ada King"]]


@pytest.mark.parametrize("options", [(), ("--allow-write",)])
async def test_the_shop_is_gone_at_the_end(options: tuple[str, ...], temporary: Path) -> None:
    async with served("--demo", *options) as peer:
        await peer.data("read_query", query=SOLD)
        assert [path.name for path in temporary.glob("*/*.db")] == ["demo.db"]
    assert list(temporary.iterdir()) == []


async def test_the_shop_is_one_more_beside_others(file: Path) -> None:
    async with served("--demo", file) as peer:
        for name, table in (("data", "numbers"), ("demo", "sales")):
            assert await peer.data("read_query", query=f"SELECT count(*) FROM {table}", database=name)


def test_the_shop_is_written_where_writing_is_allowed() -> None:
    for allowed in (False, True):
        (source,) = Settings(demo=True, allow_write=allowed).sources
        assert source == Source("demo", Path("demo.db"), allowed, sample=True)


def test_another_database_called_demo_is_refused(tmp_path: Path) -> None:
    ended = start("--demo", tmp_path / "demo.db")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "two databases are called 'demo'" in ended.stderr


def test_without_any_database_the_shop_is_proposed() -> None:
    ended = start()
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "give at least one DATABASE, or --demo" in ended.stderr


def test_the_shop_keeps_its_own_rules(tmp_path: Path) -> None:
    make_sample(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_the_shop_is_always_the_same(tmp_path: Path) -> None:
    dumps = []
    for name in ("a.db", "b.db"):
        make_sample(tmp_path / name)
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]


def test_where_the_shop_cant_be_made_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't be made"):
        make_sample(tmp_path / "missing" / "a.db")
