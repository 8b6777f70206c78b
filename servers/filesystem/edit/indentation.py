"""The indentation of an old text beside that of the lines it was found in.

White space is what a model gets wrong most often: spaces for tabs, two for four, a passage moved to the left. Lines
are only taken for those that were meant where each indentation of the old text stands for one of the file's, deeper
ones for deeper ones. The new text is then written with those of the file.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from servers.filesystem.edit.text import Replacement

_MAX_COST = 1_000_000
"""Lines of the old text times lines of the new one up to which those that stay are sought."""


class Indents(NamedTuple):
    """Which indentation of the file each of the old text stands for, and how much of it one step does: `unit` of the
    old text is `step` in the file, where that is known."""

    known: dict[str, str]
    unit: str = ""
    step: str = ""

    def of(self, indent: str) -> str | None:
        """What an indentation of the new text is in the file; None where that can't be told."""
        if indent in self.known:
            return self.known[indent]
        if self.is_same:
            return indent
        if min(map(len, self.known)) < len(indent) < max(map(len, self.known)):
            # A step that the old text does not have: it was written in no one style.
            return None
        near = min(self.known, key=lambda one: abs(len(one) - len(indent)))
        longer, shorter = (indent, near) if len(indent) > len(near) else (near, indent)
        if not longer.startswith(shorter) or not self.unit:
            return None
        steps, rest = divmod(len(longer) - len(shorter), len(self.unit))
        if rest or longer[len(shorter) :] != self.unit * steps:
            return None
        base, change = self.known[near], self.step * steps
        if longer is indent:
            return base + change
        return base.removesuffix(change) if base.endswith(change) else None

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return all(old == new for old, new in self.known.items())


def indent_of(line: str) -> str:
    """The white space before the text of a line."""
    return line[: len(line) - len(line.lstrip())]


def compared(
    wanted: Sequence[str], lines: Sequence[str], new: Sequence[str], around: Iterable[str]
) -> Indents | None:
    """The indentation of the `wanted` lines beside that of the `lines` they match, or None where these have no order.

    How one step is written comes from both, else from the `new` lines and the lines of the file `around`.
    """
    known: dict[str, str] = {}
    for old, line in zip(wanted, lines, strict=True):
        if old.strip() and known.setdefault(indent_of(old), indent_of(line)) != indent_of(line):
            return None
    same = {old == new for old, new in known.items() if old or new}
    if len(same) > 1:
        # One line is indented wrongly, and not all in another style.
        return None
    ordered = sorted(known, key=len)
    for before, after in pairwise(ordered):
        if (
            not after.startswith(before)
            or not known[after].startswith(known[before])
            or known[after] == known[before]
        ):
            return None
    steps = {(after[len(before) :], known[after][len(known[before]) :]) for before, after in pairwise(ordered)}
    unit, step = _step(steps) if steps else _styles([*wanted, *new], around)
    return Indents(known, unit, step)


def _step(steps: set[tuple[str, str]]) -> tuple[str, str]:
    """What one character, or the fewest, of the old steps are in the file: the same for all, or unknown."""
    reduced = set()
    for old, new in steps:
        if len(set(old)) != 1 or len(set(new)) != 1:
            return "", ""
        common = gcd(len(old), len(new))
        reduced.add((old[: len(old) // common], new[: len(new) // common]))
    return reduced.pop() if len(reduced) == 1 else ("", "")


def _styles(given: Iterable[str], around: Iterable[str]) -> tuple[str, str]:
    """How one step is written in what was given, and how in the file."""
    own, theirs = _unit(given), _unit(around)
    return (own, theirs) if own and theirs else ("", "")


def _unit(lines: Iterable[str]) -> str:
    """One step of indentation: the most usual one from a line to the next; empty where there is none."""
    indents = [indent_of(line) for line in lines if line.strip()]
    steps = Counter(
        after[len(before) :] for before, after in pairwise(indents) if after != before and after.startswith(before)
    )
    return max(steps, key=lambda one: (steps[one], -len(one)), default="")


def moved(wanted: Sequence[str], new: Sequence[str], indents: Indents) -> list[Replacement] | None:
    """What becomes of the lines that the wanted ones match when the new ones take their place, by line numbers.

    Lines that the new text has in common with the old one stay as they are in the file. None where an indentation of
    the new text can't be told.
    """
    changes: list[Replacement] = []
    opcodes: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(wanted), 0, len(new))]
    if len(wanted) * len(new) <= _MAX_COST:
        from difflib import SequenceMatcher

        opcodes = SequenceMatcher(None, wanted, new, autojunk=False).get_opcodes()
    for kind, start, end, first, last in opcodes:
        if kind == "equal":
            continue
        fresh = []
        for line in new[first:last]:
            if not line.strip():
                fresh.append(line if indents.is_same else "")
                continue
            indent = indents.of(indent_of(line))
            if indent is None:
                return None
            fresh.append(indent + line.lstrip())
        changes.append((start, end, "".join(f"{line}\n" for line in fresh)))
    return changes


def described(indent: str) -> str:
    """An indentation in words."""
    if not indent:
        return "none"
    for character, name in ((" ", "space"), ("\t", "tab")):
        if set(indent) == {character}:
            return f"{len(indent)} {name}{'s' if len(indent) > 1 else ''}"
    return repr(indent)
