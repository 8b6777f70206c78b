"""Reads that are over at once, by a connection of the event loop's own thread: to hand a row from one thread to
another takes longer than to find it.

A statement comes here when a reader's thread has answered it in a moment and can compile it in less than a
millisecond. From then on it is run where it is asked for, under limits that let no instruction take long
(`quick_policy.py`), and is stopped when a millisecond is over. Nothing is waited for and no error is told here:
whatever is stopped, locked, refused, changed or wrong a thread does from the beginning, as if nobody had tried.

Between two reads the database may get another schema. SQLite then compiles the statement anew, and asks the policy.
So where that was not asked, the schema is the one that was there when the statement was compiled.
"""

import asyncio
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from servers.common.sql.errors import SqlError
from servers.sqlite.engine.deadline import Limits, StatementDeadline
from servers.sqlite.engine.entries import ask_schema
from servers.sqlite.engine.handle import Handle
from servers.sqlite.engine.opening import ConnectionOptions, GuardedConnection, OpenOptions
from servers.sqlite.errors import from_sqlite

_SECONDS = 0.001
"""For one read, and for compiling its statement."""
_MOST_BEFORE = 0.1
"""Seconds that a thread has taken at most for what is tried here: it may have waited for other threads."""
_AT_ONCE = 0.02
"""Seconds of processor time for one turn of the event loop, from its first read on."""
_INSTRUCTIONS = 100
"""Of SQLite's virtual machine, between two looks at the clock."""
_TRIES = 3
"""How often in a row a statement may fail to end here."""
_MOST_KNOWN, _LONGEST_KNOWN = 100, 10_000
"""Statements, and characters of one. SQLite keeps more of them compiled."""
_LONGEST_SCHEMA = 100_000
"""Characters of SQL. SQLite parses all of it whenever it has changed."""
_LATE, _REST = 0.05, 10
"""Seconds of a read after which none is tried for a while, and how many times as long that is: the disk is slow, or
the machine, or a row large."""
_MOST_DOUBLED = 10
"""How often the time of rest is doubled."""
_RETRY = 1.0
"""Seconds after which a file that could not be opened is tried again."""
_NO_LOCK = -1.0
"""Seconds to wait for a lock: it is not waited for."""

T = TypeVar("T")

Work = Callable[[GuardedConnection, int], T]
"""What is done with the connection; it is told the schema's version."""
Parameters = Sequence[Any] | Mapping[str, Any]
Read = Callable[[Callable[[GuardedConnection, StatementDeadline], bool]], Awaitable[bool]]
"""Does something with a connection of a thread. Raises SqlError."""


@dataclass(slots=True)
class _Known:
    """A statement that was asked before."""

    tries: int = 0
    is_compiled: bool = False


