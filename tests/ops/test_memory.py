"""Memory is given back, or nothing happens: the call is safe anywhere."""

from pathlib import Path

import pytest

from shared.ops import memory

pytestmark = pytest.mark.skipif(memory._TRIM is None, reason="this C library can't be asked")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def test_what_is_free_between_what_is_used_is_given_back() -> None:
    # Below the size from which the library asks the system for each block by itself.
    blocks = [bytearray(100_000) for _ in range(500)]
    kept = blocks[::50]
    before = resident()
    del blocks
    memory.give_back()
    assert before - resident() > 30_000_000
    assert len(kept) == 10
