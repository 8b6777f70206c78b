"""Files that mean harm, or are broken, asked by a client: the server lives, and nothing is changed (S7, S10)."""

import hashlib
import sys
from pathlib import Path

import pytest

from tests.servers.sqlite import malicious
from tests.servers.sqlite.malicious import FORGED, HOSTILE, NO_DATABASE, Maker, views_that_double
from tests.servers.sqlite.serving import Peer, served
from tests.wire import Wire

pytestmark = pytest.mark.slow

QUERIES = (
    "SELECT * FROM hostile LIMIT 5",
    "SELECT count(*) FROM hostile",
    "SELECT x, y FROM hostile ORDER BY y DESC, x",
    "SELECT sum(sum) FROM account",
    "SELECT type, name, sql FROM sqlite_schema",
    "PRAGMA integrity_check",
    "PRAGMA table_xinfo(hostile)",
)

# What the first query says, where more is known than that it is answered. Where SQLite itself can't open the file,
# the server does not start.
ANSWERS = {
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
    """All files, with their hashes, but the index of the log, which every reader writes."""
    files = (file for file in folder.iterdir() if not file.name.endswith("-shm"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


OPENABLE = [
    pytest.param(make, marks=pytest.mark.slow) if make is views_that_double else make
    for make in HOSTILE
    if make not in BROKEN_SCHEMA
]


@pytest.mark.parametrize("make", OPENABLE, ids=lambda make: make.__name__)
async def test_s7_a_hostile_file_does_no_harm(make: Maker, tmp_path: Path) -> None:
    database = make(tmp_path)
    before = contents(tmp_path)
    async with served("--timeout", "1", database) as peer:
        said = [await told(peer, query) for query in QUERIES]
        assert said[0].startswith(ANSWERS.get(make, ""))
        assert await told(peer, "SELECT 'it lives'") != ""
        assert peer.wire.alive
    assert contents(tmp_path) == before


async def told(peer: Peer, query: str) -> str:
    result = await peer.call("read_query", query=query)
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("make", [*BROKEN_SCHEMA, *NO_DATABASE], ids=lambda make: make.__name__)
async def test_s7_a_file_that_sqlite_can_not_open_is_told_to_the_operator(make: Maker, tmp_path: Path) -> None:
    database = make(tmp_path)
    async with Wire(command(database)) as wire:
        assert await wire.wait() != 0
    assert str(database) in wire.stderr
    assert "Traceback" not in wire.stderr


def command(database: Path) -> list[str]:
    return [sys.executable, "-m", "servers.sqlite", str(database)]


async def test_s7_a_file_without_bytes_is_an_empty_database(tmp_path: Path) -> None:
    database = malicious.nothing(tmp_path)
    async with served(database) as peer:
        assert (await peer.data("read_query", query="SELECT * FROM sqlite_schema"))["rows"] == []
    assert database.stat().st_size == 0


async def test_s7_rows_that_are_only_in_the_log_are_read(tmp_path: Path) -> None:
    async with served(malicious.log_without_its_index(tmp_path)) as peer:
        rows = (await peer.data("read_query", query="SELECT owner, sum FROM account"))["rows"]
    assert rows == [["Cleo", 300]]


async def test_s10_a_name_of_two_lines_makes_one_line_of_text(tmp_path: Path) -> None:
    quoted = FORGED.replace('"', '""')
    async with served(malicious.names_that_give_orders(tmp_path)) as peer:
        result = await peer.call("read_query", query=f'SELECT * FROM "{quoted}"')
    assert FORGED in result["structuredContent"]["columns"]
    assert not [line for line in result["content"][0]["text"].splitlines() if line.startswith("SYSTEM")]


async def test_s10_values_stand_between_marks_that_no_value_knows(tmp_path: Path) -> None:
    async with served(malicious.names_that_give_orders(tmp_path)) as peer:
        first, second = [await told(peer, f"SELECT '{malicious.INSTRUCTION}'") for _ in range(2)]
    for text in (first, second):
        mark = text.splitlines()[1].split()[0]
        inside = text.partition(mark)[2].partition(mark.replace("<", "</"))
        assert "no instructions" in inside[0]
        assert malicious.INSTRUCTION in inside[0]
        assert inside[2] == ""
    assert first.splitlines()[1] != second.splitlines()[1]
