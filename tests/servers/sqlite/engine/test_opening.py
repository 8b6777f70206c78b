"""Opening and attaching database files."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.deadline import Limits
from servers.sqlite.engine.opening import Mode, OpenOptions, open_database
from servers.sqlite.settings import Narrowing, Settings
from tests.servers.sqlite.schemas import made
from tests.servers.sqlite.serving import inside


def pragma(path: Path, name: str, mode: Mode = "ro") -> object:
    connection = open_database(OpenOptions(path, mode, Limits()), lambda: False)
    with closing(connection):
        connection.set_authorizer(None)
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    assert connection.policy.refusal is None
    return value


def refusal(path: Path, mode: Mode = "ro") -> SqlError:
    with pytest.raises(SqlError) as raised:
        open_database(OpenOptions(path, mode, Limits()), lambda: False)
    return raised.value


def test_a_reader_has_safe_pragmas(file: Path) -> None:
    expected = {"cell_size_check": 1, "temp_store": 2, "query_only": 1, "hard_heap_limit": 2**29}
    expected["trusted_schema"] = int(sqlite3.sqlite_version_info < (3, 44))
    assert {name: pragma(file, name) for name in expected} == expected


def test_a_writer_enforces_foreign_keys(file: Path) -> None:
    assert pragma(file, "foreign_keys", "rw") == 1


def test_a_text_file_is_reported_as_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("This is a text, and no database at all. " * 100)
    assert refusal(path).code == "corrupt"


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert pragma(path, "page_count") == 0


def test_special_characters_in_a_file_name_are_literal(tmp_path: Path) -> None:
    names = {"a?mode=rwc.db", "a#b.db", "a%41.db", "file:x.db", "ä ü.db"}
    for name in names:
        path = tmp_path / name
        with closing(sqlite3.connect(path.as_uri(), uri=True)) as connection, connection:
            connection.execute("CREATE TABLE t (a)")
        assert pragma(path, "schema_version") == 1
    assert {entry.name for entry in tmp_path.iterdir()} == names


def test_errors_do_not_name_the_directory(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    assert str(tmp_path) not in str(refusal(tmp_path / "folder.db"))


def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        (tmp_path / f"of{ending}").mkdir()
        path = tmp_path / f"of{ending}" / "data.db"
        if ending:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute(f"PRAGMA journal_mode = {'delete' if ending == '-journal' else 'wal'}")
                connection.execute("CREATE TABLE t (a)")
        os.mkfifo(f"{path}{ending}")
        for refused in (refusal(path), refusal(path, "rw")):
            assert (refused.code, refused.reason.split()[0]) == ("bad_file", f"data.db{ending}")


# Statements that read attached databases (--attach)

TRIGGER = "CREATE TRIGGER t AFTER INSERT ON customers BEGIN DELETE FROM orders; END"
JOIN = "SELECT c.name, o.total FROM customers AS c JOIN sales.orders AS o ON o.customer = c.id ORDER BY 2"
CUSTOMERS = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO customers VALUES (1, 'Ada');"
ORDERS = """
CREATE TABLE orders (customer INTEGER, total DECIMAL(5, 2));
CREATE VIRTUAL TABLE texts USING fts5(body);
CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);
INSERT INTO orders VALUES (1, 2.5); INSERT INTO texts VALUES ('one two'); INSERT INTO boxes VALUES (1, 0, 5);"""


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    shop = made(tmp_path / "shop.db", CUSTOMERS)
    sales = made(tmp_path / "sales.db", ORDERS)
    return ("--attach", "--db", f"shop={shop}:rw", "--db", f"sales={sales}:rw")


async def test_attached_databases_are_read_in_one_statement(options: tuple[str, ...]) -> None:
    async with inside(*options) as peer:
        for _ in range(3):  # repeated, because the event loop runs a learned statement
            data = await peer.data("read_query", query=JOIN, database="shop")
            assert (data["rows"], data["declared"]) == ([["Ada", 2.5]], ["TEXT", "DECIMAL(5, 2)"])
        texts = await peer.data(
            "read_query", query="SELECT * FROM sales.texts WHERE texts MATCH 'two'", database="shop"
        )
        boxes = await peer.data("read_query", query="SELECT id FROM sales.boxes WHERE low < 1", database="shop")
        plan = await peer.text("explain_query", query=JOIN, database="shop")
        overview = await peer.text("describe_database", database="shop")
    assert (texts["rows"], boxes["rows"]) == ([["one two"]], [[1]])
    assert "SCAN" in plan
    assert overview.startswith("database shop; writable; statements read sales too, as NAME.TABLE\n")


async def test_without_attach_other_databases_are_not_visible(options: tuple[str, ...]) -> None:
    async with inside(*options[1:]) as peer:
        assert "no such table" in await peer.error("read_query", query=JOIN, database="shop")


async def test_attached_databases_are_not_changed(options: tuple[str, ...], tmp_path: Path) -> None:
    copy = "INSERT INTO customers SELECT 10 + customer, 'copied' FROM sales.orders"
    changes = (
        "INSERT INTO sales.orders VALUES (2, 3)",
        "UPDATE orders SET total = 0",
        "DELETE FROM sales.texts",
        "CREATE TABLE sales.more (a)",
        "DROP TABLE orders",
        f"{TRIGGER}; INSERT INTO customers VALUES (5, 1)",
    )
    async with inside(*options) as peer:
        assert (await peer.text("write_query", query=copy, database="shop")).startswith("committed; ")
        for query in changes:
            error = await peer.error("write_query", query=query, database="shop")
            assert error.startswith(("refused: ", "bad_statement: ")), error
        for query in ("ATTACH 'x.db' AS x", "DETACH sales", "PRAGMA database_list"):
            assert (await peer.error("read_query", query=query, database="shop")).startswith("refused: ")
        insert = await peer.text("write_query", query="INSERT INTO orders VALUES (2, 3)", database="sales")
    assert insert.startswith("committed; ")
    with closing(sqlite3.connect(tmp_path / "sales.db")) as connection:
        assert connection.execute("SELECT count(*), max(total) FROM orders").fetchone() == (2, 3)
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (1,)


async def test_the_policy_applies_to_attached_databases(tmp_path: Path) -> None:
    lib = tmp_path / "bad.db"
    made(lib, "CREATE TABLE slow (a, b AS (replace(a, 'a', 'b')))")
    with closing(sqlite3.connect(lib)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        table = "INSERT INTO sqlite_schema VALUES ('table', 'pages', 'pages', 0, ?)"
        connection.execute(table, ["CREATE VIRTUAL TABLE pages USING dbstat"])
    shop = made(tmp_path / "shop.db", CUSTOMERS)
    async with inside("--attach", "--db", f"shop={shop}", "--db", f"bad={lib}") as peer:
        error = await peer.error("read_query", query="SELECT * FROM bad.pages", database="shop")
        slow = await peer.data("read_query", query="SELECT b FROM bad.slow", database="shop")
    assert error.startswith("refused: the statement is not allowed: it reads a virtual table")
    assert slow["rows"] == []


async def test_changes_to_an_attached_database_are_noticed(options: tuple[str, ...], tmp_path: Path) -> None:
    pages = "SELECT total FROM sales.orders, (VALUES (1), (2), (3))"
    async with inside(*options) as peer:
        first = await peer.data("read_query", query=pages, database="shop", max_rows=1)
        with closing(sqlite3.connect(tmp_path / "sales.db")) as connection, connection:
            connection.execute("UPDATE orders SET total = 9")
        rest = await peer.data("read_query", query=pages, database="shop", cursor=first["next_cursor"])
        assert rest["changed"]
        os.replace(made(tmp_path / "new.db", ORDERS), tmp_path / "sales.db")
        assert (await peer.data("read_query", query=JOIN, database="shop"))["rows"] == [["Ada", 2.5]]


async def test_a_failing_attach_stops_the_start_with_the_reason(tmp_path: Path) -> None:
    shop = made(tmp_path / "shop.db", CUSTOMERS)
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(ValueError, match="the database 'text', which is attached"):
        async with inside("--attach", shop, tmp_path / "text.db"):
            pass
    many = [f"d{number}=a.db" for number in range(12)]
    for bad in ({"hide": ["t"], "db": ["a=a.db"]}, {"db": many}, {"db": ["main=a.db"]}, {"db": ["a=a.db", "A=b.db"]}):
        with pytest.raises(ValueError, match="attach"):
            Settings.model_validate({"attach": True, **bad})
    settings = Settings.model_validate({"attach": True, "db": ["a=a.db", "b=b.db"]})
    with pytest.raises(ValueError, match="hide: --attach"):
        settings.narrow(Narrowing(databases=["a"], hide=["t"]))
