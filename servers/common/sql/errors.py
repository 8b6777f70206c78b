"""The exception for all errors of databases.

`SqlError` is the only exception that an engine raises on purpose. Each engine converts the errors of its library in
one place. Messages from a database, names in it, and errors that triggers raise are untrusted data. Like values, they
are put between marks (see `texts`), each on one line.
"""

from collections.abc import Sequence

from shared.coded_errors import CodedError
from shared.text import escape

from .texts import fence

PARAMETER_AS_NAME = "A parameter is a value, never the name of a table or column: write the name in the statement."
"""The suggestion of the error if a statement has a parameter instead of a name."""


class SqlError(CodedError):
    """Raised if a request is refused or fails. The lines in `quoted` are untrusted data."""

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
        """Return the error with `location`, such as a statement or row, before its reason, unless that is empty."""
        return SqlError(self.code, f"{location}: {self.reason}", self.suggestion, self.quoted) if location else self
