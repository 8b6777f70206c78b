"""Translates the indentation that an edit uses into the indentation of the file.

The most common mistake of models is white space: spaces instead of tabs, two spaces instead of four, or a passage
with less indentation. The lines in the file that match the old text show which indentation corresponds to which. They
count as a match only if each indentation in the old text corresponds to one in the file, and deeper ones to deeper
ones. The new text is then written with the file's indentation.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from .text import Replacement

_MAX_COST = 1_000_000
"""Maximum product of the numbers of old and new lines for which unchanged lines are searched."""


class Indents(NamedTuple):
    """The indentation in the file for each indentation in the old text (`mapping`), and the text of one step of
    indentation: `old_step` in the old text, `file_step` in the file. Both steps are empty if unknown.
    """

    mapping: dict[str, str]
    old_step: str = ""
    file_step: str = ""

    def translate(self, indent: str) -> str | None:
        """Return the file's indentation for an indentation in the new text; None if it can't be determined."""
        if indent in self.mapping:
            return self.mapping[indent]
        if self.is_same:
            return indent
        if min(map(len, self.mapping)) < len(indent) < max(map(len, self.mapping)):
            # This depth is between two depths of the old text but not one of them: the style is inconsistent.
            return None
        closest = min(self.mapping, key=lambda old_indent: abs(len(old_indent) - len(indent)))
        longer, shorter = (indent, closest) if len(indent) > len(closest) else (closest, indent)
        if not longer.startswith(shorter) or not self.old_step:
            return None
        steps, rest = divmod(len(longer) - len(shorter), len(self.old_step))
        if rest or longer[len(shorter) :] != self.old_step * steps:
            return None
        base, change = self.mapping[closest], self.file_step * steps
        if longer is indent:
            return base + change
        return base.removesuffix(change) if base.endswith(change) else None

    @property
    def is_same(self) -> bool:
        """True if the old text is indented like the file."""
        return all(old == new for old, new in self.mapping.items())


def indent_of(line: str) -> str:
    """Return the leading white space of a line."""
    return line[: len(line) - len(line.lstrip())]


def map_indentation(
    old_lines: Sequence[str], lines: Sequence[str], new: Sequence[str], surrounding: Iterable[str]
) -> Indents | None:
    """Return the indentation of the `old_lines`, mapped to the indentation of the matching `lines` of the file; None
    if their indentations don't correspond.

    The steps are taken from both, or else from the `old_lines` and `new` lines, and the `surrounding` lines of the
    file.
    """
    pairs: dict[str, str] = {}
    for old, line in zip(old_lines, lines, strict=True):
        if old.strip() and pairs.setdefault(indent_of(old), indent_of(line)) != indent_of(line):
            return None
    same = {old == new for old, new in pairs.items() if old or new}
    if len(same) > 1:
        # Some lines are indented as in the file and others are not, so this is not merely another style.
        return None
    ordered = sorted(pairs, key=len)
    for before, after in pairwise(ordered):
        if (
            not after.startswith(before)
            or not pairs[after].startswith(pairs[before])
            or pairs[after] == pairs[before]
        ):
            return None
    steps = {(after[len(before) :], pairs[after][len(pairs[before]) :]) for before, after in pairwise(ordered)}
    if steps:
        return Indents(pairs, *_step(steps))
    old_step, file_step = _usual_step([*old_lines, *new]), _usual_step(surrounding)
    return Indents(pairs, old_step, file_step) if old_step and file_step else Indents(pairs)


def _step(steps: set[tuple[str, str]]) -> tuple[str, str]:
    """Return the shortest texts of one step in the old text and in the file; both are empty if the steps disagree."""
    reduced = set()
    for old, new in steps:
        if len(set(old)) != 1 or len(set(new)) != 1:
            return "", ""
        common = gcd(len(old), len(new))
        reduced.add((old[: len(old) // common], new[: len(new) // common]))
    return reduced.pop() if len(reduced) == 1 else ("", "")


def _usual_step(lines: Iterable[str]) -> str:
    """Return the most frequent step of indentation from one line to the next, or ""."""
    indents = [indent_of(line) for line in lines if line.strip()]
    steps = Counter(
        after[len(before) :] for before, after in pairwise(indents) if after != before and after.startswith(before)
    )
    return max(steps, key=lambda step: (steps[step], -len(step)), default="")


def translate_replacements(
    old_lines: Sequence[str], new: Sequence[str], indents: Indents
) -> list[Replacement] | None:
    """Return the replacements, by line numbers, that replace the `old_lines` with the `new` lines.

    Lines common to both texts stay as in the file. Return None if an indentation of the new text is unknown.
    """
    changes: list[Replacement] = []
    opcodes: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(old_lines), 0, len(new))]
    if len(old_lines) * len(new) <= _MAX_COST:
        from difflib import SequenceMatcher

        opcodes = SequenceMatcher(None, old_lines, new, autojunk=False).get_opcodes()
    for kind, start, end, first, last in opcodes:
        if kind == "equal":
            continue
        new_lines = []
        for line in new[first:last]:
            if not line.strip():
                new_lines.append(line if indents.is_same else "")
                continue
            indent = indents.translate(indent_of(line))
            if indent is None:
                return None
            new_lines.append(indent + line.lstrip())
        changes.append((start, end, "".join(f"{line}\n" for line in new_lines)))
    return changes


def describe_indent(indent: str) -> str:
    """Return a description of an indentation."""
    if not indent:
        return "none"
    for character, name in ((" ", "space"), ("\t", "tab")):
        if set(indent) == {character}:
            return f"{len(indent)} {name}{'s' if len(indent) > 1 else ''}"
    return repr(indent)
