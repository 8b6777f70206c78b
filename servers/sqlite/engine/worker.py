"""The process for work that can't be interrupted: one piece of work after another, from standard input to standard
output.

It ends with the server, even in the middle of an instruction, because a separate thread reads the input. The messages
between the two are pickled values, each after its length. A cursor stays in its process: the other side receives a
`RemoteCursor` for it, which becomes that cursor again when it is sent back. Pickling is safe, because both sides are
this program, and the values sent are those it works with anyway.
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
from servers.sqlite.engine.deadline import Limits, StatementDeadline, Uninterruptible
from servers.sqlite.engine.handle import Handle
from servers.sqlite.engine.opening import OpenOptions

LENGTH = struct.Struct(">Q")


class RemoteCursor:
    """A cursor in the process, where work that reads its rows must be done."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self) -> Iterator[NoReturn]:
        raise Uninterruptible

    def close(self) -> None:
        """Close the cursor in its process."""
        raise Uninterruptible


class Cursors:
    """The cursors of this process that the other side refers to."""

    def __init__(self) -> None:
        self._cursors: dict[int, sqlite3.Cursor] = {}
        self._last = 0

    def assign_number(self, value: Any) -> int | None:
        """Return the number by which the other side refers to a cursor; None for other values."""
        if not isinstance(value, sqlite3.Cursor):
            return None
        self._last += 1
        self._cursors[self._last] = value
        return self._last

    def take(self, number: int) -> Any:
        """Return the cursor with that number. For a cursor of an earlier process, return one that always fails."""
        return self._cursors.pop(number, None) or _LostCursor()


class _LostCursor:
    def __iter__(self) -> Iterator[NoReturn]:
        reason = "the remaining rows were lost when the process that held them ended"
        raise SqlError("bad_cursor", reason, "Omit the cursor to start from the first row.")

    def close(self) -> None:
        """Do nothing."""


def pack(value: Any, persistent: Callable[[Any], int | None]) -> bytes:
    """Return the frame of a value, in which numbers replace the `persistent` objects."""
    body = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> int | None:
            return persistent(item)

    Pickler(body, pickle.HIGHEST_PROTOCOL).dump(value)
    return LENGTH.pack(body.tell()) + body.getvalue()


def unpack(body: bytes, persistent: Callable[[int], Any]) -> Any:
    """Return the value of a frame."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Any:
            return persistent(number)

    return Unpickler(io.BytesIO(body)).load()


class _Worker:
    """A handle, and the stream of answers."""

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
        # Modules for the work are imported here, when first needed. That does not count towards the statement's time.
        work = unpack(body, self.cursors.take)
        self._send("begun", None)
        return handle.do(work, _ReportingDeadline(limits, partial(self._send, "committing")))

    def _answer(self, act: Callable[[], Any]) -> None:
        try:
            outcome = act()
        except SqlError as error:
            outcome = error
        self._send("done", outcome)

    def _send(self, kind: str, value: Any) -> None:
        self._answers.write(pack((kind, value), self.cursors.assign_number))
        self._answers.flush()


def _open(handle: Handle) -> None:
    handle.open()


class _ReportingDeadline(StatementDeadline):
    """A deadline that reports the beginning and end of a commit to the side that kills the process."""

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
    """Serve the file in the first frame until the input ends."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    worker = _Worker(sys.stdout.buffer)
    worker.serve(unpack(requests.get(), worker.cursors.take), requests)
