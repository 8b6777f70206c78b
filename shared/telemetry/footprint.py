"""The memory footprint of a process: the interval of garbage collections, and the memory that a burst leaves behind.

Nearly everything is freed at once by reference counting. The garbage collector is for reference cycles, which are
rare; cancelled tasks leave some. With the interpreter's defaults it takes a tenth of the time of every call. However,
it counts objects, and a few objects may take megabytes, so the bytes of messages are counted as well.

The C library keeps freed memory between blocks that are in use. Without a request to return it, a server that once
had 10,000 sessions would stay nearly as large as it was then. The request uses ctypes, which takes milliseconds to
load, and only HTTP and sqlite need it.

Python takes its small objects from arenas of a megabyte, and an arena with one remaining object stays. So objects
that outlive a burst should not be created during it.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""Number of objects that may be created, less those freed, before the collector runs: about 2 MB."""
BYTES_BETWEEN_COLLECTIONS = 64 * 1_048_576
"""Number of bytes of messages that may be processed before the collector checks new objects, however few there
are."""

FREE_LIST_LENGTH = 256
"""The number of freed objects of a kind that asyncio (255) and uvloop (250) keep for reuse."""

GROWTH_BYTES = 16 * 1_048_576
"""Growth in bytes for which memory is returned."""
QUIET_SECONDS = 1.0
"""Seconds from the use of memory to the check."""
_ARENA_MAX = -8
"""M_ARENA_MAX of <malloc.h>."""

_message_bytes = [0]
"""The bytes of messages since the last collection."""


def set_up_collector() -> None:
    """Set up the collector for a program that has loaded everything it needs, and from now on creates and frees small
    objects: loaded objects are not checked again, and new objects are checked less often. This affects the whole
    process."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 20, 50)
    gc.enable()


def count_bytes(size: int) -> None:
    """Count the bytes of messages that were received or sent."""
    _message_bytes[0] += size
    if _message_bytes[0] >= BYTES_BETWEEN_COLLECTIONS:
        _message_bytes[0] = 0
        gc.collect(1)


def fill_free_lists() -> None:
    """Fill the free lists of the event loop now, before any burst: the first spare objects stay in use, and later
    ones may each hold a megabyte. It takes a millisecond, within the event loop that serves."""
    # ctypes is loaded now for the same reason.
    _find_glibc_function("malloc_trim")
    loop = asyncio.get_running_loop()
    waits = [loop.create_future().__await__() for _ in range(FREE_LIST_LENGTH)]
    for _ in range(FREE_LIST_LENGTH):
        loop.call_soon(waits.clear)
        loop.call_later(0.001, waits.clear)


def return_memory() -> None:
    """Ask glibc to return free memory (`malloc_trim(3)`); do nothing under another C library. The call takes some
    milliseconds, so make it at the end of a burst, not at every step."""
    gc.collect()
    if trim := _find_glibc_function("malloc_trim"):
        trim(0)


def share_one_arena() -> None:
    """Make glibc take the memory of all threads from one arena (`mallopt(3)`); do nothing under another C library.

    By default it gives each thread its own arena, and memory freed by one thread is not available to others: a limit
    on memory in use would then apply to each thread, not to the process. Call it before there are threads.
    """
    if mallopt := _find_glibc_function("mallopt"):
        mallopt(_ARENA_MAX, 1)


async def watch_memory(used: asyncio.Event) -> None:
    """Check, a second after memory was `used`, whether the process has grown, and if so return free memory.

    Runs until it is cancelled, or ends at once if no memory can be returned.
    """
    before, trim = _resident_bytes(), _find_glibc_function("malloc_trim")
    while trim is not None and before is not None:
        await used.wait()
        await anyio.sleep(QUIET_SECONDS)
        used.clear()
        if (_resident_bytes() or 0) > before + GROWTH_BYTES:
            # It takes a while if much memory is free, so it runs outside the event loop.
            await to_thread.run_sync(trim, 0)


def _resident_bytes() -> int | None:
    """Return the bytes that this process holds in memory; None unless the system reports the number as Linux does."""
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


@cache
def _find_glibc_function(name: str) -> Callable[..., Any] | None:
    """Return a function from glibc; None with another C library."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    function: Callable[..., Any] | None = getattr(ctypes.CDLL(None), name, None)
    return function
