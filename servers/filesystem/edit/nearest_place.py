"""Where in a file an old text was probably meant to be that is not there, and what differs."""

import re
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from servers.filesystem.edit.indentation import described, indent_of
from shared.text import nearest

_MAX_LINES = 50_000
"""Lines of a file that are looked at."""
_MAX_SPELLED = 2_000
_MAX_WANTED = 200
_LONGEST = 200
"""Characters of a line that are compared."""
_SHOWN = 80
"""Characters of a line that are shown."""
_MOST = 3
"""Differences that are shown."""
_COMMON = 300
"""Lines with a word from which on it tells nothing."""
_CANDIDATES = 6
_WHOLE_LINE = 3
"""Words that a line counts for which is the same."""
_ALIKE = 0.35
"""How alike both have to be, of 1."""
_WORD = re.compile(r"\w{2,}")


def nearest_place(lines: Sequence[str], wanted: Sequence[str], before: int = 0) -> str | None:
    """The lines most like the wanted ones, with their numbers and what differs; None where none are.

    `before` them are more lines, which count.
    """
    lines, wanted = lines[:_MAX_LINES], wanted[:_MAX_WANTED]
    votes = _votes(lines, wanted) or _first_like(lines, wanted)
    smooth = {at: votes[at] + (votes[at - 1] + votes[at + 1]) / 2 for at in list(votes)}
    best, start = 0.0, 0
    for at in sorted(smooth, key=smooth.__getitem__, reverse=True)[:_CANDIDATES]:
        begin = min(max(at, 0), max(len(lines) - 1, 0))
        alike = _alike(lines[begin : max(at + len(wanted), begin + 1)], wanted)
        if alike > best:
            best, start = alike, begin
    if best < _ALIKE:
        return None
    window = lines[start : start + len(wanted)]
    start += before
    differences = "; ".join(_differences(window, wanted, start))
    if len(wanted) == 1:
        return f"line {start + 1}: {differences}"
    return f"lines {start + 1}-{start + len(window)}: {differences}"


def _votes(lines: Sequence[str], wanted: Sequence[str]) -> defaultdict[int, float]:
    """How much speaks for each line as the first: rare lines and rare words that both have."""
    sought: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(wanted):
        for token in _tokens(line):
            sought[token].append(number)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        for token in _tokens(line):
            if token in sought and len(seen[token]) < _COMMON:
                seen[token].append(number)
    votes: defaultdict[int, float] = defaultdict(float)
    for token, places in seen.items():
        for place in places if len(places) < _COMMON else ():
            for number in sought[token]:
                weight = _WHOLE_LINE if token.startswith("\n") else 1
                votes[place - number] += weight / len(places) / len(sought[token])
    return votes


def _first_like(lines: Sequence[str], wanted: Sequence[str]) -> defaultdict[int, float]:
    """A vote for the line whose spelling is near that of the first wanted one, where no word is the same."""
    votes: defaultdict[int, float] = defaultdict(float)
    at, first = next(((at, line) for at, line in enumerate(wanted) if line.strip()), (0, ""))
    places = {line.strip()[:_LONGEST]: number for number, line in reversed(list(enumerate(lines[:_MAX_SPELLED])))}
    close = nearest(first.strip()[:_LONGEST], places) if first else None
    if close is not None:
        votes[places[close] - at] = 1
    return votes


def _tokens(line: str) -> set[str]:
    text = line.strip()[:_LONGEST]
    return {*_WORD.findall(text), *([f"\n{text}"] if text else [])}


def _alike(window: Sequence[str], wanted: Sequence[str]) -> float:
    """How alike both are, of 1: line by line, or by the lines that are the same where one more or less is between."""
    ratios = [
        SequenceMatcher(None, one.strip()[:_LONGEST], other.strip()[:_LONGEST]).ratio()
        for one, other in zip_longest(window, wanted, fillvalue="")
        if one.strip() or other.strip()
    ]
    same = SequenceMatcher(None, [one.strip() for one in window], [one.strip() for one in wanted], autojunk=False)
    return max(sum(ratios) / max(len(ratios), 1), same.ratio())


def _differences(window: Sequence[str], wanted: Sequence[str], start: int) -> list[str]:
    """What differs: texts of lines, else their indentation; at least one."""
    old, new = [line.strip() for line in wanted], [line.strip() for line in window]
    said: list[str] = []
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for theirs, own in zip_longest(range(begin, end), range(first, last)):
            if theirs is None:
                said.append(f"{_shown(old[own])} is not there")
            elif new[theirs]:
                given = "" if own is None else f", not {_shown(old[own])}"
                said.append(f"{_at(start + theirs, len(wanted))}{_shown(new[theirs])}{given}")
    if not said:
        for number, (theirs, own) in enumerate(zip(window, wanted, strict=False)):
            if own.strip() and indent_of(theirs) != indent_of(own):
                indents = f"indented by {described(indent_of(theirs))}, not {described(indent_of(own))}"
                said.append(f"line {start + number + 1} is {indents}")
    more = [f"{len(said) - _MOST} more"] if len(said) > _MOST else []
    return said[:_MOST] + more or [_shown(new[0])]


def _at(number: int, count: int) -> str:
    return f"line {number + 1} is " if count > 1 else ""


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
