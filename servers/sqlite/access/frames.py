"""What goes between the server and a process that works for it: pickled values, each after its length.

A cursor stays where it is: the other side gets a `Held` for it, which is that cursor again when it comes back. Both
sides are this program, and what is sent are the values it works with anyway.
"""

import io
import pickle
import sqlite3
import struct
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from servers.sqlite.access.stopping import Uninterruptible
from servers.sqlite.errors import SqliteError

__all__ = ["LENGTH", "Cursors", "Held", "packed", "unpacked"]

LENGTH = struct.Struct(">Q")


class Held:
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
        raise SqliteError("bad_cursor", reason, "Leave the cursor out to begin at the first row.")

    def close(self) -> None:
        """There is nothing to close."""


def packed(value: Any, persistent: Callable[[Any], int | None]) -> bytes:
    """The frame of a value, in which numbers stand for what is `persistent`."""
    body = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, one: Any) -> int | None:
            return persistent(one)

    Pickler(body, pickle.HIGHEST_PROTOCOL).dump(value)
    return LENGTH.pack(body.tell()) + body.getvalue()


def unpacked(body: bytes, persistent: Callable[[int], Any]) -> Any:
    """The value of a frame."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Any:
            return persistent(number)

    return Unpickler(io.BytesIO(body)).load()
