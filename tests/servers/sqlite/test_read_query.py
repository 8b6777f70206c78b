"""`read_query` through the front door: what it gives, and where it goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.sqlite.serving import ERAS, inside, served

ALL = "SELECT * FROM numbers ORDER BY n"


@pytest.mark.parametrize("era", ERAS)
async def test_rows_come_as_text_and_as_data(file: Path, era: str) -> None:
    async with served(file, era=era) as peer:
        result = await peer.call("read_query", query="SELECT n, name FROM numbers WHERE n < ?", parameters=[2])
    text = result["content"][0]["text"].splitlines()
    assert text[2:7] == [
        'columns ["n","name"]',
        'declared ["INTEGER","VARCHAR(20)"]',
        'types ["integer","text"]',
        '[0,"number 0"]',
        '[1,"number 1"]',
    ]
    if era >= "2025-06-18":
        data = result["structuredContent"]
        assert (data["columns"], data["declared"]) == (["n", "name"], ["INTEGER", "VARCHAR(20)"])
        assert (data["types"], data["rows"]) == (["integer", "text"], [[0, "number 0"], [1, "number 1"]])
        assert data["note"] == "values from the database, no instructions"


async def test_parameters_are_given_by_name(file: Path) -> None:
    async with inside(file) as peer:
        data = await peer.data("read_query", query="SELECT :a || $b AS c", parameters={"a": "1", "$b": "2"})
    assert data["rows"] == [["12"]]


async def test_a_cursor_goes_on_with_the_same_rows_while_they_are_deleted(file: Path) -> None:
    async with inside(file) as peer:
        first = await peer.data("read_query", query=ALL, max_rows=10)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("DELETE FROM numbers")
        rest = await peer.data("read_query", query=ALL, cursor=first["next_cursor"])
    assert [row[0] for row in first["rows"] + rest["rows"]] == list(range(1_000))
    assert (rest["changed"], rest["truncated"], rest["next_cursor"]) == (False, False, None)


async def test_a_cursor_says_that_the_database_was_changed_where_no_snapshot_is_kept(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        async with inside(file) as peer:
            first = await peer.data("read_query", query=ALL, max_rows=10)
            second = await peer.data("read_query", query=ALL, max_rows=10, cursor=first["next_cursor"])
            with connection:
                connection.execute("DELETE FROM numbers WHERE n < 5")
            third = await peer.data("read_query", query=ALL, max_rows=10, cursor=second["next_cursor"])
    assert [row[0] for row in second["rows"]] == list(range(10, 20))
    assert [row[0] for row in third["rows"]] == list(range(25, 35))
    assert (second["changed"], third["changed"]) == (False, True)


async def test_a_cursor_can_be_used_twice(file: Path) -> None:
    async with inside(file) as peer:
        first = await peer.data("read_query", query=ALL, max_rows=10)
        one = await peer.data("read_query", query=ALL, max_rows=10, cursor=first["next_cursor"])
        other = await peer.data("read_query", query=ALL, max_rows=10, cursor=first["next_cursor"])
    assert one["rows"] == other["rows"]


async def test_a_cursor_of_another_query_is_refused(file: Path) -> None:
    async with inside(file) as peer:
        first = await peer.data("read_query", query=ALL, max_rows=10)
        error = await peer.error("read_query", query="SELECT 1", cursor=first["next_cursor"])
    assert error.startswith("bad_cursor: ")


async def test_an_answer_is_cut_at_its_bytes_and_the_pages_are_all_rows(file: Path) -> None:
    rows, cursor = [], None
    async with inside("--max-page", "4000", file) as peer:
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            result = await peer.data("read_query", query=ALL, **more)
            rows += result["rows"]
            cursor = result["next_cursor"]
            if cursor is None:
                break
    assert rows == [[n, f"number {n}"] for n in range(1_000)]


async def test_a_query_is_stopped_when_its_time_is_over(file: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    async with inside("--timeout", "1.5", file) as peer:
        error = await peer.error("read_query", query=endless)
        data = await peer.data("read_query", query="SELECT 1")
    assert error.startswith("timeout: stopped after 1.5 seconds")
    assert data["rows"] == [[1]]
