"""Memory that a burst leaves behind, given back to the system.

The C library keeps freed memory that lies between what is still in use. Without being asked for it, a server that
once had 10,000 sessions would stay nearly as large as it was then.
"""

import ctypes
import gc
import sys
from collections.abc import Callable

__all__ = ["give_back"]


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
