"""Checks of characters, and safe display of untrusted text."""

import os
import re
from collections.abc import Collection, Iterable

_DECEPTIVE = "[\\\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_WORDS = re.compile(r'[\s"]')
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_BATCH_SIZE = 256
_unused_words: list[str] = []
"""Random words that have not been used yet. Several threads take them."""


def is_unicode(text: str) -> bool:
    """Return True if the text can be encoded as UTF-8: it has no lone surrogates, which Python uses for bytes of file
    names that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(text: str) -> str:
    """Return the text on one line: unprintable characters, line endings and terminal control characters as
    escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def plain(text: str) -> str:
    """Return `text` with a replacement character for each character that would move the cursor or color the terminal,
    including line endings. The text is untrusted data."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def join_lines(text: str) -> str:
    """Return the text on one line, with single spaces for white space of any kind, and the rest as in `escape`."""
    return escape(" ".join(text.split()))


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun. `plural` is needed if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def make_marks(kind: str, description: str) -> tuple[str, str]:
    """Return two lines to put around untrusted text. The first contains the `description`.

    Both contain an unpredictable word, so the text between them can't end the block and continue as if it were the
    server.
    """
    try:
        word = _unused_words.pop()
    except IndexError:
        # A system call is slow, and takes as long for one word as for many.
        digits = os.urandom(4 * _BATCH_SIZE).hex()
        word, *rest = (digits[start : start + 8] for start in range(0, len(digits), 8))
        _unused_words.extend(rest)
    mark = f"{kind}-{word}"
    return f"<{mark}> {description}", f"</{mark}>"


def code_block(text: str, language: str = "") -> str:
    """Return the text as a Markdown code block, with a fence longer than any in it (CommonMark, 4.5)."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name among `known` that `name` most likely means; None if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1, cutoff)), None)


def nearest_option(name: str, known: Collection[str]) -> str | None:
    """Return the option among `known`, without its leading hyphens, that `name` most likely means: a similar one, or
    the only one that contains all its words, such as `allow-write` for `write`. None if there is none."""
    words = set(name.split("-"))
    containing = [option for option in known if words <= set(option.split("-")) and not option.startswith("no-")]
    return nearest(name, known, 0.75) or (containing[0] if len(containing) == 1 else None)


def escape_match(match: re.Match[str]) -> str:
    """Return the escape for the matched character, for the display of a file name."""
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    # Two-digit escapes above 0x7f mean raw bytes, so such characters use the long form.
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def display_name(name: str) -> str:
    """Return the name of a file for display: on one line, in reading order, and distinct for distinct names.

    File names are bytes. Bytes that are not UTF-8 arrive as lone surrogates (`os.fsdecode`) and are shown as `\\xff`.
    Control characters, line separators and bidirectional overrides are shown as escapes too, so that a name can
    neither forge a line of a listing nor display backwards. The backslash itself is doubled, which keeps the form
    reversible.
    """
    # All of these characters but the backslash are unprintable, and nearly no name has any.
    return name if name.isprintable() and "\\" not in name else re.sub(_DECEPTIVE, escape_match, name)


def quote_name(name: str) -> str:
    """Return `name` as `display_name`, in quotes if it could be mistaken for words of the surrounding sentence."""
    shown = display_name(name)
    return '"' + shown.replace('"', '\\"') + '"' if _WORDS.search(shown) else shown
