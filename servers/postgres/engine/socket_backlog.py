"""Counts the bytes that have arrived at a socket but not been read, on systems that report this."""

import sys
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _find_ioctl() -> tuple[Any, int] | None:
    try:
        return import_module("fcntl"), import_module("termios").FIONREAD
    except (ImportError, AttributeError):
        return None  # Windows


def count_arrived(descriptor: int) -> int:
    """Return the number of bytes that can be read from the socket; 0 if the system does not report it."""
    ioctl = _find_ioctl()
    if ioctl is None:
        return 0
    module, request = ioctl
    counted: bytes = module.ioctl(descriptor, request, bytes(4))
    return int.from_bytes(counted, sys.byteorder)
