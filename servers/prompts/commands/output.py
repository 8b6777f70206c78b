"""What the commands begin and end with: a library, and lines."""

import sys
from pathlib import Path

from servers.prompts.errors import Problem, PromptError
from servers.prompts.library.library import Library

__all__ = ["Misuse", "counted", "failed", "opened", "say"]


class Misuse(Exception):
    """What was asked for makes no sense; says why."""


def opened(root: Path) -> Library:
    """The prompts of a folder. Raises Misuse where it has none: the folder is likely to be another one."""
    library = Library(root)
    library.look()
    if not library.names and not library.problems():
        raise Misuse(f"there is no prompt in {root}")
    return library


def say(line: str) -> None:
    """Prints a line; what the terminal has no character for, as an escape. Raises BrokenPipeError."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{line}\n".encode(encoding, "backslashreplace").decode(encoding))


def failed(root: Path, path: str, error: PromptError) -> None:
    """Prints what is wrong, and where."""
    say(str(Problem(str(root / path), error.line, str(error))))


def counted(count: int, noun: str) -> str:
    """A count and its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
