"""The process that does what can't be interrupted: one work after another, from standard input to standard output.

It ends with the server, in the midst of an instruction too: a thread of its own reads the input.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

from servers.sqlite.access.frames import LENGTH, Cursors, packed, unpacked
from servers.sqlite.access.handle import Handle
from servers.sqlite.access.limits import Limits
from servers.sqlite.access.opening import Opening
from servers.sqlite.access.stopping import Stop
from servers.sqlite.errors import SqliteError

__all__ = ["main"]


class _Worker:
    """A handle, and the way to whoever asks."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self.cursors = Cursors()

    def serve(self, opening: Opening, requests: "queue.SimpleQueue[bytes]") -> None:
        """Opens the file, and does what is asked, for ever."""
        handle = Handle(opening)
        self._answer(partial(_open, handle))
        while True:
            self._answer(partial(self._do, handle, opening.limits, requests.get()))

    def _do(self, handle: Handle, limits: Limits, body: bytes) -> Any:
        handle.follow()
        # What the work needs is loaded here, when it is first needed. That is not the time of the statement.
        work = unpacked(body, self.cursors.take)
        self._tell("begun", None)
        return handle.do(work, _TellingStop(limits, partial(self._tell, "committing")))

    def _answer(self, act: Callable[[], Any]) -> None:
        try:
            found = act()
        except SqliteError as error:
            found = error
        self._tell("done", found)

    def _tell(self, kind: str, value: Any) -> None:
        self._answers.write(packed((kind, value), self.cursors.keep))
        self._answers.flush()


def _open(handle: Handle) -> None:
    handle.open()


class _TellingStop(Stop):
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
    os._exit(0)


def main() -> None:
    """Serves the file that the first frame names, until there are no more."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    worker = _Worker(sys.stdout.buffer)
    worker.serve(unpacked(requests.get(), worker.cursors.take), requests)
