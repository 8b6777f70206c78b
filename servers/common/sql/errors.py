"""Errors of a database, as one exception with a stable code.

`SqlError` is the only exception that an engine raises on purpose; each engine converts its library's errors in one
place. Messages from a database, names in it and errors raised by triggers are untrusted data. Like values, they are
put between marks (see `texts`), each on one line.
"""

from collections.abc import Sequence

from servers.common.sql.texts import fence
from shared.coded_errors import CodedError
from shared.text import escape

PARAMETER_AS_NAME = "A parameter is a value, never the name of a table or column: write the name in the statement."
"""The suggestion of an error for a parameter in the position of a name."""


class SqlError(CodedError):
    """The refusal or failure of a request. The `quoted` lines are untrusted data."""

    def __init__(self, code: str, reason: str, suggestion: str = "", quoted: Sequence[str] = ()) -> None:
        super().__init__(code, reason, suggestion)
        self.quoted = tuple(map(escape, quoted))

    def __str__(self) -> str:
        if self.quoted:
            return "\n".join(filter(None, (f"{self.reason}:", fence(self.quoted), self.suggestion)))
        return super().__str__()

    @property
    def line(self) -> str:
        """The error on one line without marks, for a log or for text that is already between marks."""
        return f"{': '.join((self.reason, *self.quoted))}. {self.suggestion}".removesuffix(". ")

    def add_place(self, location: str) -> "SqlError":
        """Return the error, whose reason begins with `location`, such as a statement or row, unless that is empty."""
        return SqlError(self.code, f"{location}: {self.reason}", self.suggestion, self.quoted) if location else self
