"""What can go wrong with a database, as one exception with a stable code.

`SqliteError` is the only exception the domain lets out on purpose. `from_sqlite` is the only place where an error of
the `sqlite3` module becomes one: the code comes from SQLite's own name of the error, never from its words.

SQLite's words, names in a database and what a trigger raises are data, whoever wrote them. They stand between marks
as values do, and each on one line.
"""

from collections.abc import Sequence

from servers.sqlite.texts import fence
from shared.kit.errors import CodedError
from shared.kit.text import escape

_MESSAGE = 500
"""Characters of SQLite's own words, which may repeat the statement."""

# By SQLite's name of the error or the beginning of that name: a code, what it means, and what to do.
# Where nothing is said, SQLite's words say it best.
_BY_NAME: dict[str, tuple[str, str, str]] = {
    # The policy says why it refuses. Where it was not asked, there was a name that Python could not tell it.
    "SQLITE_AUTH": ("refused", "a name in the database is no UTF-8, so the statement can't be judged", ""),
    "SQLITE_BUSY": ("busy", "another process holds a lock on the database", "Try again."),
    "SQLITE_LOCKED": ("busy", "another statement holds a lock on the table", "Try again."),
    "SQLITE_READONLY_ROLLBACK": (
        "unfinished",
        "a program was killed while it changed the database, and what it left half done must be undone first, for "
        "which this server has no permission",
        "The operator can start it once with --allow-write, or run: sqlite3 FILE .tables",
    ),
    "SQLITE_READONLY": ("read_only", "the database may only be read", ""),
    "SQLITE_CORRUPT": ("corrupt", "the database file is damaged", "The operator can restore a backup."),
    "SQLITE_NOTADB": ("corrupt", "the file is no SQLite database, or is encrypted", ""),
    "SQLITE_TOOBIG": ("too_large", "a value or the statement is larger than the limit", "Ask for a part of it."),
    "SQLITE_FULL": ("no_space", "the disk is full", ""),
    "SQLITE_NOMEM": ("too_large", "it takes more memory than the limit", "Ask for less, or sort and group less."),
    "SQLITE_IOERR": ("io_error", "reading or writing the file failed", ""),
    "SQLITE_CANTOPEN": ("io_error", "a file of the database can't be opened", ""),
    "SQLITE_CONSTRAINT": ("constraint", "", ""),
    "SQLITE_MISMATCH": ("bad_value", "", ""),
    "SQLITE_RANGE": ("bad_parameters", "", ""),
}


class SqliteError(CodedError):
    """A refusal or failure, with lines that are `quoted` because others wrote them."""

    def __init__(self, code: str, reason: str, suggestion: str = "", quoted: Sequence[str] = ()) -> None:
        super().__init__(code, reason, suggestion)
        self.quoted = tuple(map(escape, quoted))

    def __str__(self) -> str:
        if self.quoted:
            return "\n".join(filter(None, (f"{self.reason}:", fence(self.quoted), self.suggestion)))
        return super().__str__()

    @property
    def line(self) -> str:
        """All of it without marks, where it stands between some already, or in a log."""
        return f"{': '.join((self.reason, *self.quoted))}. {self.suggestion}".removesuffix(". ")

    def at(self, where: str) -> "SqliteError":
        """The same, which says `where` it happened, unless that is nothing."""
        return SqliteError(self.code, f"{where}: {self.reason}", self.suggestion, self.quoted) if where else self


def from_sqlite(error: Exception) -> SqliteError:
    """The `SqliteError` for what the `sqlite3` module raised over a caller's statement or its parameters."""
    if isinstance(error, MemoryError):
        return SqliteError(*_BY_NAME["SQLITE_NOMEM"])
    words = str(error)[:_MESSAGE]
    if isinstance(error, OverflowError):
        return SqliteError("bad_parameters", "an integer has more than 64 bits")
    if isinstance(error, UnicodeDecodeError):
        suggestion = "Give what is selected another name with AS."
        return SqliteError("bad_statement", "a name in the database is no UTF-8, so it can't be told", suggestion)
    if isinstance(error, UnicodeError):
        return SqliteError("bad_parameters", "a text holds half of a surrogate pair, which UTF-8 can't carry")
    name = getattr(error, "sqlite_errorname", "")
    if not name:
        # What the module finds before SQLite does: the number of parameters, a second statement, a NUL character.
        return SqliteError("bad_parameters" if "binding" in words else "bad_statement", escape(words))
    code, reason, suggestion = _BY_NAME.get(name) or _BY_NAME.get(
        "_".join(name.split("_")[:2]), ("bad_statement", "", "")
    )
    if reason:
        return SqliteError(code, f"{reason} ({name})", suggestion)
    return SqliteError(code, f"SQLite refuses it ({name})", suggestion, (words,))
