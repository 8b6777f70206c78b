"""What several processes report as made in one file is in it at the end, whoever else writes to it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checks.filesystem.hammering import CELL, NOTHING, Outcome, another_program, hammered, lost, servers

SECONDS = 30.0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("processes", [2, 4, 8])
async def test_of_what_our_processes_report_nothing_is_lost(
    tmp_path: Path, record_property: Callable[[str, object], None], processes: int
) -> None:
    file = tmp_path / "file"
    file.write_text("".join(f"count {number}: 0;\n" for number in range(processes)))
    async with servers(tmp_path, processes) as peers:
        made = await hammered(peers, [NOTHING] * processes, SECONDS / 2)
        async with another_program(file) as foreign:
            made = await hammered(peers, made, SECONDS / 2)
    text = file.read_text()
    there = len(set(re.findall(r"^foreign (\d+);$", text, re.MULTILINE)))
    edits, lines = sum(one.edits for one in made), sum(len(one.lines) for one in made)
    found = Outcome(processes, SECONDS, edits, lines, lost(text, made), foreign[0], foreign[0] - there)
    record_property(CELL, tuple(found))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert found.lost == 0
    assert min(edits, lines) > 0
