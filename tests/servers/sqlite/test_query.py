"""`read_query`, called by a client: endless and large queries, refused statements, values, locks and file names.

Hostile files and whole processes are in `tests/checks/sql`, hostile names in `schema`, and cursors in
`servers/common/sql/features/test_reading.py`.
"""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers.sqlite.attacks import CHANGES, EXTRA, NEVER, READS
from tests.servers.sqlite.malicious import BOMB
from tests.servers.sqlite.schemas import made
from tests.servers.sqlite.serving import Peer, inside

COUNTED = f"SELECT count(*) FROM ({BOMB})"


async def rows(peer: Peer, query: str, **more: Any) -> list[Any]:
    result: list[Any] = (await peer.data("read_query", query=query, **more))["rows"]
    return result


# Endless queries


async def test_cancelled_queries_leave_no_reader_busy(file: Path) -> None:
    async with inside("--readers", "2", file) as peer:
        for _ in range(10):
            await peer.client.cancel(await peer.client.start("read_query", query=COUNTED))
        assert await rows(peer, "SELECT 1") == [[1]]
        assert not peer.client.others


async def test_an_unsorted_cross_join_returns_its_first_rows(file: Path) -> None:
    join = "SELECT c.n FROM numbers a, numbers b, numbers c"
    async with inside(file) as peer:
        assert await rows(peer, f"{join} LIMIT 10") == [[n] for n in range(10)]
        whole = await peer.call("read_query", query=join)
    assert whole["structuredContent"]["truncated"]
    assert whole["structuredContent"]["next_cursor"]
    assert len(json.dumps(whole)) < 1_000_000


# Large values

TOO_LARGE = (
    "SELECT zeroblob(50000000)",
    "SELECT randomblob(1000000000)",
    "SELECT zeroblob(1e9)",
    f"SELECT group_concat(x, printf('%.*c', 100000, 'x')) FROM ({BOMB})",
    "SELECT replace(hex(zeroblob(7000000)), '0', 'many bytes for one')",
    "SELECT count(*) FROM numbers WHERE printf('%.*c', 100000, 'a') LIKE printf('%.*c', 60000, '%')",
    "SELECT 'a' GLOB printf('%.*c', 60000, '*')",
    f"SELECT {'(' * 5_000}1{')' * 5_000}",
    f"SELECT {'+'.join('1' * 5_000)}",
    f"SELECT {','.join('1' * 5_000)}",
    f"SELECT {' UNION ALL SELECT '.join('1' * 5_000)}",
    f"SELECT '{'x' * 1_100_000}'",
    f"SELECT {','.join('?' * 33_000)}",
    "SELECT json(printf('%.*c', 100000, '['))",
)


@pytest.mark.slow
async def test_values_and_patterns_that_are_too_large_are_errors(file: Path) -> None:
    async with inside("--timeout", "2", file) as peer:
        for query in TOO_LARGE:
            assert len(await peer.error("read_query", query=query)) < 2_000
        assert await rows(peer, "SELECT 1") == [[1]]


async def test_long_values_are_cut_and_many_parameters_accepted(file: Path) -> None:
    async with inside(file) as peer:
        for query, kind in (("zeroblob(10000000)", "blob"), ("printf('%.*c', 10000000, 'x')", "text")):
            result = await peer.call("read_query", query=f"SELECT {query}")
            [[cell]] = result["structuredContent"]["rows"]
            assert (cell["type"], cell["bytes"], cell["truncated"]) == (kind, 10_000_000, True)
            assert len(json.dumps(result)) < 100_000
        many = f"SELECT count(*) FROM numbers WHERE n IN ({','.join('?' * 30_000)})"
        assert await rows(peer, many, parameters=list(range(30_000))) == [[1_000]]


# Statements that do not only read


