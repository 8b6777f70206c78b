"""Files that are unreadable for their owner, for tests that may run as root."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: what lets root read what its mode forbids."""


@contextmanager
def modes_enforced() -> Iterator[None]:
    """Enforce the modes of files for this thread and the threads that it starts, even for root.

    Skips the test if root can't drop that capability: capget(2) exists only on Linux."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root reads everything: run pytest as another user")
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    effective = sets[0]
    sets[0] = effective & ~_OVERRIDES
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    try:
        yield
    finally:
        sets[0] = effective
        libc.capset(header, sets)
