"""What other servers were seen to get wrong, S1 to S14, each through the real door: a process, and a client's bytes.

S7 and S10 are in test_hostile_files.py, as far as they are about files that mean harm; what lets nobody else wait is
in test_patience.py.
"""

import hashlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers.sqlite.malicious import BOMB, made
from tests.servers.sqlite.serving import Peer, served
from tests.wire import Wire

pytestmark = pytest.mark.slow

COUNTED = f"SELECT count(*) FROM ({BOMB})"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Two accounts, and a table of a thousand numbers."""
    count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) SELECT * FROM c"
    return made(tmp_path, f"CREATE TABLE number (n INTEGER PRIMARY KEY); INSERT INTO number {count};")


def hashed(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


async def rows(peer: Peer, query: str, **more: Any) -> list[Any]:
    found: list[Any] = (await peer.data("read_query", query=query, **more))["rows"]
    return found


# What has no end (S1, S2)


async def test_s1_an_endless_query_ends_by_its_time_limit(database: Path) -> None:
    async with served("--timeout", "1.5", database) as peer:
        assert (await peer.error("read_query", query=COUNTED)).startswith("timeout: stopped after 1.5 seconds")
        assert await rows(peer, "SELECT 1") == [[1]]


async def test_s1_cancelled_queries_leave_no_reader_at_work(database: Path) -> None:
    async with served("--readers", "2", database) as peer:
        for id_ in range(1_000, 1_010):
            params = {"name": "read_query", "arguments": {"query": COUNTED}}
            await peer.wire.send({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})
            await peer.wire.notify("notifications/cancelled", {"requestId": id_})
        assert await rows(peer, "SELECT 1") == [[1]]
        assert not peer.wire.responses


async def test_s1_an_endless_view_ends_too(tmp_path: Path) -> None:
    database = made(tmp_path, f"CREATE VIEW endless AS {BOMB};")
    async with served("--timeout", "0.5", database) as peer:
        assert (await peer.error("read_query", query="SELECT max(x) FROM endless")).startswith("timeout: ")
        assert await rows(peer, "SELECT x FROM endless LIMIT 2") == [[1], [2]]


async def test_s2_a_cross_join_of_a_billion_rows_ends_by_its_time_limit(database: Path) -> None:
    join = "SELECT a.n FROM number a, number b, number c ORDER BY a.n * b.n % 7, c.n LIMIT 10"
    async with served("--timeout", "0.5", database) as peer:
        assert (await peer.error("read_query", query=join)).startswith("timeout: ")


async def test_s2_of_a_cross_join_that_is_not_sorted_the_first_rows_come(database: Path) -> None:
    async with served(database) as peer:
        join = "SELECT c.n FROM number a, number b, number c LIMIT 10"
        assert await rows(peer, join) == [[n] for n in range(1, 11)]


# What is too large (S3)

TOO_LARGE = (
    "SELECT zeroblob(50000000)",
    "SELECT randomblob(1000000000)",
    "SELECT zeroblob(1e9)",
    f"SELECT group_concat(x, printf('%.*c', 100000, 'x')) FROM ({BOMB})",
    "SELECT replace(hex(zeroblob(7000000)), '0', 'many bytes for one')",
    "SELECT count(*) FROM number WHERE printf('%.*c', 100000, 'a') LIKE printf('%.*c', 60000, '%')",
    "SELECT 'a' GLOB printf('%.*c', 60000, '*')",
    f"SELECT {'(' * 5_000}1{')' * 5_000}",
    f"SELECT {'+'.join('1' * 5_000)}",
    f"SELECT {','.join('1' * 5_000)}",
    f"SELECT {' UNION ALL SELECT '.join('1' * 5_000)}",
    f"SELECT '{'x' * 1_100_000}'",
    f"SELECT {','.join('?' * 33_000)}",
    "SELECT json(printf('%.*c', 100000, '['))",
)


async def test_s3_what_is_too_large_is_an_error(database: Path) -> None:
    async with served("--timeout", "2", database) as peer:
        for query in TOO_LARGE:
            assert len(await peer.error("read_query", query=query)) < 2_000
        assert await rows(peer, "SELECT 1") == [[1]]


@pytest.mark.parametrize(
    ("query", "kind"), [("SELECT zeroblob(10000000)", "blob"), ("SELECT printf('%.*c', 10000000, 'x')", "text")]
)
async def test_s3_a_long_value_is_cut_and_its_length_told(database: Path, query: str, kind: str) -> None:
    async with served(database) as peer:
        result = await peer.call("read_query", query=query)
    [[cell]] = result["structuredContent"]["rows"]
    assert (cell["type"], cell["bytes"], cell["truncated"]) == (kind, 10_000_000, True)
    assert len(json.dumps(result)) < 100_000


@pytest.mark.slow
async def test_s3_a_text_of_a_billion_characters_is_none(database: Path) -> None:
    """SQLite gives NULL for it, after it has counted them all in one instruction."""
    async with served(database) as peer:
        assert await rows(peer, "SELECT printf('%.*c', 1000000000, 'x')") == [[None]]


async def test_s3_thirty_thousand_parameters_are_taken(database: Path) -> None:
    async with served(database) as peer:
        query = f"SELECT count(*) FROM number WHERE n IN ({','.join('?' * 30_000)})"
        assert await rows(peer, query, parameters=list(range(30_000))) == [[1_000]]


async def test_s3_a_million_rows_come_in_pages(database: Path) -> None:
    async with served(database) as peer:
        result = await peer.call("read_query", query="SELECT a.n, b.n FROM number a, number b")
    assert result["structuredContent"]["truncated"]
    assert result["structuredContent"]["next_cursor"]
    assert len(json.dumps(result)) < 1_000_000


# What is no reading, whatever it looks like (S4, S5)

HARMFUL = (
    "ATTACH '{folder}/other.db' AS other",
    "ATTACH 'file:{folder}/other.db?mode=rwc' AS other",
    "ATTACH '' AS other",
    "DETACH main",
    "VACUUM INTO '{folder}/copy.db'",
    "VACUUM",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = wal",
    "PRAGMA journal_mode(delete)",
    "PRAGMA query_only = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA user_version = 7",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store_directory = '/'",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA mmap_size = 1000000000",
    "SELECT * FROM pragma_journal_mode('wal')",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('{folder}/x', 'y')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM fts3tokenize",
    "CREATE VIRTUAL TABLE temp.x USING csv(filename='/etc/passwd')",
    "CREATE TEMP TABLE x (y)",
    "CREATE TEMP TRIGGER x AFTER INSERT ON account BEGIN DELETE FROM account; END",
    "BEGIN EXCLUSIVE",
    "WITH x AS (SELECT 1) DELETE FROM account",
    "WITH x AS (SELECT 1) INSERT INTO account SELECT 9, 'x', 9",
    "DELETE FROM account RETURNING *",
    "/* SELECT */ DELETE FROM account",
    "-- SELECT\nDELETE FROM account",
    "EXPLAIN DELETE FROM account",
    "SELECT 1; DELETE FROM account",
    ";;; DELETE FROM account",
    "SELECT 1;\0DELETE FROM account",
    "SELECT 1\0; DELETE FROM account",
    "\ufeffDELETE FROM account",
    "\u00a0DELETE FROM account",
    "REPLACE INTO account VALUES (1, 'Eve', 0)",
    "INSERT INTO account VALUES (1, 'Eve', 0) ON CONFLICT DO UPDATE SET sum = 0",
    "DROP TABLE account",
    "UPDATE sqlite_schema SET sql = ''",
    "DELETE FROM place_node",
)


async def test_s4_s5_no_statement_that_reads_can_do_anything_else(tmp_path: Path) -> None:
    database = made(tmp_path, "CREATE VIRTUAL TABLE place USING rtree (id, x0, x1);")
    before = hashed(database)
    async with served(database) as peer:
        for query in HARMFUL:
            result = await peer.call("read_query", query=query.format(folder=tmp_path))
            assert result.get("isError"), query
    assert hashed(database) == before
    assert [file.name for file in tmp_path.iterdir()] == ["data.db"]


READING = (
    "SELECT count(*) FROM account",
    "VALUES (2)",
    "WITH x AS (SELECT 2 AS y) SELECT y FROM x",
    "-- how many?\nSELECT 2;",
    "/* how many? */ SELECT 2 -- two",
    " ;SELECT 2",
    "SELECT 2 WHERE 'DELETE; DROP TABLE' <> ''",
    "PRAGMA user_version",
    "SELECT count(*) FROM pragma_table_info('account') WHERE name = 'owner' OR name = 'sum'",
    "SELECT count(*) FROM json_each('[1, 2]')",
    "SELECT count(*) FROM place",
)


async def test_s5_all_that_reads_is_answered(tmp_path: Path) -> None:
    places = "CREATE VIRTUAL TABLE place USING rtree (id, x0, x1); INSERT INTO place VALUES (1, 0, 1), (2, 0, 1);"
    async with served(made(tmp_path, f"{places} PRAGMA user_version = 2;")) as peer:
        for query in READING:
            assert await rows(peer, query) == [[2]], query


async def test_s5_the_plan_of_a_query_is_told(database: Path) -> None:
    async with served(database) as peer:
        assert "SCAN account" in str(await rows(peer, "EXPLAIN QUERY PLAN SELECT * FROM account"))


# S6: the names of tables and columns


async def test_s6_any_name_of_a_table_is_a_name(tmp_path: Path) -> None:
    names = ['a"b', "a]b", "a`b", "a'b", "a b", "🗄", "select", "x; DROP TABLE account", "%", "a.b"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    tables = (f"CREATE TABLE {one} ({one} TEXT); INSERT INTO {one} VALUES ('here');" for one in quoted)
    async with served(made(tmp_path, "".join(tables))) as peer:
        for name, one in zip(names, quoted, strict=True):
            data = await peer.data("read_query", query=f"SELECT * FROM {one}")
            assert (data["columns"][0], data["rows"]) == (name, [["here"]])


# S8: values, and what is told of their columns

VALUES = (
    ("9007199254740992", 2**53),
    ("9007199254740993", {"type": "integer", "value": "9007199254740993"}),
    ("-9223372036854775808", {"type": "integer", "value": "-9223372036854775808"}),
    ("9e999", {"type": "real", "value": "Infinity"}),
    ("-9e999", {"type": "real", "value": "-Infinity"}),
    ("9e999 - 9e999", None),
    ("1.0", 1.0),
    ("0.1 + 0.2", 0.1 + 0.2),
    ("NULL", None),
    ("''", ""),
    ("'a' || char(0) || 'b'", "a\0b"),
    ("'😀'", "😀"),
    ("x''", {"type": "blob", "bytes": 0, "base64": ""}),
    ("x'00ff'", {"type": "blob", "bytes": 2, "base64": "AP8="}),
    ("CAST(x'ff41' AS TEXT)", {"type": "text", "bytes": 2, "base64": "/0E="}),
    ("CAST('text' AS BLOB)", {"type": "blob", "bytes": 4, "base64": "dGV4dA=="}),
)


async def test_s8_a_value_comes_as_it_is(database: Path) -> None:
    async with served(database) as peer:
        for expression, value in VALUES:
            [[found]] = await rows(peer, f"SELECT {expression}")
            assert (found, type(found)) == (value, type(value)), expression


async def test_s8_a_value_that_came_can_be_given_back(database: Path) -> None:
    async with served(database) as peer:
        for expression, _ in VALUES:
            if "CAST(x" in expression:  # a parameter can be no text that is not UTF-8
                continue
            [[found]] = await rows(peer, f"SELECT {expression}")
            same = f"SELECT ?1 IS ({expression}) AND typeof(?1) = typeof({expression})"
            assert await rows(peer, same, parameters=[found]) == [[1]], expression


async def test_s8_columns_of_the_same_name_or_of_none_are_all_there(database: Path) -> None:
    async with served(database) as peer:
        data = await peer.data("read_query", query="SELECT 1 AS x, 2 AS x, 3 AS '', 4 AS ''")
    assert data["columns"] == ["x", "x", "", ""]
    assert data["rows"] == [[1, 2, 3, 4]]


async def test_s8_a_column_tells_the_types_that_it_holds(tmp_path: Path) -> None:
    values = "INSERT INTO mixed VALUES (1), (1.5), ('x'), (x'00'), (NULL);"
    database = made(tmp_path, f"CREATE TABLE mixed (a VARCHAR(9)); CREATE TABLE any (b BLOB); {values}")
    async with served(database) as peer:
        data = await peer.data("read_query", query="SELECT a FROM mixed")
    # The affinity of TEXT makes texts of the numbers.
    assert (data["declared"], data["types"]) == (["VARCHAR(9)"], ["blob, null, text"])


async def test_s8_strict_tables_those_without_rowid_and_generated_columns_are_read(tmp_path: Path) -> None:
    strict = (
        "CREATE TABLE s (a INT PRIMARY KEY, b ANY, c INT AS (a * 2), d INT AS (a + 1) STORED) STRICT, WITHOUT ROWID;"
    )
    database = made(tmp_path, f"{strict} INSERT INTO s VALUES (1, 'x'), (2, 9007199254740993);")
    async with served(database) as peer:
        found = await rows(peer, "SELECT * FROM s")
    assert found == [[1, "x", 2, 2], [2, {"type": "integer", "value": "9007199254740993"}, 4, 3]]


# S9: locks of other processes


async def test_s9_a_lock_is_told_and_nobody_waits_for_ever(database: Path) -> None:
    async with served("--busy-timeout", "0.2", database) as peer:
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert (await peer.error("read_query", query="SELECT * FROM account")).startswith("busy: ")
        assert await rows(peer, "SELECT count(*) FROM account") == [[2]]


async def test_s9_a_ping_is_answered_while_a_lock_is_waited_for(database: Path) -> None:
    async with served("--busy-timeout", "60", "--timeout", "60", database) as peer:
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            params = {"name": "read_query", "arguments": {"query": "SELECT sum FROM account WHERE id = 1"}}
            await peer.wire.send({"jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": params})
            for _ in range(20):
                assert "result" in await peer.request("ping")
            assert not peer.wire.responses
            other.execute("COMMIT")
        answer = await peer.wire.response(1_000)
    assert answer["result"]["structuredContent"]["rows"] == [[100]]


# S11: pages, and changes in between


@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_s11_a_page_goes_on_truly_while_another_process_deletes(database: Path, mode: str) -> None:
    query, pages = "SELECT n FROM number ORDER BY n", []
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        async with served(database) as peer:
            pages.append(await peer.data("read_query", query=query, max_rows=10))
            other.execute("DELETE FROM number WHERE n <= 15")
            more = {"cursor": pages[0]["next_cursor"], "max_rows": 10}
            pages.append(await peer.data("read_query", query=query, **more))
    assert [page["changed"] for page in pages] == [False, mode == "delete"]
    if mode == "wal":
        assert pages[1]["rows"] == [[n] for n in range(11, 21)]


# Which file (S12)


async def test_s12_a_missing_file_is_not_made(tmp_path: Path) -> None:
    for name in ("missing.db", "file:missing.db?mode=rwc", "missing.db?mode=rwc"):
        async with Wire([sys.executable, "-m", "servers.sqlite", "--allow-write", str(tmp_path / name)]) as wire:
            assert await wire.wait() != 0
    assert list(tmp_path.iterdir()) == []


async def test_s12_a_name_with_the_parameters_of_a_uri_is_a_name(database: Path, tmp_path: Path) -> None:
    odd = database.rename(tmp_path / "data.db?mode=rwc&vfs=unix-none#x%00")
    async with served("--db", f"odd={odd}") as peer:
        assert await rows(peer, "SELECT count(*) FROM account") == [[2]]
    assert [file.name for file in tmp_path.iterdir()] == [odd.name]


@pytest.mark.parametrize("path", ["", "data=", "=x"])
async def test_s12_an_empty_path_is_refused(path: str) -> None:
    given = ["--db", path] if "=" in path else [path]
    async with Wire([sys.executable, "-m", "servers.sqlite", *given]) as wire:
        assert await wire.wait() != 0


async def test_s12_no_path_comes_from_a_client(database: Path, tmp_path: Path) -> None:
    other = made_beside(tmp_path)
    async with served(database) as peer:
        for name in (str(other), "../other", "other", f"file:{other}", ":memory:", "temp", "main"):
            assert (await peer.error("read_query", query="SELECT 1", database=name)).startswith("bad_database: ")


def made_beside(folder: Path) -> Path:
    (folder / "other").mkdir()
    return made(folder / "other", "")
