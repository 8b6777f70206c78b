"""Changes that several processes report for one file are all in it at the end, despite other writers."""

import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from tests.records import recorded
from tests.servers.peers import Peer, text_of
from tests.wire import Wire

CELL = "hammered"
FOREIGN = """
import os, sys, time
os.set_blocking(0, False)
made = 0
print("ready", flush=True)
while os.getppid() == int(sys.argv[2]):
    try:
        if os.read(0, 1) == b"":
            break
    except BlockingIOError:
        pass
    with open(sys.argv[1], "a") as file:
        file.write(f"foreign {made};\\n")
    made += 1
    time.sleep(0.0003)
print(made, flush=True)
"""
"""Another program, which opens the file, adds a line and closes it, some thousand times a second until its input
ends: more would make the file too large to be edited."""


class Made(NamedTuple):
    """What a server reported as made."""

    edits: int
    lines: set[str]
    tried: int


NOTHING = Made(0, set(), 0)


class Outcome(NamedTuple):
    """What became of it, as it is recorded."""

    processes: int
    seconds: float
    edits: int
    lines: int
    lost: int
    """Of these edits and lines."""
    foreign: int
    """Lines of the other program."""
    foreign_lost: int


@asynccontextmanager
async def servers(folder: Path, count: int) -> AsyncIterator[list[Peer]]:
    """A client of each of so many servers of the folder."""
    command = [sys.executable, "-m", "servers.filesystem", "--allow-write", str(folder)]
    async with AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(Wire(command)) for _ in range(count)]
        for wire in wires:
            await wire.initialize()
        yield [Peer(wire, "2025-11-25") for wire in wires]


@asynccontextmanager
async def another_program(file: Path) -> AsyncIterator[list[int]]:
    """Another program that adds lines to the file; at the end the list has how many."""
    made: list[int] = []
    async with await anyio.open_process([sys.executable, "-c", FOREIGN, str(file), str(os.getpid())]) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        await other.stdout.receive()
        yield made
        await other.stdin.aclose()
        made.append(int(b"".join([part async for part in other.stdout])))


async def hammered(peers: list[Peer], made: list[Made], seconds: float) -> list[Made]:
    """What each server has reported in all, when all have changed the file for so long."""
    found, until = list(made), time.monotonic() + seconds

    async def run(number: int) -> None:
        found[number] = await _hammer(peers[number], number, made[number], until)

    async with anyio.create_task_group() as tasks:
        for number in range(len(peers)):
            tasks.start_soon(run, number)
    return found


async def _hammer(peer: Peer, number: int, made: Made, until: float) -> Made:
    """Counts in a line of its own by edits, and adds lines, in turn."""
    edits, lines, tried = made.edits, set(made.lines), made.tried
    while time.monotonic() < until:
        edit = {"oldText": f"count {number}: {edits};", "newText": f"count {number}: {edits + 1};"}
        edits += _is_made(await peer.call("edit_file", path="file", edits=[edit]))
        line = f"line {number} {tried};"
        if _is_made(await peer.call("write_file", path="file", content=f"{line}\n", mode="append")):
            lines.add(line)
        tried += 1
    return Made(edits, lines, tried)


def _is_made(result: dict[str, Any]) -> bool:
    """Whether it was; where it was not, others were in the way, and that was said."""
    refused = bool(result.get("isError"))
    assert not refused or text_of(result).startswith(("changed:", "busy:")), result
    return not refused


def lost(text: str, made: list[Made]) -> int:
    """How many of the edits and of the lines are not in the text."""
    there = set(text.splitlines())
    counts = {int(number): int(count) for number, count in re.findall(r"^count (\d+): (\d+);$", text, re.MULTILINE)}
    return sum(one.edits - counts[number] + len(one.lines - there) for number, one in enumerate(made))


def print_tables(terminalreporter: Any) -> None:
    """One line a test: what was made, and what of it was lost."""
    terminalreporter.section("one file, changed by several processes at full speed")
    for row in recorded(terminalreporter, CELL):
        one = Outcome(*row)
        ours = f"{one.edits:,} edits and {one.lines:,} lines, {one.lost} lost"
        foreign = f"{one.foreign:,} lines of another program, {one.foreign_lost} lost"
        terminalreporter.write_line(f"{one.processes} servers, {one.seconds:g} s: {ours}; {foreign}")


SECONDS = 12.0


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("processes", [2, 4, 8])
async def test_no_reported_change_is_lost(
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