async def test_reading_statements_run_and_all_others_are_refused(file: Path) -> None:
    before = hashlib.sha256(made(file, EXTRA).read_bytes()).hexdigest()
    async with inside(file) as peer:
        for query in (*CHANGES, *NEVER):
            result = await peer.call("read_query", query=query.format(folder=file.parent))
            assert result.get("isError"), query
        for query in READS:
            await peer.data("read_query", query=query)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
    assert {one.name for one in file.parent.iterdir()} <= {"data.db", "data.db-wal", "data.db-shm"}


# Values and their columns

VALUES = (
    ("-9223372036854775808", {"type": "integer", "value": "-9223372036854775808"}),
    ("9e999", {"type": "real", "value": "Infinity"}),
    ("9e999 - 9e999", None),
    ("1.0", 1.0),
    ("'a' || char(0) || '😀'", "a\0😀"),
    ("x'00ff'", {"type": "blob", "bytes": 2, "base64": "AP8="}),
)


async def test_each_value_round_trips_as_a_parameter(file: Path) -> None:
    async with inside(file) as peer:
        for expression, value in VALUES:
            [[returned]] = await rows(peer, f"SELECT {expression}")
            assert (returned, type(returned)) == (value, type(value)), expression
            same = f"SELECT ?1 IS ({expression}) AND typeof(?1) = typeof({expression})"
            assert await rows(peer, same, parameters=[returned]) == [[1]], expression


async def test_columns_have_names_and_types(tmp_path: Path) -> None:
    script = """
        CREATE TABLE mixed (a VARCHAR(9)); INSERT INTO mixed VALUES (1), (1.5), ('x'), (x'00'), (NULL);
        CREATE TABLE s (a INT PRIMARY KEY, b ANY, c INT AS (a * 2), d INT AS (a + 1) STORED) STRICT, WITHOUT ROWID;
        INSERT INTO s VALUES (1, 'x'), (2, 9007199254740993);"""
    async with inside(made(tmp_path / "data.db", script)) as peer:
        same = await peer.data("read_query", query="SELECT 1 AS x, 2 AS x, 3 AS '', 4 AS ''")
        mixed = await peer.data("read_query", query="SELECT a FROM mixed")
        strict = await rows(peer, "SELECT * FROM s")
    assert (same["columns"], same["rows"]) == (["x", "x", "", ""], [[1, 2, 3, 4]])
    # TEXT affinity turns the numbers into texts.
    assert (mixed["declared"], mixed["types"]) == (["VARCHAR(9)"], ["blob, null, text"])
    assert strict == [[1, "x", 2, 2], [2, {"type": "integer", "value": "9007199254740993"}, 4, 3]]


async def test_a_ping_is_answered_while_a_query_waits_for_a_lock(file: Path) -> None:
    made(file, "PRAGMA journal_mode = DELETE;")
    async with inside("--busy-timeout", "60", "--timeout", "60", file) as peer:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            reading = await peer.client.start("read_query", query="SELECT name FROM numbers WHERE n = 1")
            for _ in range(20):
                assert "result" in await peer.request("ping")
            other.execute("COMMIT")
        answer = await peer.client.answer(reading)
    assert answer["result"]["structuredContent"]["rows"] == [["number 1"]]


# File names


async def test_uri_parameters_in_a_file_name_are_literal_and_clients_choose_no_file(
    file: Path, tmp_path: Path
) -> None:
    odd = file.rename(tmp_path / "data.db?mode=rwc&vfs=unix-none#x%00")
    (tmp_path / "other").mkdir()
    other = made(tmp_path / "other" / "data.db", "CREATE TABLE t (a);")
    async with inside("--db", f"odd={odd}") as peer:
        assert await rows(peer, "SELECT count(*) FROM numbers") == [[1_000]]
        for name in (str(other), "../other", "other", f"file:{other}", ":memory:", "temp", "main"):
            assert (await peer.error("read_query", query="SELECT 1", database=name)).startswith("bad_database: ")
    assert {one.name.removesuffix("-wal").removesuffix("-shm") for one in tmp_path.iterdir()} == {odd.name, "other"}
