"""Memory that a burst leaves behind, given back to the system.

The C library keeps freed memory that lies between what is still in use. Without being asked for it, a server that
once had 10,000 sessions would stay nearly as large as it was then.

Python takes its small objects from pieces of a megabyte, and a piece in which one object is left stays. So what
outlives a burst should not be made in its midst.
"""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable

__all__ = ["fill_free_lists", "give_back"]

FREE_LIST = 256
"""How many objects of a kind asyncio (255) and uvloop (250) keep for the next use when they are freed."""


def fill_free_lists() -> None:
    """Has the event loop keep its spare objects from now on, which is before any burst: those kept first stay in use,
    and each made later may hold a megabyte. It takes a millisecond, within the event loop that serves."""
    loop = asyncio.get_running_loop()
    waits = [loop.create_future().__await__() for _ in range(FREE_LIST)]
    for _ in range(FREE_LIST):
        loop.call_soon(waits.clear)
        loop.call_later(0.001, waits.clear)


def give_back() -> None:
    """Asks glibc to return what is free (`malloc_trim(3)`); does nothing under another C library. It takes some
    milliseconds, so it is for the end of a burst and not for its every step."""
    gc.collect()
    if _TRIM is not None:
        _TRIM(0)


def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found


_TRIM = _trim()
