"""The open descriptors of the test process."""

import gc
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress


def descriptors() -> list[str]:
    """Returns the target of each open descriptor, in order; nothing without /proc."""
    links = []
    for fd in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        # A thread may close a descriptor meanwhile, and that of the listing is closed already.
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(links)


def settled_descriptors() -> list[str]:
    """Returns the same without descriptors left to the garbage collector, which might close them at any time."""
    gc.collect()
    return descriptors()


def left_open(before: Iterable[str]) -> list[str]:
    """Returns the descriptors that are open now and were not `before`; older ones may have been closed meanwhile."""
    return sorted((Counter(descriptors()) - Counter(before)).elements())
