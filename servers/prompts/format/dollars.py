"""The placeholders of Claude Code: `$ARGUMENTS`, `$ARGUMENTS[0]`, `$1`.

Positions count from 1, as commands always had it, unless the text has `$0` or `$ARGUMENTS[...]`: these count from 0,
and so does `$1` beside them. Each position is an argument of its own here. Nothing is executed (`!`) or read (`@`).
"""

import re
from typing import NamedTuple

from servers.prompts.format.definitions import Argument, ordered

__all__ = ["PLACEHOLDER", "Places", "arguments", "places"]

PLACEHOLDER = re.compile(r"\$ARGUMENTS(?:\[([0-9])\])?(?![A-Za-z0-9_])|\$([0-9])(?![A-Za-z0-9_])")
_HINT = re.compile(r"<([^<>]{1,100})>|\[([^\[\]]{1,100})\]|(\S{1,100})")
_ALL = "arguments"


class Places(NamedTuple):
    """What a text asks for."""

    names: tuple[str, ...]
    """The argument of each position, or the one argument."""
    first: int
    """The number of the first position."""
    appended: bool
    """Whether the text has no place for the one argument, which then comes after it."""


def places(body: str, hint: str) -> Places:
    """The arguments that a text and its argument-hint ask for."""
    found = list(PLACEHOLDER.finditer(body))
    numbers = [int(one[1] or one[2]) for one in found if one[1] or one[2]]
    if not numbers:
        return Places((_ALL,) if found or hint else (), 0, not found)
    first = 0 if 0 in numbers or any(one[1] for one in found) else 1
    count = max(numbers) - first + 1
    hinted = [_name(one) for one in _hinted(hint)]
    fits = len(hinted) == count == len(set(hinted)) and all(hinted)
    return Places(tuple(hinted) if fits else tuple(f"arg{first + at}" for at in range(count)), first, False)


def arguments(body: str, hint: str) -> tuple[Argument, ...]:
    """These arguments. One is required where the hint has it between < and >."""
    names = places(body, hint).names
    if names == (_ALL,):
        required = hint.startswith("<") and "[" not in hint
        return (Argument(_ALL, description=hint or None, required=required),)
    written = _hinted(hint)
    needed = [one.startswith("<") for one in written] if len(written) == len(names) else [False] * len(names)
    return ordered(Argument(name, required=one) for name, one in zip(names, needed, strict=True))


def _hinted(hint: str) -> list[str]:
    return [one[0] for one in _HINT.finditer(hint)]


def _name(written: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", written.strip("<>[].… ")).strip("_")[:64]
