"""Keeps a database file open, and does work with it in one thread.

If another file replaces the open one, for example a restored backup, `reopen_replaced` switches to it.
"""

import os
import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import ONLY_NAMES

from ..errors import from_sqlite
from .deadline import StatementDeadline, Uninterruptible
from .entries import suggest_names
from .opening import GuardedConnection, OpenOptions, is_unrecovered, open_database, recover
from .quoted_names import QuotedTextError

T = TypeVar("T")

Work = Callable[[GuardedConnection, StatementDeadline], T]
"""A function that works with a connection. SQLite checks the `StatementDeadline` during statements; the function must
check it between them."""

OPENING_NUMBERS = count()
"""Yields a new number for each opening of a file. Different numbers mean different files or connections."""


class Handle:
    """A connection to a database, with the identities of its file and of the attached files."""

    connection: GuardedConnection

    def __init__(self, options: OpenOptions) -> None:
        self.number = next(OPENING_NUMBERS)
        self._options = options
        self._files: list[tuple[int, int] | None] = []
        self._deadline: StatementDeadline | None = None

    def open(self) -> GuardedConnection:
        """Open the file. Raises SqlError."""
        files = self._identify()
        self.connection = open_database(self._options, lambda: self._deadline is not None and self._deadline())
        self._files = files
        return self.connection

    @property
    def is_replaced(self) -> bool:
        """True if the path of an open file now leads to another file, or to none."""
        return self._identify() != self._files

    def _identify(self) -> list[tuple[int, int] | None]:
        attached = self._options.connection_options.attached
        return [_identify(self._options.path), *(_identify(database.path) for database in attached)]

    def reopen_replaced(self) -> bool:
        """If another file has replaced the open one, open it and return True. Raises SqlError."""
        if not self.is_replaced:
            return False
        # Close the old connection last: if the new one can't be opened, the old one stays in use.
        old_connection = self.connection
        self.open()
        self.number = next(OPENING_NUMBERS)
        old_connection.close()
        return True

    def do(self, work: Work[T], deadline: StatementDeadline) -> T:
        """Do `work`. Raises SqlError, and Uninterruptible if it needs a process that can be killed."""
        self._deadline = deadline
        self.connection.policy.reset()
        try:
            try:
                return work(self.connection, deadline)
            except sqlite3.OperationalError as error:
                if not (self._options.recovers and is_unrecovered(error)):
                    raise
            # Only a connection that may write can roll back a hot journal (https://sqlite.org/lockingv3.html, 4.2).
            recover(self._options.path, deadline)
            return work(self.connection, deadline)
        except SqlError as error:
            raise error.add_place(deadline.position) from None
        except (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, UnicodeError) as error:
            raise self._convert_error(error, deadline).add_place(deadline.position) from None
        finally:
            self._deadline = None

    def _convert_error(self, error: Exception, deadline: StatementDeadline) -> SqlError:
        policy, name = self.connection.policy, getattr(error, "sqlite_errorname", "")
        if policy.uninterruptible:
            raise Uninterruptible
        if name == "SQLITE_INTERRUPT":
            return deadline.error()
        # The policy gives a better reason than SQLite's message, which only says that the statement is not
        # authorized, or names a view if a view or generated column causes the action.
        if policy.refusal is not None:
            return SqlError("refused", f"the statement is not allowed: {policy.refusal}", policy.suggestion)
        reported = from_sqlite(error)
        if name == "SQLITE_ERROR":
            about_view = "" if policy.hidden is None else policy.hidden.explain_view(str(error))
            advice = ONLY_NAMES if isinstance(error, QuotedTextError) else ""
            nearest = suggest_names(self.connection, str(error), policy.is_closed)
            reported.suggestion = about_view or " ".join(filter(None, (reported.suggestion, advice, nearest)))
        return reported


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - twice as fast, and done for each query
    except OSError:
        return None
    return status.st_dev, status.st_ino
