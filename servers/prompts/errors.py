"""What can go wrong with a prompt, as one exception with a stable code.

`PromptError` is the only exception the domain lets out on purpose.
"""

from typing import NamedTuple

from shared.coded_errors import CodedError
from shared.text import escape


class PromptError(CodedError):
    """A refusal or failure, each text of it on one line, where what files say stands in quotes.

    The codes: `bad_prompt` (the file), `bad_template`, `bad_arguments`, `missing_arguments`, `not_found`,
    `too_large`, and `too_long` for what took too many steps or too much time.
    """

    def __init__(self, code: str, reason: str, suggestion: str = "", line: int | None = None) -> None:
        super().__init__(code, escape(reason), escape(suggestion))
        self.line = line
        """The line of the file, from 1, where that is known."""


class Problem(NamedTuple):
    """What is wrong with a file of a library, or with all of it."""

    path: str
    """Within the library, with / between names; "" is all of it."""
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return escape(f"{where}: {self.reason}" if where else self.reason)
