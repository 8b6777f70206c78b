"""The process that does what can't be interrupted: one work after another, from standard input to standard output.

It ends with the server, in the midst of an instruction too: a thread of its own reads the input. What goes between
the two are pickled values, each after its length. A cursor stays where it is: the other side gets a `HeldCursor` for
it, which is that cursor again when it comes back. Both sides are this program, and what is sent are the values it
works with anyway.
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


class HeldCursor:
    """A cursor of the process. Work that wants its rows belongs there."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self) -> Iterator[NoReturn]:
        raise Uninterruptible

    def close(self) -> None:
        """Has it closed there."""
        raise Uninterruptible


class Cursors:
    """The cursors of this process that the other side has."""

    def __init__(self) -> None:
        self._cursors: dict[int, sqlite3.Cursor] = {}
        self._last = 0

    def keep(self, value: Any) -> int | None:
        """The number by which the other side knows a cursor; None for all else."""
        if not isinstance(value, sqlite3.Cursor):
            return None
        self._last += 1
        self._cursors[self._last] = value
        return self._last

    def take(self, number: int) -> Any:
        """The cursor of that number; none is left of those that an earlier process had."""
        return self._cursors.pop(number, None) or _Gone()


class _Gone:
    def __iter__(self) -> Iterator[NoReturn]:
        reason = "the rows after these are gone with the process that held them"
        raise SqlError("bad_cursor", reason, "Leave the cursor out to begin at the first row.")

    def close(self) -> None:
        """There is nothing to close."""


def pack(value: Any, persistent: Callable[[Any], int | None]) -> bytes:
    """The frame of a value, in which numbers stand for what is `persistent`."""
    body = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, one: Any) -> int | None:
            return persistent(one)

    Pickler(body, pickle.HIGHEST_PROTOCOL).dump(value)
    return LENGTH.pack(body.tell()) + body.getvalue()


def unpack(body: bytes, persistent: Callable[[int], Any]) -> Any:
    """The value of a frame."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Any:
            return persistent(number)

    return Unpickler(io.BytesIO(body)).load()


class _Worker:
    """A handle, and the way to whoever asks."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self.cursors = Cursors()

    def serve(self, opening: OpenOptions, requests: "queue.SimpleQueue[bytes]") -> None:
        """Opens the file, and does what is asked, for ever."""
        handle = Handle(opening)
        self._answer(partial(_open, handle))
        while True:
            self._answer(partial(self._do, handle, opening.limits, requests.get()))

    def _do(self, handle: Handle, limits: Limits, body: bytes) -> Any:
        handle.follow()
        # What the work needs is loaded here, when it is first needed. That is not the time of the statement.
        work = unpack(body, self.cursors.take)
        self._tell("begun", None)
        return handle.do(work, _TellingDeadline(limits, partial(self._tell, "committing")))

    def _answer(self, act: Callable[[], Any]) -> None:
        try:
            found = act()
        except SqlError as error:
            found = error
        self._tell("done", found)

    def _tell(self, kind: str, value: Any) -> None:
        self._answers.write(pack((kind, value), self.cursors.keep))
        self._answers.flush()


def _open(handle: Handle) -> None:
    handle.open()


class _TellingDeadline(StatementDeadline):
    """One that says when a commit begins and ends: who kills the process must know it."""

    def __init__(self, limits: Limits, tell: Callable[[bool], None]) -> None:
        super().__init__(limits.seconds, limits.busy_seconds)
        self._tell = tell

    @contextmanager
    def committing(self) -> Iterator[None]:
        with super().committing():
            self._tell(True)
            try:
                yield
            finally:
                self._tell(False)


def _read(requests: BinaryIO, into: "queue.SimpleQueue[bytes]") -> None:
    while start := requests.read(LENGTH.size):
        into.put(requests.read(LENGTH.unpack(start)[0]))
    # sys.exit would end this thread alone.
    os._exit(0)


def main() -> None:
    """Serves the file that the first frame names, until there are no more."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    worker = _Worker(sys.stdout.buffer)
    worker.serve(unpack(requests.get(), worker.cursors.take), requests)
