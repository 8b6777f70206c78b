"""What can go wrong with a database, as one exception with a stable code.

`SqlError` is the only exception that an engine lets out on purpose; each makes it of its library's errors in one
place. A database's own words, names in it and what a trigger raises are data, whoever wrote them. They stand between
marks as values do, and each on one line.
"""

from collections.abc import Sequence

from servers.common.sql.texts import fence
from shared.coded_errors import CodedError
from shared.text import escape


class SqlError(CodedError):
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

    def at(self, where: str) -> "SqlError":
        """The same, which says `where` it happened, unless that is nothing."""
        return SqlError(self.code, f"{where}: {self.reason}", self.suggestion, self.quoted) if where else self
