"""Converts errors of PostgreSQL to `SqlError`. The code depends on the SQLSTATE, never on the message, which may be
in any language.

Errors while a connection is opened are `OpeningError` instead: their messages contain hosts, files or roles, and are
shown only to the operator.
"""

from psycopg.pq import DiagnosticField as Field
from psycopg.pq.abc import PGresult

from servers.common.sql.errors import PARAMETER_AS_NAME, SqlError

DENIED = "42501"
"""The SQLSTATE for a missing permission of the role."""
NOT_UNIQUE, BAD_TIME = "42725", "22007"
"""The SQLSTATEs for an ambiguous function or operator (one with candidates for several types), and for text that is
not a date or time."""
BAD_TEXT = "22P02"
"""The SQLSTATE for a string that is not a value of its type (invalid_text_representation)."""
_MAX_MESSAGE_LENGTH = 500
"""Maximum number of characters of a quoted message of PostgreSQL, which may repeat the statement."""
_TRY_AGAIN = "Try again."
_REQUEST_LESS = "Request less, or sort and group less."
_PLACEHOLDERS = frozenset("?%:")
"""Characters with which parameters begin in other database interfaces."""
_PARAMETERS = "Parameters are written $1, $2 and so on, or :name if they are given as an object."

# By SQLSTATE or the first two or three characters of it (Appendix A of the manual): the code, the reason and the
# suggestion of the error. If the reason is empty, PostgreSQL's own message is quoted.
_BY_STATE: dict[str, tuple[str, str, str]] = {
    "08": ("unavailable", "the connection to the database broke", _TRY_AGAIN),
    "08001": ("unavailable", "a foreign server that the statement reads can't be reached", _TRY_AGAIN),
    "08P01": ("bad_parameters", "", "Pass one value for each of $1, $2 and so on."),
    "0A": ("bad_statement", "", ""),
    "22": ("bad_value", "", ""),
    "23": ("constraint", "", ""),
    "25001": ("bad_statement", "", "Omit CONCURRENTLY: the statements of one call are one transaction."),
    "25006": (
        "refused",
        "the statement changes the database, but this call only reads",
        "Omit FOR UPDATE, if present.",
    ),
    "25P03": ("unavailable", "the database ended a transaction that waited too long", _TRY_AGAIN),
    "25P04": ("timeout", "the database ended the transaction, which took longer than it allows", ""),
    "28": ("denied", "the database rejects the login of this server", ""),
    "2D000": ("bad_statement", "", "Remove COMMIT from it: the statements of one call are one transaction."),
    "40001": (
        "busy",
        "another transaction changed the same rows, or a standby had to apply such a change",
        _TRY_AGAIN,
    ),
    "40P01": ("busy", "two transactions waited for each other, and this one was rolled back", _TRY_AGAIN),
    DENIED: ("denied", "", "The operator can grant it to the role of this server."),
    "42P02": ("bad_parameters", "", "Pass one value for each of $1, $2 and so on."),
    "42P18": ("bad_statement", "", "Add the type of the parameter, as in $1::text."),
    "53": ("busy", "the database is out of resources", "Try again later."),
    "53100": ("no_space", "the disk of the database is full", ""),
    "53200": ("too_large", "the database is out of memory", _REQUEST_LESS),
    "53300": ("busy", "the database has no free connection", "Try again later."),
    "53400": ("too_large", "it exceeds a limit in the configuration of the database", _REQUEST_LESS),
    "54": ("too_large", "", ""),
    "55006": ("busy", "another session is using it", _TRY_AGAIN),
    "55P03": ("busy", "another session holds a lock on it", _TRY_AGAIN),
    "55P04": ("bad_statement", "", "Add the value to the type in a separate call, before this one."),
    "57014": (
        "timeout",
        "the database stopped the statement: its own time limit was reached, or someone cancelled it",
        _TRY_AGAIN,
    ),
    "57P": ("unavailable", "the database is shutting down or starting up", _TRY_AGAIN),
    "57P05": ("unavailable", "the database ended a connection that was idle for too long", _TRY_AGAIN),
    "58": ("io_error", "the database could not read or write a file", ""),
    "HV00N": ("unavailable", "a foreign server that the statement reads can't be reached", _TRY_AGAIN),
    "XX001": ("corrupt", "a table of the database is damaged", "The operator can restore a backup."),
    "XX002": ("corrupt", "an index in the database is damaged", "The operator can rebuild it with REINDEX."),
    "XX": ("bad_statement", "", ""),
}


class PostgresError(SqlError):
    """An error that PostgreSQL reports for a statement."""

    def __init__(self, code: str, reason: str, suggestion: str, quoted: tuple[str, ...], state: str) -> None:
        super().__init__(code, reason, suggestion, quoted)
        self.state = state
        """The SQLSTATE of the error; empty if the connection broke."""
        self.position: int | None = None
        """The position of the error, in characters of the caller's statement; None if it is unknown."""
        self.context = ""
        """PostgreSQL's description of the error's context."""

    def add_place(self, location: str) -> SqlError:
        """Return a copy with a place, like `SqlError.add_place`, that has the properties of this class."""
        if not location:
            return self
        error = PostgresError(self.code, f"{location}: {self.reason}", self.suggestion, self.quoted, self.state)
        error.position, error.context = self.position, self.context
        return error


def from_result(result: PGresult, sql: str, prefix_length: int = 0) -> PostgresError:
    """Return the error of a `result`, for the caller's statement `sql`.

    `prefix_length` is the number of characters that were sent before that statement.
    """

    def read(field: Field) -> str:
        return (result.error_field(field) or b"").decode("utf-8", "replace")

    state = read(Field.SQLSTATE)
    if not state:
        return make_connection_error()
    matching_state = next((state[:length] for length in (5, 3, 2) if state[:length] in _BY_STATE), "")
    code, reason, suggestion = _BY_STATE.get(matching_state, ("bad_statement", "", ""))
    position_text = read(Field.STATEMENT_POSITION)
    position = int(position_text) - 1 - prefix_length if position_text.isdecimal() else -1
    location = ""
    if 0 <= position <= len(sql):
        line, start = sql.count("\n", 0, position) + 1, sql.rfind("\n", 0, position)
        location = f" at line {line}, column {position - start}"
    if reason:
        error = PostgresError(code, f"{reason} ({state})", suggestion, (), state)
    else:
        messages = (read(Field.MESSAGE_PRIMARY), read(Field.MESSAGE_DETAIL), read(Field.MESSAGE_HINT))
        quoted = tuple(word[:_MAX_MESSAGE_LENGTH] for word in messages if word)
        # PostgreSQL takes ? for an operator, and reports the position after it.
        if location and (sql[position : position + 1] in _PLACEHOLDERS or sql[:position].rstrip().endswith("?")):
            suggestion = suggestion or _PARAMETERS
        elif location and sql[position : position + 1] == "$":
            suggestion = suggestion or PARAMETER_AS_NAME
        error = PostgresError(code, f"PostgreSQL refuses it{location} ({state})", suggestion, quoted, state)
        error.position = position if location else None
    error.context = read(Field.CONTEXT)
    return error


def make_connection_error() -> PostgresError:
    """Return the error for a connection that broke."""
    return PostgresError(*_BY_STATE["08"], (), "")
