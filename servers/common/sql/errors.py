"""Errors of a database, as one exception with a stable code.

`SqlError` is the only exception that an engine raises on purpose; each engine converts its library's errors in one
place. A database's messages, the names in it and errors raised by triggers are data, no matter who wrote them. Like
values, they are put between marks, each on one line.
"""

from collections.abc import Sequence

from servers.common.sql.texts import fence
from shared.coded_errors import CodedError
from shared.text import escape

NO_NAME = "A parameter is a value, never the name of a table or column: write the name in the statement."
"""The remedy for a parameter where only a name may be."""


class SqlError(CodedError):
    """A refusal or failure. The `quoted` lines are untrusted data."""

    def __init__(self, code: str, reason: str, suggestion: str = "", quoted: Sequence[str] = ()) -> None:
        super().__init__(code, reason, suggestion)
        self.quoted = tuple(map(escape, quoted))

    def __str__(self) -> str:
        if self.quoted:
            return "\n".join(filter(None, (f"{self.reason}:", fence(self.quoted), self.suggestion)))
        return super().__str__()

    @property
    def line(self) -> str:
        """The whole error on one line without marks, for a log or for text that is already between marks."""
        return f"{': '.join((self.reason, *self.quoted))}. {self.suggestion}".removesuffix(". ")

    def add_place(self, where: str) -> "SqlError":
        """Return the same error, with the place `where` it happened added if that is not empty."""
        return SqlError(self.code, f"{where}: {self.reason}", self.suggestion, self.quoted) if where else self
