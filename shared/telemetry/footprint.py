"""The memory of a process: how often garbage is collected, and how memory is returned to the system after a burst.

Reference counting frees nearly everything at once. The garbage collector is only needed for reference cycles, which
are rare, such as those that cancelled tasks leave. With the interpreter's defaults it takes a tenth of the time of
each call, so it runs less often here. But it counts objects, however large they are, so the bytes of messages are
counted as well.

The C library keeps freed memory that lies between blocks in use. A server that once had 10,000 sessions would stay
nearly as large as it was then, unless it asks the library to return free memory. That needs ctypes, which takes
milliseconds to load, so only HTTP and sqlite do it.

Python allocates small objects in arenas of a megabyte, and can't free an arena while a single object in it remains.
So objects that outlive a burst should be created before it.
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
"""The collector runs when this many more objects have been created than freed: about 2 MB."""
BYTES_BETWEEN_COLLECTIONS = 64 * 1_048_576
"""The collector also runs when messages of this many bytes have been received or sent, in however few objects."""

FREE_LIST_LENGTH = 256
"""More freed objects of one kind than asyncio (255) or uvloop (250) keep for reuse."""

GROWTH_BYTES = 16 * 1_048_576
"""Growth, in bytes, at which memory is returned to the system."""
QUIET_SECONDS = 1.0
"""Seconds from a use of memory to the check whether the process has grown."""
_ARENA_MAX = -8
"""The constant M_ARENA_MAX of <malloc.h>."""

_message_bytes = [0]
"""A list with one number: the bytes of messages since the last collection."""


def set_up_collector() -> None:
    """Set up the collector for a program that has loaded everything it needs. Objects that exist now are never
    checked again, and new objects are checked less often. This affects the whole process."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 20, 50)
    gc.enable()


def count_bytes(size: int) -> None:
    """Count `size` bytes of messages that were received or sent, and collect garbage if that is due."""
    _message_bytes[0] += size
    if _message_bytes[0] >= BYTES_BETWEEN_COLLECTIONS:
        _message_bytes[0] = 0
        gc.collect(1)


def fill_free_lists() -> None:
    """Create the objects that the event loop keeps for reuse now, before any burst: created during a burst, each of
    them could keep an arena of a megabyte from being freed. Call this in the event loop that serves; it takes a
    millisecond."""
    # Load ctypes now for the same reason.
    _find_glibc_function("malloc_trim")
    loop = asyncio.get_running_loop()
    waits = [loop.create_future().__await__() for _ in range(FREE_LIST_LENGTH)]
    for _ in range(FREE_LIST_LENGTH):
        loop.call_soon(waits.clear)
        loop.call_later(0.001, waits.clear)


def return_memory() -> None:
    """Ask glibc to return free memory to the system (`malloc_trim(3)`); do nothing with another C library. This takes
    some milliseconds, so call it at the end of a burst."""
    gc.collect()
    if trim := _find_glibc_function("malloc_trim"):
        trim(0)


def share_one_arena() -> None:
    """Make glibc allocate the memory of all threads in one arena (`mallopt(3)`); do nothing with another C library.

    By default, each thread has an arena of its own, and memory that one thread has freed is not available to others,
    so that the process takes more than is in use at any time. Call this before there are threads.
    """
    if mallopt := _find_glibc_function("mallopt"):
        mallopt(_ARENA_MAX, 1)


async def watch_memory(used: asyncio.Event) -> None:
    """A second after `used` is set, check whether the process has grown, and if so return free memory to the system.

    Runs until it is cancelled; ends at once on a system where memory can't be returned.
    """
    before, trim = _resident_bytes(), _find_glibc_function("malloc_trim")
    while trim is not None and before is not None:
        await used.wait()
        await anyio.sleep(QUIET_SECONDS)
        used.clear()
        if (_resident_bytes() or 0) > before + GROWTH_BYTES:
            # In a thread, because it takes a while if much memory is free.
            await to_thread.run_sync(trim, 0)


def _resident_bytes() -> int | None:
    """Return the resident memory of this process in bytes; None on a system that does not report it as Linux does."""
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


@cache
def _find_glibc_function(name: str) -> Callable[..., Any] | None:
    """Return the function `name` of the C library; None if that is not glibc."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    function: Callable[..., Any] | None = getattr(ctypes.CDLL(None), name, None)
    return function
