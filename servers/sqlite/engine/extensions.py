"""Loads SQLite extensions that the operator has chosen. Their code runs in this process, so clients can't choose any.

They are loaded before the policy takes effect, because it forbids `load_extension`. Statements may call the functions
that extensions add, and create and read virtual tables of their modules.
"""

import logging
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from servers.common.sql.errors import SqlError

log = logging.getLogger("servers.sqlite")

_SPEC = re.compile(r"(.+?)(?:=(\w+))?", re.DOTALL)


class SqliteExtension(NamedTuple):
    """A library file with an extension. If `entry_point` is None, SQLite derives its name from that of the file."""

    path: Path
    entry_point: str | None = None


def parse_extension(spec: str) -> SqliteExtension:
    """Parse an extension as written on the command line: PATH, or PATH=ENTRY_POINT. Raises ValueError."""
    parts = _SPEC.fullmatch(spec)
    if parts is None:
        raise ValueError("an extension path is empty")
    return SqliteExtension(Path(parts[1]), parts[2])


def load_extensions(connection: sqlite3.Connection, extensions: Sequence[SqliteExtension]) -> frozenset[str]:
    """Load the extensions, and return the lowercase names of the modules that they add. Raises SqlError."""
    if not extensions:
        return frozenset()
    if not hasattr(connection, "enable_load_extension"):
        reason = "the sqlite3 module of this Python was built without support for extensions"
        raise SqlError("bad_settings", reason, "The operator can run the server with a Python that supports them.")
    before = _list_modules(connection)
    connection.enable_load_extension(True)
    try:
        for extension in extensions:
            # Python's own method accepts an entry point only since version 3.12, so use SQL. SQLite derives an entry
            # point that is NULL from the path.
            try:
                connection.execute(
                    "SELECT load_extension(?, ?)", (str(extension.path), extension.entry_point)
                ).fetchall()
            except sqlite3.Error as error:
                # SQLite's message contains the path, which clients must not see.
                log.error("%s can't be loaded: %s", extension.path, error)
                raise SqlError("bad_settings", f"the extension {extension.path.name} can't be loaded") from None
    finally:
        connection.enable_load_extension(False)
    return frozenset(_list_modules(connection) - before)


def _list_modules(connection: sqlite3.Connection) -> set[str]:
    return {str(name).lower() for (name,) in connection.execute("PRAGMA module_list")}
