"""Errors of commands."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def exit_code(command: Callable[[Sequence[str]], Any], *words: str) -> int:
    """Returns the exit code of a command, whether it returns it or raises SystemExit."""
    try:
        return int(command(words))
    except SystemExit as end:
        return int(end.code or 0)


def refused(capsys: pytest.CaptureFixture[str], command: Callable[[Sequence[str]], Any], *words: str) -> str:
    """Returns the one-line error of a command, without its name; checks exit code 2."""
    code = exit_code(command, *words)
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert (code, shown.out) == (2, "")
    return line.partition(": ")[2]


def not_refused(
    capsys: pytest.CaptureFixture[str],
    command: Callable[[Sequence[str]], Any],
    rows: Sequence[tuple[Sequence[str], str]],
    secret: str = "hush",
) -> dict[str, str]:
    """Returns the rows (arguments, start of the error) whose error differs or contains a secret."""
    errors = {" ".join(words): (refused(capsys, command, *words), why) for words, why in rows}
    return {words: line for words, (line, why) in errors.items() if not line.startswith(why) or secret in line}
