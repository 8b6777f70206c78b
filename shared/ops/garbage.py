"""How often the interpreter looks for garbage.

Nearly everything is freed at once, by counting references. The garbage collector is for what refers to itself, and
of that there is little: what cancelled tasks leave behind. As the interpreter sets it up it takes a tenth of the time
of every call. It counts objects, however, and a few of them may hold megabytes: so the bytes that come and go are
counted, too. What gives memory back to the system is apart, in `memory.py`: it needs ctypes, which takes
milliseconds to load, and is for HTTP and for sqlite.
"""

import gc

__all__ = ["count_bytes", "settle"]

BETWEEN_COLLECTIONS = 20_000
"""Objects that may be made, beyond those freed meanwhile, before the collector looks at them: some 2 MB."""
BYTES_BETWEEN_COLLECTIONS = 64 * 1_048_576
"""Bytes of messages that may come and go before the collector looks at what is new, however few objects it is."""

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
