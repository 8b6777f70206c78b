"""The server as a process: a tour by a client of each era, errors at the start, and the demo database."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.sqlite.serving import ERAS, inside, served
from tests.wire import STATELESS

SOLD = "SELECT name, sum(quantity) AS sold FROM order_lines JOIN products ON id = product_id GROUP BY id ORDER BY 2"
RENAME = "UPDATE customers SET name = 'Ada King' WHERE id = 1"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_each_era_explores_reads_exports_and_writes(file: Path, era: str) -> None:
    async with served("--allow-write", file, era=era) as peer:
        tools = {tool["name"]: tool for tool in (await peer.request("tools/list"))["result"]["tools"]}
        listed = await peer.text("list_tables")
        whole = await peer.text("describe_database")
        table = await peer.text("describe_table", table_name="numbers", sample=1)
        plan = await peer.text("explain_query", query="SELECT * FROM numbers WHERE n = 1")
        read = await peer.call("read_query", query="SELECT n, name FROM numbers WHERE n < ?", parameters=[2])
        link, _ = (await peer.call("export", query="SELECT n, name FROM numbers WHERE n < 1"))["content"]
        uri = link["uri"] if era >= "2025-06-18" else link["text"].removeprefix("data.csv: ")
        (exported,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
        missing = await peer.request("resources/read", uri="sqlite-export:///nothing.csv")
        (rows,) = (await peer.request("resources/read", uri="sqlite:///data/numbers/7"))["result"]["contents"]
        written = await peer.call("write_query", query="DELETE FROM numbers WHERE n > 7 RETURNING n", max_rows=1)
    assert all("description" in tool for tool in tools.values())
    if era >= "2025-03-26":
        assert tools["read_query"]["annotations"]["readOnlyHint"]
    assert listed.splitlines()[2] == "table numbers"
    assert whole.startswith("database data; writable\n")
    assert '  [0,"number 0"]' in table.splitlines()
    assert "SEARCH numbers USING INTEGER PRIMARY KEY" in plan
    assert read["content"][0]["text"].splitlines()[5:7] == ['[0,"number 0"]', '[1,"number 1"]']
    assert exported["text"] == "n,name\r\n0,number 0\r\n"
    assert missing["error"]["code"] == (-32602 if era == STATELESS else -32002)
    assert json.loads(rows["text"])["row"] == {"n": 7, "name": "number 7"}
    assert "statement 1: 992 rows affected" in written["content"][0]["text"]
    if era >= "2025-06-18":
        assert read["structuredContent"]["rows"] == [[0, "number 0"], [1, "number 1"]]
        assert written["structuredContent"]["statements"][0]["rows"] == [[8]]


# Errors at the start


def start(*options: str | Path) -> str:
    """Returns the only line that a server writes when it does not start."""
    command = [sys.executable, "-m", "servers.sqlite", *map(str, options)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    return ended.stderr


def test_a_missing_file_stops_the_start_and_is_not_created(tmp_path: Path) -> None:
    assert "there is no file a.db" in start("--allow-write", tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_error_at_the_start_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no directory")
    assert "two databases are called 'a'" in start(tmp_path / "a.db", tmp_path / "sub" / "a.db")
    assert "two databases are called 'demo'" in start("--demo", tmp_path / "demo.db")
    assert "it is a directory, not a database" in start(tmp_path)
    assert "there is no file a.db?mode=rwc" in start("--allow-write", f"{tmp_path}/a.db?mode=rwc")
    assert "is not a directory" in start("--queries", tmp_path / "text", "--create", tmp_path / "a.db")
    assert "specify at least one DATABASE, or --demo" in start()
    assert "nobody-of-that-name" in start("~nobody-of-that-name/a.db")
    for options in ((), ("--create",)):
        for above in ("missing", "text"):
            message = start(*options, tmp_path / above / "a.db")
            assert f"there is no directory {tmp_path / above}. Create it" in message
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


async def test_create_makes_missing_files_and_a_choice_of_several_is_required(file: Path, tmp_path: Path) -> None:
    async with inside("--create", file, tmp_path / "other.db") as peer:
        assert (await peer.error("read_query", query="SELECT 1")).startswith("bad_database: ")
        assert (await peer.error("list_tables")).startswith("bad_database: ")
        assert (await peer.error("read_query", query="SELECT 1", database="x")).endswith("Available: data, other.")
        count = "SELECT count(*) FROM sqlite_schema"
        assert (await peer.data("read_query", query=count, database="other"))["rows"] == [[0]]


@pytest.mark.slow
async def test_paths_in_a_settings_file_are_relative_to_it(file: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('databases = ["data.db"]\ndb = ["again=data.db:ro"]\n')
    async with served("--settings", tmp_path / "settings.toml") as peer:
        for name in ("data", "again"):
            data = await peer.data("read_query", query="SELECT count(*) FROM numbers", database=name)
            assert data["rows"] == [[1_000]]


# Temporary databases


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for the server's temporary files."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


async def test_the_demo_database_is_read_only_and_removed_at_the_end(file: Path, temporary: Path) -> None:
    async with served("--demo", file) as peer:
        assert [path.name for path in temporary.glob("*/*.db")] == ["demo.db"]
        listed = await peer.text("list_tables", database="demo")
        assert len((await peer.data("read_query", query=SOLD, database="demo"))["rows"]) == 18
        dates = await peer.data(
            "read_query", query="SELECT count(*), min(placed), max(placed) FROM sales", database="demo"
        )
        assert await peer.data("read_query", query="SELECT count(*) FROM numbers", database="data")
        assert (await peer.error("write_query", query=RENAME, database="demo")).startswith("read_only: ")
        assert (await peer.error("read_query", query=RENAME, database="demo")).startswith("refused: ")
    tables = [line.split(" (")[0] for line in listed.splitlines()[2:-1]]
    assert tables == ["table customers", "table order_lines", "table orders", "table products", "view sales"]
    assert dates["rows"] == [[150, "2025-01-03", "2025-12-27"]]
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
async def test_demo_and_memory_databases_are_writable_and_removed_at_the_end(temporary: Path) -> None:
    async with served("--demo", "--allow-write") as peer:
        await peer.data("write_query", query=RENAME)
        read = await peer.data("read_query", query="SELECT name FROM customers WHERE id = 1")
        assert read["rows"] == [["Ada King"]]
    async with served("--allow-write", ":memory:") as peer:
        await peer.data("write_query", query="CREATE TABLE t AS SELECT 1 AS a")
        assert (await peer.data("read_query", query="SELECT a FROM t"))["rows"] == [[1]]
    assert list(temporary.iterdir()) == []
