"""Queries on hostile or broken files: the server survives, and nothing is changed."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from tests.servers.sqlite import malicious
from tests.servers.sqlite.malicious import HOSTILE, NO_DATABASE, Maker
from tests.servers.sqlite.serving import Peer, served
from tests.wire import Wire

# Each query runs twice, since the second run may take another path.
QUERIES = 2 * (
    "SELECT * FROM hostile LIMIT 5",
    "SELECT count(*) FROM hostile",
    "SELECT x, y FROM hostile ORDER BY y DESC, x",
    "SELECT sum(sum) FROM account",
    "SELECT type, name, sql FROM sqlite_schema",
    "PRAGMA integrity_check",
    "PRAGMA table_xinfo(hostile)",
)

# The answer to the first query, if it is known. If SQLite itself can't open the file,
# the server does not start.
LOOSE_BOOLEAN = {
    malicious.view_that_loads_code: "bad_statement: SQLite refuses it",
    malicious.view_that_sets_a_tokenizer: "bad_statement: SQLite refuses it",
    malicious.view_of_itself: "bad_statement: ",
    malicious.virtual_table_of_pages: "bad_statement: SQLite refuses it",
    malicious.virtual_table_of_sizes: "refused: ",
    malicious.virtual_table_of_a_file: "bad_statement: SQLite refuses it",
    malicious.tree_index_that_lies: "corrupt: ",
    malicious.view_without_end: "5 rows; ",
    malicious.trigger_that_deletes: "0 rows; ",
}
BROKEN_SCHEMA = (
    malicious.generated_column_that_loads_code,
    malicious.temporary_trigger_in_the_file,
    malicious.schema_that_is_no_sql,
    malicious.schema_without_a_page,
    malicious.schema_read_as_a_table,
    malicious.cut_in_half,
)


def contents(folder: Path) -> dict[str, str]:
    """Returns all files with their hashes, except the index of the log, which every reader writes."""
    files = (file for file in folder.iterdir() if not file.name.endswith("-shm"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize(
    "make", [make for make in HOSTILE if make not in BROKEN_SCHEMA], ids=lambda make: make.__name__
)
async def test_a_hostile_file_does_no_harm(make: Maker, tmp_path: Path) -> None:
    database = make(tmp_path)
    before = contents(tmp_path)
    # Every query would run into its time limit.
    seconds = "0.3" if make is malicious.views_that_double else "1"
    async with served("--timeout", seconds, database) as peer:
        said = [await told(peer, query) for query in QUERIES]
        assert said[0].startswith(LOOSE_BOOLEAN.get(make, ""))
        described = [
            await peer.call("list_tables"),
            await peer.call("describe_table", table_name="hostile"),
            await peer.call("describe_table", table_name="hostile", sample=5, statistics=True),
            await peer.call("describe_database"),
            await peer.call("explain_query", query="SELECT * FROM hostile"),
        ]
        read = [await peer.request("resources/read", uri=f"sqlite:///data/{one}") for one in ("schema", "hostile")]
        assert await told(peer, "SELECT 'it lives'") != ""
        assert peer.wire.alive
    assert all(len(json.dumps(one)) < 1_000_000 for one in (*described, *read))
    assert all(one.get("error", {}).get("code") != -32603 for one in read)
    assert contents(tmp_path) == before


async def told(peer: Peer, query: str) -> str:
    result = await peer.call("read_query", query=query)
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("make", [*BROKEN_SCHEMA, *NO_DATABASE], ids=lambda make: make.__name__)
async def test_a_file_that_sqlite_cannot_open_is_reported_to_the_operator(make: Maker, tmp_path: Path) -> None:
    database = make(tmp_path)
    async with Wire(command(database)) as wire:
        assert await wire.wait() != 0
    assert str(database) in wire.stderr
    assert "Traceback" not in wire.stderr


def command(database: Path) -> list[str]:
    return [sys.executable, "-m", "servers.sqlite", str(database)]


async def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    database = malicious.nothing(tmp_path)
    async with served(database) as peer:
        assert (await peer.data("read_query", query="SELECT * FROM sqlite_schema"))["rows"] == []
    assert database.stat().st_size == 0


async def test_rows_that_are_only_in_the_log_are_read(tmp_path: Path) -> None:
    async with served(malicious.log_without_its_index(tmp_path)) as peer:
        rows = (await peer.data("read_query", query="SELECT owner, sum FROM account"))["rows"]
    assert rows == [["Cleo", 300]]
