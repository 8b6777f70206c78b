"""Leaks of a block: tasks, descriptors, child processes and threads."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel

from tests.descriptors import left_open, settled_descriptors

PATIENCE = 5.0
"""Seconds within which everything must have ended after its cancellation or close."""


def children() -> set[str]:
    """The process ids of our child processes with zombies; empty if the system has no list."""
    found: set[str] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.update(file.read_text().split())
    return found


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Fails if something of the block still exists soon after it."""
    descriptors = settled_descriptors()
    tasks, threads, processes = asyncio.all_tasks(), set(threading.enumerate()), children()

    def left() -> list[object]:
        started = [one for one in threading.enumerate() if one not in threads]
        return [*asyncio.all_tasks() - tasks, *left_open(descriptors), *children() - processes, *started]

    yield
    with anyio.move_on_after(PATIENCE):
        while left():
            await anyio.sleep(0.001)
    assert not left(), left()
