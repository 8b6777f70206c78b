"""Finds the lines of a file that an edit most likely meant if its old text matches nowhere, and describes how they
differ from the old text."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from unicodedata import normalize

from shared.text import nearest

from .indentation import describe_indent, indent_of

_MAX_LINES = 50_000
"""Maximum number of lines of a file that are compared."""
_MAX_LINES_BY_SPELLING = 2_000
"""Maximum number of lines of a file that are compared by spelling."""
_MAX_OLD_LINES = 200
"""Maximum number of lines of the old text that are compared."""
_MAX_LINE_CHARACTERS = 200
"""Maximum number of characters of a line that are compared."""
_MAX_SHOWN_CHARACTERS = 80
"""Maximum number of characters of a line that are shown."""
_MAX_DIFFERENCES = 3
"""Maximum number of differences that are shown."""
_MIN_COMMON_LINES = 300
"""Words and lines that occur at least this many times in the file are ignored."""
_MAX_CANDIDATES = 6
"""Maximum number of places with the most votes whose lines are compared."""
_LINE_WEIGHT = 3
"""The number of words that an equal line counts as."""
_MIN_SIMILARITY = 0.35
"""Minimum similarity, from 0 to 1."""
_WORD = re.compile(r"\w{2,}")


def nearest_place(lines: Sequence[str], old_lines: Sequence[str], before: int = 0) -> str | None:
    """Describe the lines most similar to the old ones, with their numbers and the differences; None if no lines are
    similar enough.

    `before` is the number of lines of the file that precede `lines`.
    """
    lines, old_lines = lines[:_MAX_LINES], old_lines[:_MAX_OLD_LINES]
    votes = _votes(lines, old_lines) or _most_similar_line(lines, old_lines)
    smoothed_votes = {
        position: votes[position] + (votes[position - 1] + votes[position + 1]) / 2 for position in list(votes)
    }
    best, start = 0.0, 0
    for position in sorted(smoothed_votes, key=smoothed_votes.__getitem__, reverse=True)[:_MAX_CANDIDATES]:
        begin = min(max(position, 0), max(len(lines) - 1, 0))
        similarity = _similarity(lines[begin : max(position + len(old_lines), begin + 1)], old_lines)
        if similarity > best:
            best, start = similarity, begin
    if best < _MIN_SIMILARITY:
        return None
    window = lines[start : start + len(old_lines)]
    start += before
    differences = "; ".join(_differences(window, old_lines, start))
    if len(old_lines) == 1:
        return f"line {start + 1}: {differences}"
    return f"lines {start + 1}-{start + len(window)}: {differences}"


def _votes(lines: Sequence[str], old_lines: Sequence[str]) -> defaultdict[int, float]:
    """Return the votes for each line as the line at which the old text begins. Each line or word that both texts
    contain votes; the rarer it is, the more its vote counts."""
    lines_of_token: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(old_lines):
        for token in _tokens(line):
            lines_of_token[token].append(number)
    places_of_token: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        for token in _tokens(line):
            if token in lines_of_token and len(places_of_token[token]) < _MIN_COMMON_LINES:
                places_of_token[token].append(number)
    votes: defaultdict[int, float] = defaultdict(float)
    for token, places in places_of_token.items():
        for place in places if len(places) < _MIN_COMMON_LINES else ():
            for number in lines_of_token[token]:
                weight = _LINE_WEIGHT if token.startswith("\n") else 1
                votes[place - number] += weight / len(places) / len(lines_of_token[token])
    return votes


def _most_similar_line(lines: Sequence[str], old_lines: Sequence[str]) -> defaultdict[int, float]:
    """Return one vote, for the place where the first old line is aligned with the line spelled most like it. This is
    for texts without a common word."""
    votes: defaultdict[int, float] = defaultdict(float)
    position, first = next(((position, line) for position, line in enumerate(old_lines) if line.strip()), (0, ""))
    places = {
        line.strip()[:_MAX_LINE_CHARACTERS]: number
        for number, line in reversed(list(enumerate(lines[:_MAX_LINES_BY_SPELLING])))
    }
    close = nearest(first.strip()[:_MAX_LINE_CHARACTERS], places) if first else None
    if close is not None:
        votes[places[close] - position] = 1
    return votes


def _tokens(line: str) -> set[str]:
    text = line.strip()[:_MAX_LINE_CHARACTERS]
    return {*_WORD.findall(text), *([f"\n{text}"] if text else [])}


def _similarity(window: Sequence[str], old_lines: Sequence[str]) -> float:
    """Return the similarity, from 0 to 1: the higher of two comparisons. One is line by line; the other counts equal
    lines, which allows for added and missing lines."""
    ratios = [
        SequenceMatcher(None, line.strip()[:_MAX_LINE_CHARACTERS], old_line.strip()[:_MAX_LINE_CHARACTERS]).ratio()
        for line, old_line in zip_longest(window, old_lines, fillvalue="")
        if line.strip() or old_line.strip()
    ]
    same = SequenceMatcher(
        None, [line.strip() for line in window], [line.strip() for line in old_lines], autojunk=False
    )
    return max(sum(ratios) / max(len(ratios), 1), same.ratio())


def _differences(window: Sequence[str], old_lines: Sequence[str], start: int) -> list[str]:
    """Return the differences in the texts of lines, or else in their indentation; at least one."""
    old, new = [line.strip() for line in old_lines], [line.strip() for line in window]
    differences: list[str] = []
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for new_index, old_index in zip_longest(range(begin, end), range(first, last)):
            if new_index is None:
                differences.append(f"{_quote(old[old_index])} is missing")
            elif new[new_index] or old_index is not None:
                show = (
                    _escape_invisible
                    if old_index is None or normalize("NFC", new[new_index]) != normalize("NFC", old[old_index])
                    else ascii
                )
                expected = "" if old_index is None else f", not {_quote(old[old_index], show)}"
                line = f"line {start + new_index + 1} is " if len(old_lines) > 1 else ""
                differences.append(f"{line}{_quote(new[new_index], show)}{expected}")
    if not differences:
        for number, (line, old_line) in enumerate(zip(window, old_lines, strict=False)):
            if old_line.strip() and indent_of(line) != indent_of(old_line):
                indents = (
                    f"indented by {describe_indent(indent_of(line))}, not {describe_indent(indent_of(old_line))}"
                )
                differences.append(f"line {start + number + 1} is {indents}")
    more = [f"{len(differences) - _MAX_DIFFERENCES} more"] if len(differences) > _MAX_DIFFERENCES else []
    return differences[:_MAX_DIFFERENCES] + more or [_quote(new[0])]


def _escape_invisible(text: str) -> str:
    """Return the text in quotes, with escapes only for invisible characters. A model copies the text, so no backslash
    may be doubled."""
    return f"'{''.join(char if char.isprintable() else repr(char)[1:-1] for char in text)}'"


def _quote(text: str, show: Callable[[str], str] = _escape_invisible) -> str:
    """Return the text in quotes. `show` is `ascii` if the compared texts differ only in how accents are composed,
    since they look the same."""
    return show(text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}...")
