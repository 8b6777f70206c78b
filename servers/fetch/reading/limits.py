"""What a process that reads pages may take of the machine, where the platform can limit it."""

import importlib
import time
from pathlib import Path
from types import ModuleType

__all__ = ["forbid_core_dumps", "limit_memory", "limit_processor_time", "resident"]

MEBIBYTE = 1024 * 1024
_STATM = Path("/proc/self/statm")


def _resource() -> ModuleType | None:
    try:
        return importlib.import_module("resource")
    except ModuleNotFoundError:  # Windows has none: there the time is limited, and the memory is not
        return None


_RESOURCE = _resource()


def forbid_core_dumps() -> None:
    """Has a crash leave no copy of a page on the disk."""
    _limit("RLIMIT_CORE", 0)


def limit_memory(mebibytes: int) -> None:
    """Lets this process take `mebibytes` more than it has now."""
    _limit("RLIMIT_AS", _pages(0) + mebibytes * MEBIBYTE)


def limit_processor_time(seconds: float) -> None:
    """Ends this process after `seconds` more of work, should the server be gone that would end it otherwise."""
    _limit("RLIMIT_CPU", int(time.process_time() + seconds) + 2)


def resident() -> int:
    """How many bytes of memory this process holds; 0 where that is not known."""
    return _pages(1)


def _limit(name: str, value: int) -> None:
    if _RESOURCE is None or not hasattr(_RESOURCE, name):
        return
    _, hard = _RESOURCE.getrlimit(getattr(_RESOURCE, name))
    soft = value if hard == _RESOURCE.RLIM_INFINITY else min(value, hard)
    try:
        _RESOURCE.setrlimit(getattr(_RESOURCE, name), (soft, hard))
    except (OSError, ValueError):  # a system that knows the limit and does not have it
        return


def _pages(column: int) -> int:
    try:
        return int(_STATM.read_text("ascii").split()[column]) * (_RESOURCE.getpagesize() if _RESOURCE else 0)
    except OSError:  # not Linux
        return 0
