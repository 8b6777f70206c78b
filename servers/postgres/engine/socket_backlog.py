"""How many bytes wait in a socket, where the system tells."""

import sys
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _load() -> tuple[Any, int] | None:
    try:
        return import_module("fcntl"), import_module("termios").FIONREAD
    except (ImportError, AttributeError):
        return None  # Windows


def count_arrived(descriptor: int) -> int:
    """Bytes that can be read from the socket; 0 where the system does not tell."""
    known = _load()
    if known is None:
        return 0
    module, request = known
    counted: bytes = module.ioctl(descriptor, request, bytes(4))
    return int.from_bytes(counted, sys.byteorder)
