"""What several processes report as made in one file is in it at the end, whoever else writes to it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.filesystem.hammering import CELL, NOTHING, Outcome, another_program, hammered, lost, servers

LENGTHS = [
    pytest.param(2, 1.0),
    *(pytest.param(processes, 30.0, marks=[pytest.mark.slow, pytest.mark.timeout(300)]) for processes in (2, 4, 8)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "seconds"), LENGTHS)
async def test_of_what_our_processes_report_nothing_is_lost(
    tmp_path: Path, record_property: Callable[[str, object], None], processes: int, seconds: float
) -> None:
    file = tmp_path / "file"
    file.write_text("".join(f"count {number}: 0;\n" for number in range(processes)))
    async with servers(tmp_path, processes) as peers:
        made = await hammered(peers, [NOTHING] * processes, seconds / 2)
        async with another_program(file) as foreign:
            made = await hammered(peers, made, seconds / 2)
    text = file.read_text()
    there = len(set(re.findall(r"^foreign (\d+);$", text, re.MULTILINE)))
    edits, lines = sum(one.edits for one in made), sum(len(one.lines) for one in made)
    found = Outcome(processes, seconds, edits, lines, lost(text, made), foreign[0], foreign[0] - there)
    record_property(CELL, tuple(found))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert found.lost == 0
    assert min(edits, lines) > 0
