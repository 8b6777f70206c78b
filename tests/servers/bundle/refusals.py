"""What commands say of what they are not able to do."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def exit_code(command: Callable[[Sequence[str]], Any], *words: str) -> int:
    """How a command ends, whether it returns that or exits with it."""
    try:
        return int(command(words))
    except SystemExit as end:
        return int(end.code or 0)


def refused(capsys: pytest.CaptureFixture[str], command: Callable[[Sequence[str]], Any], *words: str) -> str:
    """What a command says in one line, behind its name, and ends with exit code 2."""
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
    """Of rows of words and of how a refusal begins, those with another one, or with a secret in it."""
    said = {" ".join(words): (refused(capsys, command, *words), why) for words, why in rows}
    return {words: line for words, (line, why) in said.items() if not line.startswith(why) or secret in line}