class QuickReader:
    """Runs statements that are over at once, for one event loop."""

    def __init__(self, path: Path, limits: Limits, connecting: ConnectionOptions) -> None:
        self._opening = OpenOptions(path, "quick", limits._replace(busy_seconds=_NO_LOCK), connecting=connecting)
        self._seconds = min(_SECONDS, limits.seconds)
        self._handle: Handle | None = None
        self._schema_version = 0
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._is_learning = False
        self._until = self._rests_until = 0.0
        self._costly = 0
        """Reads that were late because of their rows, which stay: so after each the rest is twice as long."""
        self._turn_began: float | None = None
        """What the thread had taken of the processor before the first read of this turn of the event loop."""

    def run(self, statement: str, work: Work[T | None]) -> T | None:
        """What `work` gives, which runs `statement`; None where a thread has to do it. Never waits or raises."""
        known, handle, began = self._known.get(statement), self._handle, time.monotonic()
        if known is None or not known.tries or handle is None or began < self._rests_until:
            return None
        if not self._has_turn(handle):
            return None
        self._known.move_to_end(statement)
        self._until = began + self._seconds
        found, is_passing = None, False
        try:
            found = self._run(known, handle.connection, work)
        except (sqlite3.Error, sqlite3.Warning, SqlError, MemoryError, OverflowError, UnicodeError) as error:
            is_passing = _is_passing(error)
        if (seconds := time.monotonic() - began) > _LATE:
            self._rest(known, seconds)
        elif not is_passing:
            known.tries = known.tries - 1 if found is None else _TRIES
        return found

    def _rest(self, known: _Known, seconds: float) -> None:
        """Tries none for a while after a read that took so long, and its statement no more where the processor was at
        work: a single instruction goes through all pages of a large row to the column behind it."""
        if self._turn_began is not None and time.thread_time() - self._turn_began > _LATE:
            known.tries = 0
            self._costly += 1
        else:
            known.tries -= 1
        self._rests_until = time.monotonic() + seconds * _REST * 2 ** min(self._costly, _MOST_DOUBLED)

    def knows(self, statement: str) -> bool:
        """Whether it is worth while to `run` a statement."""
        known = self._known.get(statement)
        return known is not None and known.tries > 0

    def wants(self, statement: str, seconds: float) -> bool:
        """Whether a statement that a thread has answered in `seconds` is to be learned now. After a long time it is
        not, nor later: by the next time that thread has it compiled, and is quick."""
        if statement in self._known or len(statement) > _LONGEST_KNOWN:
            return False
        if seconds > _MOST_BEFORE:
            self._remember(statement, 0)
            return False
        return not self._is_learning and time.monotonic() >= self._rests_until

    async def learn(self, statement: str, parameters: Parameters, read: Read) -> None:
        """Finds out, with a connection that `read` lends, whether a statement is to be run here from now on."""
        self._is_learning = True
        try:
            is_quick = await read(partial(_is_compiled_at_once, statement, parameters))
            if is_quick and self._handle is None:
                self._open()
        except SqlError:
            self._rests_until = time.monotonic() + _RETRY
            return
        finally:
            self._is_learning = False
        self._remember(statement, _TRIES if is_quick else 0)

    def close(self) -> None:
        """Closes the connection, if there is one, and forgets all statements."""
        handle, self._handle = self._handle, None
        self._known.clear()
        if handle is not None:
            handle.connection.close()

    def _remember(self, statement: str, tries: int) -> None:
        self._known[statement] = _Known(tries)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _open(self) -> None:
        handle = Handle(self._opening)
        connection = handle.open()
        connection.set_progress_handler(lambda: time.monotonic() > self._until, _INSTRUCTIONS)
        try:
            self._schema_version = _read_schema_version(connection)
        except sqlite3.Error as error:
            connection.close()
            raise from_sqlite(error) from None
        self._handle = handle

    def _run(self, known: _Known, connection: GuardedConnection, work: Work[T | None]) -> T | None:
        if not known.is_compiled and _read_schema_version(connection) != self._schema_version:
            self.close()
            return None
        connection.policy.forget()
        found = work(connection, self._schema_version)
        # What was compiled just now may have met with the schema of a moment later.
        if connection.policy.acts and _read_schema_version(connection) != self._schema_version:
            self.close()
            return None
        known.is_compiled = True
        return found

    def _has_turn(self, handle: Handle) -> bool:
        """Whether one more read may be done now. The first of a turn of the event loop sees to it that it is the same
        file as before, and from it on the turn is measured."""
        if self._turn_began is not None:
            return time.thread_time() - self._turn_began < _AT_ONCE
        if handle.is_replaced:
            self.close()
            return False
        asyncio.get_running_loop().call_soon(self._end_turn)
        self._turn_began = time.thread_time()
        return True

    def _end_turn(self) -> None:
        self._turn_began = None


def _is_compiled_at_once(
    statement: str, parameters: Parameters, connection: GuardedConnection, _: StatementDeadline
) -> bool:
    """Whether to compile it takes no longer than a read may, and the schema no longer to be parsed."""
    ((length,),) = ask_schema(connection, "SELECT total(length(sql)) FROM sqlite_schema")
    if length > _LONGEST_SCHEMA:
        return False
    began = time.thread_time()
    try:
        # Nothing else has this text, so it is not found compiled.
        connection.execute(f"EXPLAIN {statement}", parameters).close()
    except (sqlite3.Error, sqlite3.Warning):
        return False
    return time.thread_time() - began < _SECONDS


def _read_schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    return int(version)


def _is_passing(error: Exception) -> bool:
    """Whether it says nothing of the statement: the database is locked, or the parameters are of the wrong kind."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or isinstance(
        error, (sqlite3.ProgrammingError, OverflowError, UnicodeError)
    )
