"""Servers, and another program, that change one file at full speed; and the table of what became of it."""

import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio

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
