"""The differences that a change makes to a file, for display: with context lines, and without secrets.

A configuration may contain secrets anywhere: in variables and headers, in arguments, in entries that are commented
out. So only keys are shown, and no values, except in the new entry, which the user has just specified.
"""

from collections.abc import Iterator, Set
from typing import NamedTuple

from .checking import HIDDEN
from .clients import Client
from .jsonc import Element, parse
from .toml_tree import parse_toml

CONTEXT_LINES = 3
"""The number of unchanged lines that are shown before and after the changed ones."""
MAX_LINE = 300
"""Maximum length of a line that is shown in full, in characters."""
_SCALARS = {
    *("string", "number", "unary_expression"),
    *("integer", "float", "offset_date_time", "local_date_time", "local_date", "local_time"),
}
"""The kinds of nodes with a single value in the syntax trees of JSON (first line) and TOML (second line)."""


class Line(NamedTuple):
    """One line of the differences. `sign` is `-` for a removed line, `+` for an added one, or a space."""

    sign: str
    text: str


class _View(NamedTuple):
    """The part of a file that may be shown: `shown` is the span of bytes in which values are visible, except those in
    `secrets`."""

    shown: tuple[int, int] | None
    secrets: Set[str]


def find_differences(
    client: Client, before: bytes, after: bytes, shown: tuple[int, int] | None, secrets: Set[str]
) -> list[Line]:
    """Return the changed lines with their context.

    `shown` is the position in `after` of the entry whose values are visible, except those in `secrets`. All other
    values are hidden.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _common_lines(old, new)
    tail = _common_lines(old[head:][::-1], new[head:][::-1])
    if any(len(line) > MAX_LINE for line in [*old[head : len(old) - tail], *new[head : len(new) - tail]]):
        # The lines are too long, as in a file without line breaks. Show only the bytes that have changed, which would
        # be cut off at the end of a whole line.
        view = _View(shown, secrets)
        start = _common_bytes(before, after)
        tail = _common_bytes(before[start:][::-1], after[start:][::-1])
        removed = _mask(client, before, (start, len(before) - tail), view._replace(shown=None))
        added = _mask(client, after, (start, len(after) - tail), view)
        return [_shorten(Line(sign, text)) for sign, texts in (("-", removed), ("+", added)) for text in texts]
    first, end = max(0, head - CONTEXT_LINES), min(len(old), len(old) - tail + CONTEXT_LINES)
    growth = len(new) - len(old)
    old_texts = _mask(client, before, _offsets(old, first, end), _View(None, secrets))
    new_texts = _mask(client, after, _offsets(new, first, end + growth), _View(shown, secrets))
    above, below = head - first, end - (len(old) - tail)
    lines = [Line(" ", text) for text in new_texts[:above]]
    lines += [Line("-", text) for text in old_texts[above : len(old_texts) - below]]
    lines += [Line("+", text) for text in new_texts[above : len(new_texts) - below]]
    lines += [Line(" ", text) for text in new_texts[len(new_texts) - below :]]
    return [_shorten(line) for line in lines]


def _shorten(line: Line) -> Line:
    return line if len(line.text) <= MAX_LINE else Line(line.sign, f"{line.text[:MAX_LINE]} {HIDDEN}")


def _common_bytes(old: bytes, new: bytes) -> int:
    # A binary search over slices is faster than comparing bytes one by one.
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[low:middle] == new[low:middle] else (low, middle - 1)
    return low


def _common_lines(old: list[bytes], new: list[bytes]) -> int:
    count = 0
    for first, other in zip(old, new, strict=False):
        if first != other:
            break
        count += 1
    return count


def _offsets(lines: list[bytes], first: int, end: int) -> tuple[int, int]:
    start = sum(len(line) for line in lines[:first])
    return start, start + sum(len(line) for line in lines[first:end])


def _mask(client: Client, text: bytes, part: tuple[int, int], view: _View) -> list[str]:
    """Return the lines of the span `part` of the text, with `HIDDEN` in place of hidden values."""
    root = parse_toml(text) if client.format == "toml" else parse(text, client.format == "jsonc")
    first, last = (root.start, root.end) if root is not None else (len(text), len(text))
    position, end = part
    pieces: list[bytes] = []
    try:
        # Before and after the outermost value, there can only be comments.
        hidden = list(_comments(text, part[0], min(part[1], first)))
        hidden += _hidden_values(root, part, view) if root is not None else ()
        hidden += _comments(text, max(part[0], last), part[1])
    except RecursionError:
        raise ValueError("the file is nested too deeply") from None
    for hidden_start, hidden_end in hidden:
        covered = text[max(position, hidden_start) : min(end, hidden_end)]
        mark = b"\n".join([HIDDEN.encode()] * (covered.count(b"\n") + 1))
        pieces += [text[position : max(position, hidden_start)], mark]
        position = min(end, hidden_end)
    pieces.append(text[position:end])
    lines = b"".join(pieces).decode().removeprefix("\ufeff").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _comments(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    for line in text[start:end].splitlines(keepends=True) if start < end else ():
        bare = line.strip().removeprefix(b"\xef\xbb\xbf")
        if bare:
            position = start + line.index(bare)
            yield position, position + len(bare)
        start += len(line)


def _hidden_values(element: Element, part: tuple[int, int], view: _View) -> Iterator[tuple[int, int]]:
    if element.end <= part[0] or element.start >= part[1]:
        return
    inside = view.shown is not None and view.shown[0] <= element.start and element.end <= view.shown[1]
    if element.kind in _SCALARS:
        if not inside or element.value() in view.secrets:
            yield element.start, element.end
    elif element.kind == "comment":
        yield element.start, element.end
    else:
        parts = list(element.parts())
        # The first part of a pair is the key, which is always shown.
        for child in parts[1:] if element.kind == "pair" else parts:
            yield from _hidden_values(child, part, view)
