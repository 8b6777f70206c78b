"""Serves requests in a worker process: it reads them from standard input, one after another, and writes the answers
to standard output.

A worker imports the reader for a kind of file at the first request for that kind, and ends when the server does. If a
file causes an error, uses up memory or crashes the worker, only the request for that file fails.
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

from shared.coded_errors import CodedError
from shared.lazy_modules import WITH_OPENSSL, LazyFinder

from .frames import LENGTHS, Head, lengths_of, pack

MEBIBYTE = 1024 * 1024
_MEMORY_FILE = Path("/proc/self/statm")
MAX_GROWTH = 48 * MEBIBYTE
"""A worker whose memory has grown by more is replaced, since Python does not return all memory to the system."""

FileReader = Callable[[Head, bytes], tuple[Head, bytes]]
"""Takes the head of a request and the bytes of a file, and returns the head and the body of the answer.

It may raise CodedError, or any exception if the file is damaged.
"""


class _Worker:
    def __init__(self, load: Callable[[str], FileReader], subject: str, mebibytes: int, requests: int) -> None:
        self._load = load
        self._subject = subject
        self._mebibytes = mebibytes
        self._requests = requests
        self._start_bytes = 0

    def answer(self, head: Head, body: bytes, timeout: float) -> tuple[Head, bytes]:
        """Return the head and the body of the answer. After an error, the head describes the error."""
        try:
            read = self._load(head["kind"])
            if head.keys() == {"kind"}:
                # This request only loads the libraries. Measure and limit memory from here on, since that of the
                # libraries does not count for files.
                gc.collect()
                gc.freeze()
                _limit_memory(self._mebibytes)
                self._start_bytes = _resident_bytes()
                return {}, b""
            # A limit on processor time ends the process if the server no longer exists to do so.
            _set_limit("RLIMIT_CPU", int(time.process_time() + timeout) + 2)
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


def serve(load: Callable[[str], FileReader], subject: str, timeout: float, mebibytes: int, requests: int) -> None:
    """Answer up to `requests` requests. Each may take `timeout` seconds, and `mebibytes` of memory.

    `load` imports and returns the reader for a kind of file. `subject` is the noun for a file, for texts of errors.
    """
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Replace the standard streams, so that output of a library does not get between the frames.
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null_device, stream)
    logging.disable()
    warnings.simplefilter("ignore")
    # Libraries import OpenSSL for connections, which a worker never makes. It would take a tenth of the memory.
    sys.meta_path.insert(0, LazyFinder(WITH_OPENSSL))
    # Forbid core dumps, since they would leave a copy of a file on disk.
    _set_limit("RLIMIT_CORE", 0)
    _limit_memory(mebibytes)
    worker = _Worker(load, subject, mebibytes, requests)
    while start := source.read(LENGTHS.size):
        head_length, body_length = lengths_of(start)
        head = json.loads(source.read(head_length))
        reply, text = worker.answer(head, source.read(body_length), timeout)
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
        return int(_MEMORY_FILE.read_text("ascii").split()[column]) * (_RESOURCE.getpagesize() if _RESOURCE else 0)
    except OSError:  # not Linux
        return 0
