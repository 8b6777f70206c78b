"""How little a process holds: how often it looks for garbage, and the memory that a burst leaves behind.

Nearly everything is freed at once, by counting references. The garbage collector is for what refers to itself, and
of that there is little: what cancelled tasks leave behind. As the interpreter sets it up it takes a tenth of the time
of every call. It counts objects, however, and a few of them may hold megabytes: so the bytes that come and go are
counted, too.

The C library keeps freed memory that lies between what is still in use. Without being asked for it, a server that
once had 10,000 sessions would stay nearly as large as it was then. It is asked by ctypes, which takes milliseconds to
load, and only HTTP and sqlite need it.

Python takes its small objects from pieces of a megabyte, and a piece in which one object is left stays. So what
outlives a burst should not be made in its midst.
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

BETWEEN_COLLECTIONS = 20_000
"""Objects that may be made, beyond those freed meanwhile, before the collector looks at them: some 2 MB."""
BYTES_BETWEEN_COLLECTIONS = 64 * 1_048_576
"""Bytes of messages that may come and go before the collector looks at what is new, however few objects it is."""

FREE_LIST = 256
"""How many objects of a kind asyncio (255) and uvloop (250) keep for the next use when they are freed."""

GROWTH = 16 * 1_048_576
"""Bytes more than before that are worth to be given back."""
QUIET_SECONDS = 1.0
_ARENA_MAX = -8
"""M_ARENA_MAX of <malloc.h>."""

_moved = [0]


def settle() -> None:
    """Sets the collector up for a program that has loaded what it needs, and now makes and frees small objects all
    the time: what is loaded is not looked at again, and what is new less often. It is for the whole process."""
    gc.freeze()
    gc.set_threshold(BETWEEN_COLLECTIONS, 20, 50)
    gc.enable()


def count_bytes(size: int) -> None:
    """So many bytes of messages have come or gone."""
    _moved[0] += size
    if _moved[0] >= BYTES_BETWEEN_COLLECTIONS:
        _moved[0] = 0
        gc.collect(1)


def fill_free_lists() -> None:
    """Has the event loop keep its spare objects from now on, which is before any burst: those kept first stay in use,
    and each made later may hold a megabyte. It takes a millisecond, within the event loop that serves."""
    # For the same reason.
    _of_glibc("malloc_trim")
    loop = asyncio.get_running_loop()
    waits = [loop.create_future().__await__() for _ in range(FREE_LIST)]
    for _ in range(FREE_LIST):
        loop.call_soon(waits.clear)
        loop.call_later(0.001, waits.clear)


def give_back() -> None:
    """Asks glibc to return what is free (`malloc_trim(3)`); does nothing under another C library. It takes some
    milliseconds, so it is for the end of a burst and not for its every step."""
    gc.collect()
    if trim := _of_glibc("malloc_trim"):
        trim(0)


def share_one_arena() -> None:
    """Has glibc take the memory of all threads from one place (`mallopt(3)`); does nothing under another C library.

    By itself it gives each thread an arena of its own, and what one thread has freed no other can have: a limit on
    what is in use then bounds that of each thread and not that of the process. To be called before there are threads.
    """
    if mallopt := _of_glibc("mallopt"):
        mallopt(_ARENA_MAX, 1)


async def stay_small(used: asyncio.Event) -> None:
    """Looks a second after memory was `used` whether the process has grown, and gives back what is free then.

    It runs until it is cancelled; where no memory can be given back it ends.
    """
    before, trim = _resident(), _of_glibc("malloc_trim")
    while trim is not None and before is not None:
        await used.wait()
        await anyio.sleep(QUIET_SECONDS)
        used.clear()
        if (_resident() or 0) > before + GROWTH:
            # Not in the event loop: where much is free it takes a while.
            await to_thread.run_sync(trim, 0)


def _resident() -> int | None:
    """Bytes that this process holds in memory; None where the system doesn't say it in Linux's way."""
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


@cache
def _of_glibc(name: str) -> Callable[..., Any] | None:
    """A function of glibc; None under another C library."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    found: Callable[..., Any] | None = getattr(ctypes.CDLL(None), name, None)
    return found
