"""Random statements for one read-only server: the file stays unchanged, and every answer arrives in time."""

import hashlib
import sys
import time
from pathlib import Path

import pytest

from tests.checks.sql.grammar import Grammar
from tests.servers.sqlite.attacks import EXTRA
from tests.servers.sqlite.samples import make_chinook
from tests.servers.sqlite.schemas import made
from tests.wire import Json, Wire

SECONDS = 0.1
LATE = 0.5
"""Seconds beyond the limit in which an answer has to come, on a machine that does nothing else."""


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("seed", "statements"), [(0, 150), *((seed, 500) for seed in range(1, 21))])
async def test_generated_sql_changes_nothing_and_is_answered_in_time(
    seed: int, statements: int, tmp_path: Path
) -> None:
    numbers = "CREATE TABLE numbers (n INTEGER PRIMARY KEY, name TEXT); INSERT INTO numbers VALUES (1, 'one');"
    database, grammar = made(make_chinook(tmp_path / "data.db"), numbers + EXTRA), Grammar(seed)
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    command = [sys.executable, "-m", "servers.sqlite", "--timeout", str(SECONDS), str(database)]
    answered = 0
    async with Wire(command) as wire:
        await wire.initialize()
        for _ in range(statements):
            query = grammar.statement()
            answer = await _ask_in_time(wire, query)
            if answer != "timeout":
                # What took nearly all its time once may be stopped another time.
                assert await _ask_in_time(wire, query) in (answer, "timeout") or _is_program(answer), query
            answered += isinstance(answer, dict)
        assert "result" in await wire.request("ping")
    async with Wire([sys.executable, "-m", "servers.sqlite", str(database)]) as wire:
        await wire.initialize()
        assert (await _rows(wire, "SELECT count(*) FROM Artist")) == [[50]]
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [file.name for file in tmp_path.iterdir()] == ["data.db"]
    # Otherwise it is a test of error messages.
    assert answered > statements / 4


async def _ask_in_time(wire: Wire, query: str) -> Json | str:
    """The data of an answer but for its time, or the code of an error: the second time it is read in another way."""
    began = time.monotonic()
    answer = await wire.request("tools/call", {"name": "read_query", "arguments": {"query": query}}, timeout=60)
    assert time.monotonic() - began < SECONDS + 10 * LATE, query
    assert "error" not in answer, (query, answer)
    if answer["result"].get("isError", False):
        return answer["result"]["content"][0]["text"].partition(":")[0]
    data = answer["result"]["structuredContent"]
    return {name: data[name] for name in data if name not in ("elapsed_ms", "next_cursor")}


def _is_program(answer: Json | str) -> bool:
    """Whether it is what EXPLAIN says: how often a connection has read the schema is part of that."""
    return isinstance(answer, dict) and answer["columns"][:2] == ["addr", "opcode"]


async def _rows(wire: Wire, query: str) -> list[Json]:
    answer = await wire.request("tools/call", {"name": "read_query", "arguments": {"query": query}})
    return answer["result"]["structuredContent"]["rows"]
