"""The worker itself: it answers one request after another, from standard input to standard output.

It imports the reader for a kind of file at the first file of that kind, stores nothing but the file it reads, and
ends when the server does. If a file causes an error, uses up memory or crashes the worker, only that file is
affected.
"""

import gc
import importlib
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from servers.common.workers.frames import LENGTHS, Head, lengths_of, pack
from shared.coded_errors import CodedError
from shared.lazy_modules import WITH_OPENSSL, LazyFinder

MEBIBYTE = 1024 * 1024
_STATM = Path("/proc/self/statm")
# Not all memory is returned to the system. A worker that uses this much more than at its start is replaced by a new
# one.
MAX_GROWTH = 48 * MEBIBYTE

Read = Callable[[Head, bytes], tuple[Head, bytes]]
"""Takes the head of a request and a file, and returns the head and the body of the answer.

Raises CodedError, or any exception if the file is damaged.
"""


class _Worker:
    def __init__(self, load: Callable[[str], Read], subject: str, mebibytes: int, requests: int) -> None:
        self._load = load
        self._subject = subject
        self._mebibytes = mebibytes
        self._requests = requests
        self._start_bytes = 0

    def answer(self, head: Head, body: bytes, seconds: float) -> tuple[Head, bytes]:
        """Return the head of the answer, which describes an error if there is one, and its body."""
        try:
            read = self._load(head["kind"])
            if head.keys() == {"kind"}:
                # Libraries loaded for a kind of files count as memory of the worker, not of its files.
                gc.collect()
                gc.freeze()
                _limit_memory(self._mebibytes)
                self._start_bytes = _resident_bytes()
                return {}, b""
            # This ends the process if the server, which would otherwise end it, no longer exists.
            _set_limit("RLIMIT_CPU", int(time.process_time() + seconds) + 2)
            answer, text = read(head, body)
            return self._mark_last(answer), text
        except CodedError as error:
            return self._mark_last({"error": [error.code, error.reason, error.suggestion, ""]}), b""
        except MemoryError:
            reason = f"reading the {self._subject} takes more than {self._mebibytes} MiB of memory"
            return {"error": ["unreadable", reason, "", ""], "last": True}, b""
        except RecursionError:
            return self._mark_last(
                {"error": ["unreadable", f"the {self._subject} is nested too deeply", "", ""]}
            ), b""
        except Exception as error:
            reason = f"the {self._subject} is damaged, or in an unknown format ({type(error).__name__})"
            return self._mark_last({"error": ["unreadable", reason, "", ""]}), b""

    def _mark_last(self, head: Head) -> Head:
        self._requests -= 1
        growth = _resident_bytes() - self._start_bytes
        return head | {"last": self._requests <= 0 or growth > MAX_GROWTH}


def serve(load: Callable[[str], Read], subject: str, seconds: float, mebibytes: int, requests: int) -> None:
    """Answer up to `requests` requests. Each may take `seconds`, and `mebibytes` of memory.

    `load` imports and returns the reader for a kind of file; `subject` is the noun for a file of this kind.
    """
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Output and prompts of a library must not come between the frames.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    logging.disable()
    warnings.simplefilter("ignore")
    # A worker makes no connections, and libraries import OpenSSL for them. It would take a tenth of the memory.
    sys.meta_path.insert(0, LazyFinder(WITH_OPENSSL))
    # No core dump, since it would leave a copy of a file on disk.
    _set_limit("RLIMIT_CORE", 0)
    _limit_memory(mebibytes)
    worker = _Worker(load, subject, mebibytes, requests)
    while start := source.read(LENGTHS.size):
        head_length, body_length = lengths_of(start)
        head = json.loads(source.read(head_length))
        reply, text = worker.answer(head, source.read(body_length), seconds)
        answers.write(pack(reply, len(text)))
        answers.write(text)
        answers.flush()


# Resource limits of the process, if the platform has them


_RESOURCE: ModuleType | None
try:
    _RESOURCE = importlib.import_module("resource")
except ModuleNotFoundError:  # Windows has none: there the time is limited, but not the memory
    _RESOURCE = None


def _limit_memory(mebibytes: int) -> None:
    """Allow this process `mebibytes` more memory than it uses now."""
    _set_limit("RLIMIT_AS", _memory_column(0) + mebibytes * MEBIBYTE)


def _resident_bytes() -> int:
    """Return the number of bytes of memory that this process uses; 0 if unknown."""
    return _memory_column(1)


def _set_limit(name: str, value: int) -> None:
    if _RESOURCE is None or not hasattr(_RESOURCE, name):
        return
    _, hard = _RESOURCE.getrlimit(getattr(_RESOURCE, name))
    soft = value if hard == _RESOURCE.RLIM_INFINITY else min(value, hard)
    try:
        _RESOURCE.setrlimit(getattr(_RESOURCE, name), (soft, hard))
    except (OSError, ValueError):  # a system that defines the limit but does not support it
        return


def _memory_column(column: int) -> int:
    try:
        return int(_STATM.read_text("ascii").split()[column]) * (_RESOURCE.getpagesize() if _RESOURCE else 0)
    except OSError:  # not Linux
        return 0
