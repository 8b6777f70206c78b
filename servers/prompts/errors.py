"""The errors of the prompt library, as one exception with a stable code.

`PromptError` is the only exception that the domain raises intentionally.
"""

from typing import NamedTuple

from shared.coded_errors import CodedError
from shared.text import escape


class PromptError(CodedError):
    """A refusal or failure. Its texts are one line each, with control characters escaped.

    The codes: `bad_prompt` (for a file), `bad_template`, `bad_arguments`, `missing_arguments`, `not_found`,
    `too_large`, `too_long` for too many steps or too much time, `already_exists`, `changed`, `read_only`,
    `not_written`, and `not_fetched`.
    """

    def __init__(self, code: str, reason: str, suggestion: str = "", line: int | None = None) -> None:
        super().__init__(code, escape(reason), escape(suggestion))
        self.line = line
        """The line of the file, from 1, if known."""


class Problem(NamedTuple):
    """A problem with a file in a library, or with the whole library."""

    path: str
    """The path in the library, with / between names; "" is the whole library."""
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return escape(f"{where}: {self.reason}" if where else self.reason)
