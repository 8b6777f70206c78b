"""The exception for all errors of prompt libraries, and problems to report.

`PromptError` is the only exception that the code of libraries raises on purpose.
"""

from typing import NamedTuple

from shared.coded_errors import CodedError
from shared.text import escape


class PromptError(CodedError):
    """Raised if a request is refused or fails. Its texts have one line each, with control characters escaped.

    The codes: `bad_prompt` (for a file), `bad_template`, `bad_arguments`, `missing_arguments`, `not_found`,
    `too_large`, `too_long` for too many steps or too much time, `already_exists`, `changed`, `read_only`,
    `not_written`, and `not_fetched`.
    """

    def __init__(self, code: str, reason: str, suggestion: str = "", line: int | None = None) -> None:
        super().__init__(code, escape(reason), escape(suggestion))
        self.line = line
        """The line of the file, from 1; None if it is unknown."""


class Problem(NamedTuple):
    """A problem with a file in a library, or with the whole library."""

    path: str
    """The path of the file in the library, with / between names; "" for the whole library."""
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return escape(f"{where}: {self.reason}" if where else self.reason)
