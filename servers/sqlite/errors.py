"""Converts errors of the `sqlite3` module to `SqlError`.

The code depends on SQLite's name for the error, such as SQLITE_BUSY. The message decides only if there is no name.
"""

import re
import sqlite3

from servers.common.sql.errors import PARAMETER_AS_NAME, SqlError
from shared.text import escape

_MAX_MESSAGE_LENGTH = 500
"""Maximum number of characters of a quoted message of SQLite, which may repeat the statement."""
_CONSTRAINT = 19
"""SQLITE_CONSTRAINT, which is also the lowest byte of its extended codes (https://sqlite.org/rescode.html)."""

_BAD_SCHEMA = "malformed database schema ("
"""The start of SQLite's message for a statement in the schema that it can't parse."""
_PARAMETER = re.compile(r'near "[?:@$]\w*": syntax error')

# The code, the reason and the suggestion of the error, by SQLite's name or by the first two words of that name. If
# the reason is empty, SQLite's own message is quoted.
_BY_NAME: dict[str, tuple[str, str, str]] = {
    # If the policy has refused something, it has given the reason. This is for a name that SQLite can't pass to it.
    "SQLITE_AUTH": ("refused", "a name in the database is not UTF-8, so the statement can't be checked", ""),
    "SQLITE_BUSY": ("busy", "another process holds a lock on the database", "Try again."),
    "SQLITE_LOCKED": ("busy", "another statement holds a lock on the table", "Try again."),
    "SQLITE_READONLY_ROLLBACK": (
        "unfinished",
        "a program was killed while it changed the database, and its unfinished changes must be rolled back first, "
        "which this server is not permitted to do",
        "The operator can start it once with --allow-write, or run: sqlite3 FILE .tables",
    ),
    "SQLITE_READONLY": ("read_only", "the database is read-only", ""),
    "SQLITE_CORRUPT": ("corrupt", "the database file is damaged", "The operator can restore a backup."),
    "SQLITE_ERROR_MISSING_COLLSEQ": (
        "bad_statement",
        "",
        "The program that made the table defines that collation. Name another one, such as COLLATE NOCASE, in ORDER "
        "BY and comparisons, and add NOT INDEXED after the name of the table.",
    ),
    "SQLITE_NOTADB": ("corrupt", "the file is not an SQLite database, or is encrypted", ""),
    "SQLITE_TOOBIG": ("too_large", "a value or the statement is larger than the limit", "Request a part of it."),
    "SQLITE_FULL": ("no_space", "the disk is full", ""),
    "SQLITE_NOMEM": ("too_large", "it needs more memory than the limit", "Request less, or sort and group less."),
    "SQLITE_IOERR": ("io_error", "reading or writing the file failed", ""),
    "SQLITE_CANTOPEN": ("io_error", "a file of the database can't be opened", ""),
    "SQLITE_CONSTRAINT": ("constraint", "", ""),
    "SQLITE_MISMATCH": ("bad_value", "", ""),
    "SQLITE_RANGE": ("bad_parameters", "", ""),
}


def from_sqlite(error: Exception) -> SqlError:
    """Return the `SqlError` for an exception that the `sqlite3` module raised for a statement or its parameters."""
    if isinstance(error, MemoryError):
        return SqlError(*_BY_NAME["SQLITE_NOMEM"])
    message = str(error)[:_MAX_MESSAGE_LENGTH]
    if isinstance(error, OverflowError):
        return SqlError("bad_parameters", "an integer has more than 64 bits")
    if isinstance(error, UnicodeDecodeError):
        suggestion = "Give the selected value another name with AS."
        return SqlError("bad_statement", "a name in the database is not UTF-8, so it can't be shown", suggestion)
    if isinstance(error, UnicodeError):
        return SqlError("bad_parameters", "a text contains half of a surrogate pair, which UTF-8 can't represent")
    name = getattr(error, "sqlite_errorname", "")
    if not name:
        # The `sqlite3` module itself detects a second statement, a wrong number of parameters, and a NUL character.
        if isinstance(error, sqlite3.Warning) or "one statement" in message:
            return SqlError("bad_statement", "there is more than one statement", "Run them one by one.")
        return SqlError("bad_parameters" if "binding" in message else "bad_statement", escape(message))
    if error.sqlite_errorcode & 0xFF == _CONSTRAINT:  # type: ignore[attr-defined]
        # Python 3.11 has no names for some errors, such as that for a value of a wrong type in a STRICT table.
        name = name if name.startswith("SQLITE_") else "SQLITE_CONSTRAINT"
    code, reason, suggestion = _BY_NAME.get(name) or _BY_NAME.get(
        "_".join(name.split("_")[:2]), ("bad_statement", "", "")
    )
    if message.startswith(_BAD_SCHEMA):
        reason = f"the schema is damaged, or was written by a newer SQLite than this one, {sqlite3.sqlite_version}"
        return SqlError(code, reason, "The operator can use a newer Python, or restore a backup.", (message,))
    if reason:
        return SqlError(code, f"{reason} ({name})", suggestion)
    suggestion = suggestion or (PARAMETER_AS_NAME if _PARAMETER.fullmatch(message) else "")
    return SqlError(code, f"SQLite refuses it ({name})", suggestion, (message,))
