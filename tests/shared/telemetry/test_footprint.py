"""Garbage collection and memory of a program. Settings that affect a whole process are tested in a new one."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from shared.telemetry import footprint
from shared.telemetry.footprint import OBJECTS_BETWEEN_COLLECTIONS

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import gc
from shared.telemetry.footprint import set_up_collector
gc.disable()
set_up_collector()
print(gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count() > 1_000)
"""


def test_garbage_collection_skips_loaded_modules_and_runs_less_often() -> None:
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert output.split() == ["True", str(OBJECTS_BETWEEN_COLLECTIONS), "True"]


SPARE = """
import asyncio, sys
from shared.telemetry.footprint import fill_free_lists

async def main():
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(200)]
    waits = [None] * 200
    fill_free_lists()
    await asyncio.sleep(0.01)
    before = sys.getallocatedblocks()
    for number, future in enumerate(futures):
        waits[number] = future.__await__()
    print(sys.getallocatedblocks() - before)

asyncio.run(main())
"""


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="the C library has no malloc_trim: run this on a Linux with glibc",
)
def test_return_memory_releases_free_blocks() -> None:
    # Below the size from which the library asks the system for each block by itself.
    blocks = [bytearray(100_000) for _ in range(500)]
    used = blocks[::50]
    before = resident()
    del blocks
    footprint.return_memory()
    assert before - resident() > 30_000_000
    assert len(used) == 10


def test_spare_objects_of_the_event_loop_exist_from_the_start() -> None:
    done = subprocess.run([sys.executable, "-c", SPARE], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert int(done.stdout) < 20, done.stderr
