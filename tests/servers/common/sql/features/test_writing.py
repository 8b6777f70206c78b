"""Tools that change a database: statements and parameters, dry runs, results, imports, and the questions of
`--confirm-rows` before changes of the schema or of many rows."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from servers.sqlite.server import app
from tests.servers.peers import FORMS, AskedPeer, consented, wired_inside
from tests.servers.sqlite.serving import inside, served
from tests.servers.sqlite.writing import SCHEMA
from tests.wire import STATELESS

every_era = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
LATER, ALL = "DELETE FROM t WHERE a = 1", "DELETE FROM t"
ASKED = f"Change data? 4 rows change (child, t):\n{ALL}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture(autouse=True)
def db(path: Path) -> Iterator[sqlite3.Connection]:
    """A second connection to the database, as of another process."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        yield connection


def count(db: sqlite3.Connection, table: str = "t") -> int:
    rows: int = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return rows


# Statements and their results


async def test_a_statement_is_committed_and_reported_as_text_and_data(path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", path) as peer:
        result = await peer.call("write_query", query="INSERT INTO t VALUES (?, ?) RETURNING b", parameters=[7, "x"])
    lines = result["content"][0]["text"].splitlines()
    assert lines[0].startswith("committed; ")
    assert lines[2:5] == [
        "statement 1: 1 row affected; last_insert_rowid 7; tables t; 1 row returned",
        'columns ["b"]',
        '["x"]',
    ]
    data = result["structuredContent"]
    assert (data["committed"], data["statements"][0]["rows"]) == (True, [["x"]])
    assert db.execute("SELECT * FROM t WHERE a = 7").fetchall() == [(7, "x")]


async def test_a_dry_run_is_reported_as_text_and_data(path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", path) as peer:
        result = await peer.call("write_query", query="UPDATE t SET b = 'x' WHERE a = 1 RETURNING *", dry_run=True)
    text = result["content"][0]["text"].splitlines()
    assert text[0].startswith("dry run: all of this was rolled back; ")
    assert text[2:-1] == [
        "statement 1: 1 row affected; tables t; 1 row returned",
        'columns ["a","b"]',
        '[1,"x"]',
        "table t: 1 updated",
        'columns ["a","b"]',
        '- [1,"one"]',
        '+ [1,"x"]',
    ]
    assert result["structuredContent"]["changes"][0]["rows"] == [[[1, "one"], [1, "x"]]]
    assert db.execute("SELECT b FROM t WHERE a = 1").fetchone() == ("one",)


async def test_a_list_of_statements_has_parameters_for_each(path: Path, db: sqlite3.Connection) -> None:
    queries = ["INSERT INTO t VALUES (?, ?)", "INSERT INTO keyed VALUES (:k, 2)", "DELETE FROM log"]
    async with inside("--allow-write", path) as peer:
        data = await peer.data("write_query", query=queries, parameters=[[5, "five"], {"k": "key"}, []])
        for wrong in ([[1, "x"]], {"a": 1}, [[1, "x"], 2]):
            error = await peer.error("write_query", query=["INSERT INTO t VALUES (?, ?)", ALL], parameters=wrong)
            assert error.startswith("bad_parameters: ")
    assert [statement["affected"] for statement in data["statements"]] == [1, 1, 1]
    query = "SELECT b, (SELECT k FROM keyed), (SELECT count(*) FROM log) FROM t WHERE a = 5"
    assert db.execute(query).fetchall() == [("five", "key", 0)]


async def test_a_script_is_one_transaction_with_named_parameters(path: Path, db: sqlite3.Connection) -> None:
    script = """
        INSERT INTO t VALUES (:a, 'x; y'); -- the first
        CREATE TRIGGER again AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.b); SELECT 1; END;
        UPDATE t SET b = :b WHERE a = :a;"""
    async with inside("--allow-write", path) as peer:
        done = await peer.data("write_query", query=script, parameters={"a": 7, "b": "z"})
        failed = await peer.text("write_query", query="DELETE FROM t; DELETE FROM nothing")
        odd = await peer.text("write_query", query=script, parameters={"a": 7, "b": "z", "c": 1})
        flat = await peer.text("write_query", query=script, parameters=[7, "z"])
    assert [statement["affected"] for statement in done["statements"]] == [1, 0, 1]
    assert db.execute("SELECT * FROM t WHERE a = 7").fetchall() == [(7, "z")]
    assert failed.startswith("bad_statement: statement 2: ")
    assert count(db) == 3
    assert odd == "bad_parameters: no statement has :c"
    assert flat.startswith("bad_parameters: for 3 statements, parameters must be a list of 3 entries")


async def test_a_script_of_too_many_statements_is_refused(path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", path) as peer:
        text = await peer.text("write_query", query="DELETE FROM t;" * 501)
    assert text == "too_large: there are more than 500 statements. Run fewer at once."
    assert count(db) == 2


async def test_a_writing_statement_in_read_query_names_the_tool_or_option(path: Path) -> None:
    async with inside("--allow-write", path) as peer:
        assert (await peer.text("read_query", query=ALL)).endswith("changes the database. Use write_query.")
        assert "Omit BEGIN" in await peer.text("write_query", query=f"BEGIN; {ALL}; COMMIT")
    async with inside(path) as peer:
        for query in (ALL, "DROP TABLE t"):
            assert (await peer.text("read_query", query=query)).endswith(
                "changes the database. The operator can allow changes with --allow-write, or --db NAME=PATH:rw."
            )


async def test_returned_rows_are_limited_by_max_rows_and_a_shared_budget(path: Path) -> None:
    async with inside("--allow-write", "--max-page", "5000", path) as peer:
        (statement,) = (await peer.data("write_query", query="SELECT a FROM t ORDER BY a", max_rows=1))["statements"]
        shared = (await peer.data("write_query", query=["SELECT hex(zeroblob(600))"] * 20))["statements"]
    assert (statement["columns"], statement["rows"], statement["truncated"]) == (["a"], [[1]], True)
    shown = [len(statement["rows"]) for statement in shared]
    assert 0 < sum(shown) < 5
    assert ["truncated" in statement for statement in shared] == [not count for count in shown]


@pytest.mark.slow
async def test_a_result_over_the_limit_is_refused_before_the_commit(path: Path, db: sqlite3.Connection) -> None:
    async with served("--allow-write", "--max-result", "100000", path) as peer:
        for size in (150_000, 49_500):
            long = "x" * size  # both forms of the result contain it, with some more words
            await peer.data("write_query", query=f'CREATE TABLE "{long}" (a)')
            assert (await peer.error("write_query", query=f'INSERT INTO "{long}" VALUES (1)')).startswith(
                "too_large: "
            )
            assert count(db, f'"{long}"') == 0


async def test_a_read_only_database_is_not_changed(path: Path, db: sqlite3.Connection) -> None:
    async with inside("--db", f"a={path}:ro", "--db", f"b={path}:rw") as peer:
        error = await peer.error("write_query", query=ALL, database="a")
        await peer.data("write_query", query=LATER, database="b")
    assert error.startswith("read_only: the database 'a' is read-only")
    assert count(db) == 1


async def test_create_table_accepts_create_table_statements_only(path: Path) -> None:
    async with inside("--allow-write", path) as peer:
        text = await peer.text("create_table", query="CREATE TABLE new (a)")
        error = await peer.error("create_table", query="DROP TABLE new")
    assert text.splitlines()[2] == "statement 1: 0 rows affected; the schema changed"
    assert error == "refused: the statement is not allowed: it does something other than CREATE TABLE"


async def test_import_csv_reads_text_or_a_file_in_the_operators_directory(path: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n1,\xc3\xa4\r\n")
    async with inside("--allow-write", "--files", tmp_path, path) as peer:
        text = (await peer.text("import_csv", table="new", file="rows.csv")).splitlines()
        rows = await peer.data("read_query", query="SELECT * FROM new")
        neither = await peer.error("import_csv", table="new")
        nameless = await peer.error("import_csv", table="", csv="a\n1\n")
    async with inside("--allow-write", path) as peer:
        no_files = await peer.error("import_csv", table="new", file="rows.csv")
    assert text[0].startswith("1 row imported into a new table; ")
    assert text[2:4] == ["table new", 'columns ["a INTEGER","b TEXT"]']
    assert rows["rows"] == [[1, "ä"]]
    assert neither == "bad_csv: pass either csv or file"
    assert nameless.startswith("bad_csv: the table needs a name")
    assert no_files.startswith("refused: this server has no directory for files")


async def test_a_preview_describes_the_import_and_changes_nothing(path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", path) as peer:
        text = await peer.text("import_csv", table_name="new", csv="a;b\n1,5;x\n2;\n", preview=True)
    assert text.startswith("preview, nothing was changed: 2 rows would be imported into a new table; ")
    lines = text.splitlines()
    assert lines[3] == 'columns ["a REAL","b TEXT"]'
    assert 'delimiter ";"; row 1 names the columns' in lines[4]
    assert lines[-4:-1] == ["first rows", '["1.5","x"]', '["2",null]']
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'new'").fetchone() == (0,)


async def test_given_format_options_of_an_import_are_used(path: Path, db: sqlite3.Connection, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes("note\n'zip'~'caf\xe9'\n'7'~'-'\n".encode("cp1252"))
    given = {"header": 2, "delimiter": "~", "quote": "'", "encoding": "cp1252", "nulls": ["-"], "types": ["zip=text"]}
    async with inside("--allow-write", "--files", tmp_path, path) as peer:
        await peer.text("import_csv", table_name="new", file="old.txt", **given)
    assert db.execute("SELECT typeof(zip), café FROM new").fetchall() == [("text", None)]


async def test_header_0_means_no_line_of_column_names(path: Path, db: sqlite3.Connection) -> None:
    async with inside("--allow-write", path) as peer:
        await peer.text("import_csv", table_name="new", csv="city,people\nUlm,5\nBonn,6\n", header=0)
    assert db.execute("SELECT c1, c2 FROM new").fetchall() == [("city", "people"), ("Ulm", "5"), ("Bonn", "6")]


async def test_table_name_and_the_older_table_are_accepted_by_all_tools(path: Path) -> None:
    async with inside("--allow-write", path) as peer:
        for name in ("table_name", "table"):
            assert "1 row imported" in await peer.text("import_csv", **{name: f"by_{name}"}, csv="a\n1\n")
            assert "a INTEGER" in await peer.text("describe_table", **{name: f"by_{name}"})


# Consent of the user


@asynccontextmanager
async def asking(
    path: Path, era: str, rows: int, actions: str = "", meanwhile: Callable[[], object] = lambda: None
) -> AsyncIterator[AskedPeer]:
    options = ["--allow-write", "--busy-timeout", "0", "--confirm-rows", str(rows), str(path)]
    async with wired_inside(app, *options, era=era) as wire:
        peer = AskedPeer(wire, era, actions, meanwhile)  # type: ignore[arg-type]
        wire.answers["elicitation/create"] = peer.answer
        yield peer


@every_era
async def test_the_user_is_asked_before_changes_of_many_rows_or_the_schema(
    path: Path, db: sqlite3.Connection, era: str
) -> None:
    async with asking(path, era, 3, "accept accept accept accept accept") as peer:
        assert (await peer.text("write_query", query="UPDATE t SET b = a")).startswith("committed; ")
        await peer.text("import_csv", table="log", csv="said\nx\ny\nz\n")
        assert peer.questions == []
        assert (await peer.text("write_query", query=ALL)).startswith("committed; ")
        assert (await peer.text("write_query", query="DROP TABLE child")).startswith("committed; ")
        assert (await peer.text("create_table", query="CREATE TABLE new (a)")).startswith("committed; ")
        await peer.text("import_csv", table="log", csv="said\nx\ny\nz\nä\n")
        await peer.text("import_csv", table="newer", csv="a\n1\n")
    assert peer.questions == [
        ASKED,
        "Change data? the schema changes:\nDROP TABLE child",
        "Change data? the schema changes:\nCREATE TABLE new (a)",
        "Change data? 4 rows change (log):\nimport a CSV into log",
        "Change data? the schema changes and 1 row changes (newer):\nimport a CSV into newer",
    ]
    assert [count(db, table) for table in ("t", "new", "log", "newer")] == [0, 0, 7, 1]


@every_era
async def test_declined_and_cancelled_changes_are_not_made(path: Path, db: sqlite3.Connection, era: str) -> None:
    async with asking(path, era, 0, "decline cancel") as peer:
        for _ in range(2):
            assert (await peer.text("write_query", query=ALL)).startswith("declined: ")
    assert (peer.questions, count(db)) == ([ASKED] * 2, 2)


@every_era
async def test_the_database_is_not_locked_during_a_question_to_the_user(
    path: Path, db: sqlite3.Connection, era: str
) -> None:
    async with asking(path, era, 0, "accept", lambda: db.execute("INSERT INTO log VALUES ('theirs')")) as peer:
        text = await peer.text("write_query", query="DELETE FROM t WHERE a = ?", parameters=[2])
    assert text.startswith("committed; ")
    assert peer.questions == ["Change data? 1 row changes (child, t):\nDELETE FROM t WHERE a = ? -- [2]"]
    assert (count(db), count(db, "log")) == (1, 1)


@every_era
async def test_consent_does_not_cover_rows_added_since_the_question(
    path: Path, db: sqlite3.Connection, era: str
) -> None:
    def write() -> None:
        db.execute("INSERT OR IGNORE INTO t VALUES (3, 'theirs')")

    async with asking(path, era, 0, "accept decline", write) as peer:
        text = await peer.text("write_query", query=ALL)
    if era == STATELESS:  # the user is asked again
        assert text.startswith("declined: ")
        assert peer.questions[-1] == f"Change data? 5 rows change (child, t):\n{ALL}"
    else:
        assert text.startswith("changed: the database has changed since the user was asked")
        assert text.splitlines()[2:4] == ["asked: 4 rows change (child, t)", "now: 5 rows change (child, t)"]
    assert count(db) == 3


LONG = "INSERT INTO log VALUES ('" + "x" * 1_000


@pytest.mark.parametrize(
    ("tool", "agreed", "other"),
    [
        ("import_csv", {"table": "log", "csv": "said\nx\n"}, {"table": "log", "csv": "said\ny\n"}),
        ("write_query", {"query": f"{LONG}x')"}, {"query": f"{LONG}y')"}),
    ],
)
async def test_consent_does_not_cover_other_arguments_with_the_same_question(
    path: Path, db: sqlite3.Connection, tool: str, agreed: dict[str, Any], other: dict[str, Any]
) -> None:
    async with wired_inside(app, "--allow-write", "--confirm", path, era=STATELESS) as wire:
        assert (await consented(wire, tool, agreed, other))["resultType"] == "input_required"
    assert count(db, "log") == 0


@every_era
async def test_consent_to_an_import_does_not_cover_a_changed_file(
    path: Path, db: sqlite3.Connection, tmp_path: Path, era: str
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("said\nx\n")

    def meanwhile() -> None:
        if file.read_text() == "said\nx\n":
            file.write_text("said\nother\n")

    async with wired_inside(app, "--allow-write", "--confirm", "--files", tmp_path, path, era=era) as wire:
        peer = AskedPeer(wire, era, "accept decline", meanwhile)
        wire.answers["elicitation/create"] = peer.answer
        text = await peer.text("import_csv", table="log", file="rows.csv")
    # Without a session the user is asked again.
    assert text.startswith("declined: " if era == STATELESS else "changed: the file has been changed")
    assert count(db, "log") == 0


async def test_dry_runs_and_failing_statements_ask_no_question(path: Path) -> None:
    async with asking(path, "2025-11-25", 0) as peer:
        assert (await peer.text("write_query", query="DROP TABLE t", dry_run=True)).startswith("dry run: ")
        text = await peer.text("write_query", query=["DROP TABLE child", "INSERT INTO t VALUES (1, 'x')"])
    assert (text.split(":")[0], peer.questions) == ("constraint", [])


@pytest.mark.parametrize(
    ("era", "capabilities"),
    [("2025-11-25", {}), (STATELESS, {}), pytest.param("2024-11-05", FORMS, marks=pytest.mark.slow)],
)
async def test_a_change_is_refused_if_the_client_can_not_ask_the_user(
    path: Path, db: sqlite3.Connection, era: str, capabilities: dict[str, Any]
) -> None:
    async with wired_inside(app, "--allow-write", "--confirm", path, era=era, capabilities=capabilities) as wire:
        answer = await wire.request("tools/call", {"name": "write_query", "arguments": {"query": ALL}})
    assert answer["result"]["content"][0]["text"].startswith("cannot_confirm: this server asks the user ")
    assert count(db) == 2
