"""The memory of the whole process, which exceeds what SQLite counts, is bounded and released."""

import sys
import time
from pathlib import Path

import pytest

from tests.checks.benchmarks.machine import peak, resident
from tests.raw import Raw, call

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux tells what a process holds: run it in a container"
)

LIMIT = 64
READERS = 8
# What is sorted, to be put together again, takes more than the limit.
SORT = """
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000)
    SELECT length(group_concat(y)) FROM (SELECT x, hex(randomblob(200)) AS y FROM c LIMIT 200000) GROUP BY -x / 10"""


def test_memory_of_sorts_is_bounded_and_released(file: Path) -> None:
    command = [sys.executable, "-m", "servers.sqlite", "--max-memory", str(LIMIT), str(file)]
    with Raw(command).open() as server:
        server.send(call(1, "read_query", query="SELECT 1"))
        server.answer(1)
        before = resident(server.pid)
        for turn in range(3):
            server.send(*(call(f"{turn} {number}", "read_query", query=SORT) for number in range(READERS)))
            said = [server.receive()["result"]["content"][0]["text"] for _ in range(READERS)]
            assert {text.partition(":")[0] for text in said} == {"too_large"}
        assert peak(server.pid) - before < 2 * LIMIT
        end = time.monotonic() + 60
        while resident(server.pid) - before >= 16:
            assert time.monotonic() < end
