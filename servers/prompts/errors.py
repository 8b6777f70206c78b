"""What can go wrong with a prompt, as one exception with a stable code.

`PromptError` is the only exception the domain lets out on purpose.
"""

from typing import NamedTuple

from servers.prompts.format.characters import shown

__all__ = ["Problem", "PromptError"]


class PromptError(Exception):
    """A refusal or failure: `code` for programs, `reason` and `suggestion` for readers, each on one line, where what
    files say stands in quotes.

    The codes: `bad_prompt` (the file), `bad_template`, `bad_arguments`, `missing_arguments`, `not_found`,
    `too_large`, and `too_long` for what took too many steps or too much time.
    """

    def __init__(self, code: str, reason: str, suggestion: str = "", line: int | None = None) -> None:
        self.code = code
        self.reason = shown(reason)
        self.suggestion = shown(suggestion)
        self.line = line
        """The line of the file, from 1, where that is known."""
        super().__init__(code, self.reason, self.suggestion, line)

    def __str__(self) -> str:
        return f"{self.reason}. {self.suggestion}" if self.suggestion else self.reason


class Problem(NamedTuple):
    """What is wrong with a file of a library."""

    path: str
    """Within the library, with / between names."""
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return shown(f"{where}: {self.reason}")
