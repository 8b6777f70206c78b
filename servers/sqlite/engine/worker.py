"""The program of a worker process, which does work that can't be interrupted (`process.py`). It reads pieces of work
from standard input, one after another, and writes the results to standard output.

A separate thread reads the input, so the process ends with the server even in the middle of a statement. Messages
between the two are pickled values, each after its length. A cursor stays in the worker process: the server receives a
`RemoteCursor` for it. When the server sends that back, the worker process uses the cursor again. Pickling is safe,
because the worker process runs only code of this program, unlike a worker that reads malicious files.
"""

import io
import os
import pickle
import queue
import sqlite3
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NoReturn

from servers.common.sql.errors import SqlError

from .deadline import Limits, StatementDeadline, Uninterruptible
from .handle import Handle
from .opening import OpenOptions

LENGTH = struct.Struct(">Q")


class RemoteCursor:
    """Refers to a cursor in the worker process. Reading its rows in the server raises Uninterruptible, so that the
    worker process does this work."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self) -> Iterator[NoReturn]:
        raise Uninterruptible

    def close(self) -> None:
        """Raise Uninterruptible, so that the worker process closes the cursor."""
        raise Uninterruptible


class Cursors:
    """The cursors of this worker process to which the server can refer."""

    def __init__(self) -> None:
        self._cursors: dict[int, sqlite3.Cursor] = {}
        self._last_number = 0

    def assign_number(self, value: Any) -> int | None:
        """Return a number by which the server can refer to a cursor; None for a value that is not a cursor."""
        if not isinstance(value, sqlite3.Cursor):
            return None
        self._last_number += 1
        self._cursors[self._last_number] = value
        return self._last_number

    def take(self, number: int) -> Any:
        """Return the cursor with this number, and forget it. If it belonged to an earlier process, return an object
        that raises SqlError when it is read."""
        return self._cursors.pop(number, None) or _LostCursor()


class _LostCursor:
    def __iter__(self) -> Iterator[NoReturn]:
        reason = "the remaining rows were lost when the process that held them ended"
        raise SqlError("bad_cursor", reason, "Omit the cursor to start from the first row.")

    def close(self) -> None:
        """Do nothing."""


def pack(value: Any, persistent: Callable[[Any], int | None]) -> bytes:
    """Return a value as a frame: its length and its pickled bytes. An object is replaced by the number that
    `persistent` returns for it, unless that is None."""
    body = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> int | None:
            return persistent(item)

    Pickler(body, pickle.HIGHEST_PROTOCOL).dump(value)
    return LENGTH.pack(body.tell()) + body.getvalue()


def unpack(body: bytes, persistent: Callable[[int], Any]) -> Any:
    """Return the value in the `body` of a frame. `persistent` returns the object for a number."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Any:
            return persistent(number)

    return Unpickler(io.BytesIO(body)).load()


class _Worker:
    """Does the work that the server sends, and writes the answers."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self.cursors = Cursors()

    def serve(self, options: OpenOptions, requests: "queue.SimpleQueue[bytes]") -> None:
        """Open the file, and do the requested work forever."""
        handle = Handle(options)
        self._answer(partial(_open, handle))
        while True:
            self._answer(partial(self._do, handle, options.limits, requests.get()))

    def _do(self, handle: Handle, limits: Limits, body: bytes) -> Any:
        handle.reopen_replaced()
        # Unpickling imports the modules that the work needs. That is not part of the timeout.
        work = unpack(body, self.cursors.take)
        self._send("begun", None)
        return handle.do(work, _ReportingDeadline(limits, partial(self._send, "committing")))

    def _answer(self, operation: Callable[[], Any]) -> None:
        try:
            outcome = operation()
        except SqlError as error:
            outcome = error
        self._send("done", outcome)

    def _send(self, kind: str, value: Any) -> None:
        self._answers.write(pack((kind, value), self.cursors.assign_number))
        self._answers.flush()


def _open(handle: Handle) -> None:
    handle.open()


class _ReportingDeadline(StatementDeadline):
    """A deadline that reports the beginning and the end of a commit to the server. If the server kills this process,
    it then knows whether a commit was in progress."""

    def __init__(self, limits: Limits, report_commit: Callable[[bool], None]) -> None:
        super().__init__(limits.timeout, limits.busy_timeout)
        self._report_commit = report_commit

    @contextmanager
    def mark_committing(self) -> Iterator[None]:
        with super().mark_committing():
            self._report_commit(True)
            try:
                yield
            finally:
                self._report_commit(False)


def _read(requests: BinaryIO, frames: "queue.SimpleQueue[bytes]") -> None:
    while start := requests.read(LENGTH.size):
        frames.put(requests.read(LENGTH.unpack(start)[0]))
    # sys.exit would end only this thread.
    os._exit(0)


def main() -> None:
    """Open the file that the first frame names, and do work until the input ends."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    worker = _Worker(sys.stdout.buffer)
    worker.serve(unpack(requests.get(), worker.cursors.take), requests)
