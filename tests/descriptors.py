"""What the process of the tests has open."""

import gc
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress


def descriptors() -> list[str]:
    """What each open descriptor leads to, in order; nothing where there is no /proc."""
    links = []
    for fd in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        # One that a thread closes meanwhile, or that listed the directory, is no longer there.
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(links)


def settled_descriptors() -> list[str]:
    """The same, without those that earlier tests left to the garbage collector: it might close them at any time."""
    gc.collect()
    return descriptors()


def left_open(before: Iterable[str]) -> list[str]:
    """What is open now and was not `before`. What an earlier test left may have been closed meanwhile."""
    return sorted((Counter(descriptors()) - Counter(before)).elements())
